// An order in which columns can be processed. Cost: a visit of every entry, and a sort of the columns.
#include <algorithm>
#include <numeric>

#include "plan/columns/plan.hpp"

namespace gs::gpu {
namespace {

void number_levels(ColumnPlan& plan) {
  plan.level.assign(plan.n, 0), plan.level_left.assign(plan.n, 0);
  for (idx k = 0; k < plan.n; k++) {
    idx level = plan.level[k], left = 0;  // level from rows of L that name k, set by earlier columns
    for (off p = plan.col_ptr[k]; p < plan.diag[k]; p++) {
      level = std::max(level, plan.level[plan.row[p]] + 1);
      left = std::max(left, plan.level_left[plan.row[p]] + 1);
    }
    plan.level[k] = level, plan.level_left[k] = left;
    for (off p = plan.diag[k] + 1; p < plan.col_ptr[k + 1]; p++) {
      idx& later = plan.level[plan.row[p]];
      later = std::max(later, level + 1);
    }
  }
}

}  // namespace

void find_levels(ColumnPlan& plan) {
  number_levels(plan);
  const idx n_levels = plan.n ? 1 + *std::max_element(plan.level.begin(), plan.level.end()) : 0;
  plan.level_ptr.assign((std::size_t)n_levels + 1, 0);
  for (const idx level : plan.level) plan.level_ptr[level + 1]++;
  for (idx l = 0; l < n_levels; l++) plan.level_ptr[l + 1] += plan.level_ptr[l];
  plan.level_column.resize(plan.n);
  std::vector<idx> next(plan.level_ptr.begin(), plan.level_ptr.end());
  for (idx k = 0; k < plan.n; k++) plan.level_column[next[plan.level[k]]++] = k;
  const auto longer = [&](idx a, idx b) {
    return plan.col_ptr[a + 1] - plan.col_ptr[a] > plan.col_ptr[b + 1] - plan.col_ptr[b];
  };
  for (idx l = 0; l < n_levels; l++)
    std::stable_sort(plan.level_column.begin() + plan.level_ptr[l], plan.level_column.begin() + plan.level_ptr[l + 1],
                     longer);
}

}  // namespace gs::gpu
