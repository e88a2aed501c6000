// Systems with a known solution: the error of the computed solution decides whether the factor needs checks.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/types.hpp"

namespace gs {

// Unknowns of equal size: 1, unless the entries of A, with the given largest one, are near an end of the range. Their
// signs have no pattern, so sums of entries that cancel because of the structure of A do not cancel here.
template <class T> std::vector<T> known_answer(idx n, double largest_of_A) {
  constexpr int extreme = std::numeric_limits<real_t<T>>::max_exponent / 2;
  const int exponent = largest_of_A > 0 ? std::ilogb(largest_of_A) : 0;
  const T entry = T((real_t<T>)std::ldexp(1.0, std::abs(exponent) > extreme ? -exponent / 2 : 0));
  std::vector<T> known(n);
  for (idx k = 0; k < n; k++) known[k] = ((std::uint32_t)k * 0x9E3779B9u) >> 31 ? -entry : entry;
  return known;
}

}  // namespace gs
