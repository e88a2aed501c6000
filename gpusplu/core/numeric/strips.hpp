// Contribution blocks: LU uses a square, the others a lower triangle in strips (simd/dense_kernels.hpp), which takes
// little more than half of the memory.
#pragma once
#include <algorithm>

#include "base/loops.hpp"
#include "simd/select.hpp"

namespace gs {

constexpr idx rows_per_task = 96, columns_per_task = 192;  // of a front, for one thread at a time

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

// Entries of a contribution block of H rows.
inline std::size_t contribution_size(idx H, bool one_triangle) {
  return (std::size_t)size_of_strips(H, strip_width(H, one_triangle));
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

// Part of the triangle: columns begin .. end - 1, which begin with a strip, of rows i .. i + m - 1.
struct TrianglePart {
  idx i, m, begin, end;
};

// Runs body(part, rank) for all parts of the triangle, longest rows first.
template <class T, class Body> void over_triangle(Loops& loops, const Strips<T>& C, Body&& body) {
  const idx H = (idx)C.ld, columns = chunks_of(columns_per_task, C.width) * C.width;
  const idx chunks = chunks_of(H, rows_per_task), groups = chunks_of(H, columns);
  loops.run(chunks * groups, [&](int task, int rank) {
    const idx i = (chunks - 1 - task / groups) * rows_per_task, m = std::min(H - i, rows_per_task);
    const idx begin = task % groups * columns;
    if (begin < i + m) body(TrianglePart{i, m, begin, std::min(i + m, begin + columns)}, rank);
  });
}

}  // namespace gs
