// Which front every entry of A goes to, and where in it: entry (i, j) belongs to the front that owns plan position
// min(i, j). Two passes over A by its own columns, in parallel over ranges of columns, so that the entries of a front
// ascend in A whatever the ranges are. Cost: O(nnz log R).
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/slices.hpp"
#include "plan/plan.hpp"

namespace gs::gpu {
namespace {

struct Positions {
  std::vector<idx> row, col, front;  // plan position of A's rows and columns; front of a position
  explicit Positions(const Plan& plan) : row(plan.n), col(plan.n), front(plan.n) {
    for (idx k = 0; k < plan.n; k++) row[plan.row_perm[k]] = k, col[plan.col_perm[k]] = k;
    for (idx f = 0; f < plan.nf; f++) std::fill_n(front.begin() + plan.first[f], plan.width[f], f);
  }
};

// visit(k, i, j, front) for the entries of A's columns [begin, end) that are assembled.
template <class Visit>
void for_entries(const Plan& plan, const Positions& at, PatternView A, idx begin, idx end, Visit&& visit) {
  for (idx column = begin; column < end; column++) {
    const idx j = at.col[column];
    for (off k = A.ptr[column]; k < A.ptr[column + 1]; k++) {
      const idx i = at.row[A.ind[k]];
      if (plan.cholesky && i < j) continue;
      visit(k, i, j, at.front[std::min(i, j)]);
    }
  }
}

std::uint32_t local_row(const Plan& plan, idx f, idx position) {
  const idx pivot = position - plan.first[f], W = plan.width[f];
  if (pivot < W) return (std::uint32_t)pivot;
  const idx* rows = plan.below.data() + plan.below_ptr[f];
  const idx* rows_end = plan.below.data() + plan.below_ptr[f + 1];
  return (std::uint32_t)(W + (std::lower_bound(rows, rows_end, position) - rows));
}

}  // namespace

void place_entries(PatternView A, Plan& plan) {
  if (A.nnz() > std::numeric_limits<idx>::max()) throw std::length_error("the matrix has more than 2147483647 entries");
  const Positions at(plan);
  const int n_parts = std::min({team_size_for(A.nnz()), num_threads(), 16});
  std::vector<idx> part_begin(n_parts + 1, A.n);
  std::vector<std::vector<off>> next(n_parts);
  for (int p = 0; p < n_parts; p++)
    part_begin[p] = (idx)(std::lower_bound(A.ptr, A.ptr + A.n, A.nnz() * p / n_parts) - A.ptr);
  part_begin[0] = 0;
  for (auto& counts : next) counts.assign(plan.nf, 0);
  run_team(n_parts, [&](const Team& team) {
    for (int p = team.rank; p < n_parts; p += team.size)
      for_entries(plan, at, A, part_begin[p], part_begin[p + 1], [&](off, idx, idx, idx f) { next[p][f]++; });
  });
  plan.entry_ptr.resize((std::size_t)plan.nf + 1);
  off total = 0;
  for (idx f = 0; f < plan.nf; f++) {
    plan.entry_ptr[f] = total;
    for (auto& counts : next) total += std::exchange(counts[f], total);
  }
  plan.entry_ptr[plan.nf] = total;
  plan.entry_source.resize(total), plan.entry_place.resize(total);
  const bool scaled = !plan.row_scale.empty();
  plan.entry_scale.resize(scaled ? total : 0);
  run_team(n_parts, [&](const Team& team) {
    for (int p = team.rank; p < n_parts; p += team.size)
      for_entries(plan, at, A, part_begin[p], part_begin[p + 1], [&](off k, idx i, idx j, idx f) {
        const off to = next[p][f]++;
        plan.entry_source[to] = (idx)k;
        plan.entry_place[to] = local_row(plan, f, i) | local_row(plan, f, j) << 16;
        if (scaled) plan.entry_scale[to] = plan.row_scale[plan.row_perm[i]] * plan.col_scale[plan.col_perm[j]];
      });
  });
}

}  // namespace gs::gpu
