// Solves with numbers that stay within the range of the type.
#pragma once
#include <functional>
#include <vector>

#include "base/types.hpp"
#include "matrix/scales.hpp"

namespace gs {

// Whether no significant number left the range of the type on the way from b to x: x shows overflow, and some entries
// of b and x are so large that numbers that underflow next to them are rounding errors, scaled or not.
template <class T> bool stays_in_range(idx n, const T* b, const T* x, ScaleRange scales_of_b, ScaleRange scales_of_x);

// Solves for multiples of a finite b: first of about 1 after scaling by powers of two, then smaller and smaller ones if
// they overflow. Repairs x, computed from b itself, if that helps.
template <class T> void solve_multiples(idx n, const T* b, T* x, const std::vector<double>& scale_of_b,
                                        const std::function<void(const T* b, T* x)>& solve);

}  // namespace gs
