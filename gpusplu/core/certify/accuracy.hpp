// The precision of a type, in which bounds of errors are given.
#pragma once
#include <limits>

#include "base/types.hpp"

namespace gs {

template <class T> constexpr double eps = std::numeric_limits<real_t<T>>::epsilon();

}  // namespace gs
