// What the columns of a dense corner take from the columns before it (kernels/crisscross.cu), as sums by target.
//
// Columns p .. n - 1 of a column plan (plan.hpp) begin with U12, rows before p, and go on with the corner's rows. An
// entry at position t of its column is its value in B minus the sum over columns j < p with U(j, k) and L(i, j) of
// L(i, j) U(j, k): a term is the place of L(i, j) and the position of U(j, k) in the column, j ascending. Entries are
// numbered from the first of column p on.
//
// U12's entries depend on each other: those of a column are ordered by depth, 0 for entries without terms.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "plan/columns/groups.hpp"

namespace gs::gpu {

struct CornerTerms {
  std::vector<off> term_ptr;           // entries of the columns + 1
  std::vector<std::int32_t> place;     // of L(i, j), of all terms
  std::vector<std::int32_t> position;  // of U(j, k) in the column
  std::vector<off> order_ptr;          // columns + 1
  std::vector<std::int32_t> order;     // positions of U12 by depth
  std::vector<off> level_ptr;          // columns + 1
  std::vector<std::int32_t> level;     // ends of the depths of a column in its part of order
};

// Terms of the columns from p on, to tell whether it pays.
off count_corner_terms(const ColumnPattern& pattern, idx p);

CornerTerms make_corner_terms(const ColumnPattern& pattern, idx p);

}  // namespace gs::gpu
