// Checks of arguments from outside; a failed one is a ValueError in Python.
#pragma once
#include <stdexcept>

namespace gs {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace gs
