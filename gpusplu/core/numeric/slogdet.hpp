// Determinants of factored matrices.
#pragma once
#include <utility>

#include "numeric/factor.hpp"

namespace gs {

// Sign, or phase, and the logarithm of the modulus of det A. The determinant of a Hermitian matrix is real.
template <class T> std::pair<T, double> slogdet(const Factor<T>& factor);

}  // namespace gs
