// Contribution blocks: LU uses a square, the others a lower triangle in strips (simd/dense_kernels.hpp), which takes
// little more than half of the memory.
#pragma once
#include <algorithm>

#include "simd/select.hpp"

namespace gs {

constexpr idx rows_per_task = 96;  // of a front, for one thread at a time

inline idx chunks_of(idx n, idx size) { return (n + size - 1) / size; }

// Width of the strips of a contribution block of H rows. Small ones are squares: they stay in the cache, and strips
// would only cost time.
inline idx strip_width(idx H, bool one_triangle) {
  if (!one_triangle || H <= 96) return std::max<idx>(H, 1);
  return H <= 512 ? 32 : 96;
}

// Entries of strips with ld rows and as many columns.
inline off size_of_strips(off ld, idx width) {
  const off last = ld <= width ? 0 : (ld - 1) / width * width;  // first column of the last strip
  return last * ld - last * (last - width) / 2 + (ld - last) * (ld - last);
}

// The strip with column j: entry (i, j) of the block is at(i, j), for columns up to `end`.
template <class T> struct Strip {
  T* origin;
  off ld;
  idx end;
  Strip(const Strips<T>& C, idx j) {
    const off first = j < C.width ? 0 : j / C.width * C.width;
    origin = C.data + (first * (first + C.width) / 2 - first), ld = C.ld - first, end = idx(first + C.width);
  }
  T* at(idx i, idx j) const { return origin + i + j * ld; }
};

// Subtracts Y L^H (or Y L^T) from rows i .. i + m - 1 of the triangle; Y has these rows, L the rows from the first on.
template <class T>
void update_rows(const Strips<T>& C, idx i, idx m, idx K, const T* Y, off ldy, const T* L, off ldl, bool conj) {
  const DenseKernels<T>& kernel = kernels<T>();
  for (idx j = 0, end; j < i + m; j = end) {
    const Strip<T> strip(C, j);
    end = std::min(strip.end, j < i ? i : i + m);
    const idx n = end - j, above = std::max(j - i, 0), square = j < i ? 0 : n;
    if (square > 0) kernel.update_lower(n, K, Y + above, ldy, L + j, ldl, strip.at(j, j), strip.ld, conj);
    kernel.update_t(m - above - square, n, K, Y + above + square, ldy, L + j, ldl, strip.at(i + above + square, j),
                    strip.ld, conj);
  }
}

}  // namespace gs
