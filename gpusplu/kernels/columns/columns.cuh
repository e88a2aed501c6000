// The static pattern of L + U as a column plan has it (gpusplu/engines/columns/plan.py): B = (Dr A
// Dc)[row_perm][:, col_perm] = L U in compressed columns, rows ascending, the unit diagonal of L not stored.
#pragma once
#include "common/pivots.cuh"
#include "shared/columns.hpp"

struct ColumnArrays {
  const long long* col_ptr;
  const int* row;
  const long long* diag;  // where a column's diagonal lies: U above it, L below it
  const long long* row_ptr;
  const int* col;          // the same by rows
  const long long* place;  // where those entries lie in the columns
  const long long* u_ptr;  // entries of U above the diagonal before a column
  // Upper entry u = U(j, k) updates column k: entry t of L(:, j) lands map[map_ptr[u] + t] places from its begin.
  const long long* map_ptr;  // null: positions have to be searched
  const unsigned short* map;
  int n;
};

// Pivots of one factorization: those that are too small are replaced.
struct ColumnPivots {
  Real tiny, largest_reciprocal;
  unsigned tiny_bits;
  DEVICE explicit ColumnPivots(double tiny_) {
    tiny = (Real)fmax(tiny_, LEAST_NORMAL);
    largest_reciprocal = reciprocal(tiny), tiny_bits = magnitude_bits(tiny);
  }
  DEVICE bool small(Scalar pivot) const { return magnitude_bits(pivot) < tiny_bits; }
  DEVICE Scalar replaced(Scalar pivot) const { return replaced_reciprocal(pivot, tiny); }
  DEVICE Scalar inverse(Scalar pivot) const {
    return small(pivot) ? Scalar(replaced_reciprocal(pivot, largest_reciprocal)) : reciprocal(pivot);
  }
};

// Where row `row` of column k lies, from place `from` on but not after `last`, relative to the column's begin. The row
// exists; `last` is its place if both columns end alike, which is tried first.
DEVICE int find_row(const int* rows, int row, int from, int last) {
  if (__ldg(rows + last) == row) return last;
  return bisect(from, last, [&](int k) { return __ldg(rows + k) < row; });
}

// Entries of L + U before any update, from place base + first on, every threads-th before base + end; entry p to to[p].
template <class Index, class Args>
DEVICE void assemble_places(const Args& args, long long base, Index first, Index end, Index threads, Scalar* to) {
  constexpr int TOGETHER = 4;
  for (Index p0 = first; p0 < end; p0 += threads * TOGETHER) {
    int source[TOGETHER];
    Scalar value[TOGETHER];
    Real scale[TOGETHER];
    for_all<TOGETHER>([&](int r) { source[r] = __ldg(args.source + base + min(p0 + threads * r, end - 1)); });
    for_all<TOGETHER>([&](int r) {
      value[r] = load_constant(args.values + max(source[r], 0));
      scale[r] = args.scale ? (Real)__ldg(args.scale + max(source[r], 0)) : Real(1);
    });
    for_all<TOGETHER>([&](int r) {
      if (p0 + threads * r < end) to[p0 + threads * r] = source[r] < 0 ? Scalar(0) : scale[r] * value[r];
    });
  }
}
