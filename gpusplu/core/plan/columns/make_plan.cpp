#include "plan/columns/plan.hpp"

#include <algorithm>
#include <atomic>

#include "analysis/lu_pattern.hpp"
#include "base/require.hpp"
#include "base/stopwatch.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

std::vector<idx> inverse(const std::vector<idx>& perm) {
  std::vector<idx> out(perm.size());
  for (std::size_t k = 0; k < perm.size(); k++) out[perm[k]] = (idx)k;
  return out;
}

// U's column, diagonal included, then L's without it.
void join_columns(const LuPattern& lu, ColumnPlan& plan) {
  const idx n = plan.n;
  plan.col_ptr.resize((std::size_t)n + 1), plan.diag.resize(n), plan.u_ptr.resize((std::size_t)n + 1);
  for (idx k = 0; k <= n; k++) {
    plan.col_ptr[k] = lu.U.ptr[k] + lu.L.ptr[k] - k;
    plan.u_ptr[k] = lu.U.ptr[k] - k;
  }
  plan.row.resize(plan.col_ptr[n]);
  over_range(n, plan.col_ptr[n] / 4, [&](idx begin, idx end) {
    for (idx k = begin; k < end; k++) {
      const auto after =
          std::copy(lu.U.ind.data() + lu.U.ptr[k], lu.U.ind.data() + lu.U.ptr[k + 1], &plan.row[plan.col_ptr[k]]);
      plan.diag[k] = after - plan.row.data() - 1;
      std::copy(lu.L.ind.data() + lu.L.ptr[k] + 1, lu.L.ind.data() + lu.L.ptr[k + 1], after);
    }
  });
}

// The pattern found by another symbolic phase.
void take_columns(const ColumnPattern& pattern, ColumnPlan& plan) {
  const idx n = plan.n;
  plan.col_ptr.assign(pattern.col_ptr, pattern.col_ptr + n + 1), plan.diag.assign(pattern.diag, pattern.diag + n);
  plan.row.assign(pattern.row, pattern.row + plan.col_ptr[n]);
  plan.u_ptr.assign((std::size_t)n + 1, 0);
  for (idx k = 0; k < n; k++) plan.u_ptr[k + 1] = plan.u_ptr[k] + plan.diag[k] - plan.col_ptr[k];
}

void list_rows(ColumnPlan& plan) {
  const idx n = plan.n;
  plan.row_ptr.assign((std::size_t)n + 1, 0);
  for (const idx i : plan.row) plan.row_ptr[i + 1]++;
  for (idx i = 0; i < n; i++) plan.row_ptr[i + 1] += plan.row_ptr[i];
  plan.col.resize(plan.row.size()), plan.place.resize(plan.row.size());
  std::vector<off> next(plan.row_ptr.begin(), plan.row_ptr.end() - 1);
  for (idx k = 0; k < n; k++)
    for (off p = plan.col_ptr[k]; p < plan.col_ptr[k + 1]; p++) {
      const off to = next[plan.row[p]]++;
      plan.col[to] = k, plan.place[to] = p;
    }
}

}  // namespace

void find_pattern(PatternView A, const ColumnParameters& parameters, ColumnPlan& plan) {
  if (parameters.pattern.row) take_columns(parameters.pattern, plan);
  else join_columns(lu_pattern(A, inverse(plan.row_perm).data(), plan.col_perm.data()), plan);
  list_rows(plan);
  plan.flops = 0;
  for (idx j = 0; j < plan.n; j++) {
    const off *first = plan.place.data() + plan.row_ptr[j], *last = plan.place.data() + plan.row_ptr[j + 1];
    const off right = last - std::lower_bound(first, last, plan.diag[j] + 1);
    plan.flops += (double)right * (double)(plan.col_ptr[j + 1] - plan.diag[j] - 1);
  }
}

void place_column_entries(PatternView A, ColumnPlan& plan) {
  const off nnz = A.nnz();
  const std::vector<idx> position = inverse(plan.row_perm), column_position = inverse(plan.col_perm);
  const bool scaled = !plan.row_scale.empty();
  plan.entry_source.resize(nnz), plan.entry_place.resize(nnz), plan.entry_scale.resize(scaled ? nnz : 0);
  std::atomic<bool> missing = false;
  over_range(A.n, nnz, [&](idx begin, idx end) {
    for (idx j = begin; j < end; j++) {
      const idx k = column_position[j];
      const idx *first = plan.row.data() + plan.col_ptr[k], *last = plan.row.data() + plan.col_ptr[k + 1];
      for (off e = A.ptr[j]; e < A.ptr[j + 1]; e++) {
        plan.entry_source[e] = e;
        const idx* place = std::lower_bound(first, last, position[A.ind[e]]);
        if (place == last || *place != position[A.ind[e]]) missing = true;
        plan.entry_place[e] = place - plan.row.data();
        if (scaled) plan.entry_scale[e] = plan.row_scale[A.ind[e]] * plan.col_scale[j];
      }
    }
  });
  require(!missing, "the pattern of L + U has no place for an entry of A");
}

ColumnPlan make_column_plan(PatternView A, const idx* row_perm, const idx* col_perm,
                            const ColumnParameters& parameters) {
  const Stopwatch watch;
  ColumnPlan plan;
  plan.n = A.n;
  plan.row_perm.assign(row_perm, row_perm + A.n), plan.col_perm.assign(col_perm, col_perm + A.n);
  if (parameters.row_scale) plan.row_scale.assign(parameters.row_scale, parameters.row_scale + A.n);
  if (parameters.col_scale) plan.col_scale.assign(parameters.col_scale, parameters.col_scale + A.n);
  find_pattern(A, parameters, plan);
  place_column_entries(A, plan);
  find_levels(plan);
  map_updates(parameters, plan);
  plan.seconds = watch.seconds();
  return plan;
}

}  // namespace gs::gpu
