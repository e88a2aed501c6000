#include "matrix/scales.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/raw_vector.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"

namespace gs {
namespace {

// In real matrices that are better off with their diagonal, at most 0.03% of it is below this fraction of the largest
// entry of its column (in meshes of lines, the sources at the corners); in others 0.9% and more. Pivoting handles those
// few.
constexpr double least_pivot = 0.01, few = 0.005;

}  // namespace

ScaleRange range_of(const std::vector<double>& scale) {
  if (scale.empty()) return {};
  const auto [least, largest] = std::minmax_element(scale.begin(), scale.end());
  return {*least, *largest};
}

template <class T> std::vector<double> scales_of_rows(PatternView A, const T* values) {
  std::vector<double> scale(A.n, 0.0);
  double* const largest_of = scale.data();
  for (off p = 0, nnz = A.nnz(); p < nnz; p++)
    largest_of[A.ind[p]] = std::max(largest_of[A.ind[p]], modulus(values[p]));
  constexpr int largest = std::numeric_limits<real_t<T>>::max_exponent - 2;
  for (double& s : scale) {
    const int exponent = (int)(std::bit_cast<std::uint64_t>(s) >> 52) - 1023;  // -1023 for a subnormal number
    const int opposite = s > 0 ? std::clamp(-exponent, -largest, largest) : 0;
    s = std::bit_cast<double>((std::uint64_t)(opposite + 1023) << 52);
  }
  return scale;
}

template <class T> bool keeps_diagonal(PatternView A, const T* values, const std::vector<double>& row_scale) {
  const double* const scales = row_scale.empty() ? nullptr : row_scale.data();
  idx small = 0;
  for (idx j = 0; j < A.n; j++) {
    double largest = 0, diagonal = 0;
    for (off p = A.ptr[j], end = A.ptr[j + 1]; p < end; p++) {
      const idx i = A.ind[p];
      const double size = modulus(values[p]) * (scales ? scales[i] : 1);
      largest = std::max(largest, size);
      diagonal = i == j ? size : diagonal;
    }
    if (!is_about_1(largest)) return false;
    small += diagonal < least_pivot * largest;
    if (small > few * A.n) return false;
  }
  return true;
}

template <class T> double spread_of_rows(PatternView A, const T* values, const std::vector<double>& row_scale,
                                         const std::vector<double>& col_scale) {
  std::vector<double> largest(A.n, 0.0);
  for (idx j = 0; j < A.n; j++)
    for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++) {
      const idx i = A.ind[k];
      const double scale = row_scale.empty() ? 1 : row_scale[i] * col_scale[j];
      largest[i] = std::max(largest[i], modulus(values[k]) * scale);
    }
  const auto [least, most] = std::minmax_element(largest.begin(), largest.end());
  return A.n > 0 ? *most / *least : 1;
}

#define GS_INSTANTIATE(T)                                                          \
  template std::vector<double> scales_of_rows(PatternView, const T*);              \
  template bool keeps_diagonal(PatternView, const T*, const std::vector<double>&); \
  template double spread_of_rows(PatternView, const T*, const std::vector<double>&, const std::vector<double>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
