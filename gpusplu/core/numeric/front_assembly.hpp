// Sums a front from the entries of A and the contribution blocks of its children.
#pragma once
#include "base/types.hpp"
#include "numeric/front_plan.hpp"
#include "numeric/strips.hpp"

namespace gs {

// Storage of a front during assembly: L (R x W), Ut (H x W, LU only) directly after it, C (H x H, one strip if both
// triangles are stored).
template <class T> struct FrontBlocks {
  FrontShape shape;
  T *L, *Ut;
  Strips<T> C;
  bool one_triangle;
};

// Columns of the front, counted 0 .. R-1, that one team member assembles: column j < W of the panel, and beyond them
// column j - W of C with row j - W of Ut.
struct ColumnRange {
  idx begin, end;
};

// Zeroes the front's columns, without C if `keep_c`.
template <class T> void clear_front(const FrontBlocks<T>& front, ColumnRange columns, bool keep_c);

// Writes entries [begin, end) of the plan into the cleared panels at `panel`. Returns the largest |entry|, scaled.
template <class T> real_t<T> place_values(const FrontPlan& plan, off begin, off end, const T* values, T* panel);

// Adds contribution block `from` (n_rows x n_rows, laid out as C) of a child; its row i is row rel[i] of the front.
// assign_c: C is not cleared yet and the child covers all of it.
template <class T> void add_child(const FrontBlocks<T>& front, ColumnRange columns, idx n_rows, const idx* rel,
                                  const Strips<T>& from, bool assign_c);

}  // namespace gs
