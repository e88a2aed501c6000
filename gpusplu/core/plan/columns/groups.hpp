// Groups of neighbouring columns that one thread block of a column engine owns (kernels/columns/sflu.cuh,
// column_solve.cu).
//
// Column k's parent is the first column that needs it: the first entry after the diagonal in its row of U or its column
// of L. A group is a run of whole small subtrees, or a part of a chain of parents, so that most columns wait for
// columns of their own group only; no group needs a later column, and tickets are in the order of levels between
// groups: a block that takes tickets in this order waits for lower ones only, in the factorization and in forward
// solves, and in backward solves in the reverse order.
#pragma once
#include <vector>

#include "base/types.hpp"
#include "plan/columns/plan.hpp"

namespace gs::gpu {

struct GroupLimits {
  off leaf = 0;                  // entries of L + U in a run of subtrees; 0: every column by itself
  off capacity = 0;              // entries in a chain; a column that has more is a group by itself
  idx columns = 1;               // in a group
  std::vector<idx> single = {};  // columns that are groups by themselves
};

struct ColumnGroups {
  std::vector<idx> range;      // first column and the one after the last of every group, in the order of tickets
  std::vector<idx> level_ptr;  // tickets of every level; inside one the group with most entries first
};

ColumnGroups make_column_groups(const ColumnPattern& pattern, const GroupLimits& limits);

// 1 for every column of L that has the rows of the previous column except the first of those, which is its own number.
std::vector<idx> columns_that_follow(const ColumnPattern& pattern);

// Place of every row's diagonal when L + U lies by rows, row i from row_ptr[i] on.
std::vector<off> row_diagonals(const ColumnPattern& pattern, const off* row_ptr);

}  // namespace gs::gpu
