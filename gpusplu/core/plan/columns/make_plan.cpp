#include "plan/columns/plan.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "analysis/graph.hpp"
#include "analysis/lu_pattern.hpp"
#include "base/stopwatch.hpp"
#include "base/types.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

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

void find_pattern(PatternView A, const ColumnParameters& parameters, ColumnPlan& plan) {
  if (parameters.pattern.row) take_columns(parameters.pattern, plan);
  else
    join_columns(lu_pattern(A, inverse_permutation(plan.row_perm.data(), plan.n).data(), plan.col_perm.data()), plan);
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
  const std::vector<idx> position = inverse_permutation(plan.row_perm.data(), plan.n),
                         column_position = inverse_permutation(plan.col_perm.data(), plan.n);
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

// An order in which columns can be processed. Cost: a visit of every entry, and a sort of the columns.
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

// Targets of all updates, so that kernels need not search. Columns in parallel; each marks its rows once.
void write_maps(ColumnPlan& plan) {
  using Position = std::uint16_t;
  plan.map.resize(plan.map_ptr.back());
  const int threads = threads_for((off)plan.flops / 4);
  const idx ranges = threads == 1 ? 1 : 8 * threads;
  over_tasks(threads, ranges, [&](idx part) {
    // ranges of about equal numbers of updates
    const auto cut = [&](idx which) {
      const off target = plan.map_ptr.back() / ranges * which;
      const auto u = std::lower_bound(plan.map_ptr.begin(), plan.map_ptr.end(), target) - plan.map_ptr.begin();
      return (idx)(std::lower_bound(plan.u_ptr.begin(), plan.u_ptr.end(), u) - plan.u_ptr.begin());
    };
    RawVector<Position> at(plan.n);
    const idx end = part + 1 == ranges ? plan.n : cut(part + 1);
    for (idx k = part ? cut(part) : 0; k < end; k++) {
      const off begin = plan.col_ptr[k];
      for (off p = begin; p < plan.col_ptr[k + 1]; p++) at[plan.row[p]] = (Position)(p - begin);
      Position* to = plan.map.data() + plan.map_ptr[plan.u_ptr[k]];
      for (off p = begin; p < plan.diag[k]; p++) {
        const idx j = plan.row[p];
        for (off q = plan.diag[j] + 1; q < plan.col_ptr[j + 1]; q++) *to++ = at[plan.row[q]];
      }
    }
  });
}

void map_updates(const ColumnParameters& parameters, ColumnPlan& plan) {
  constexpr off kLong = 65536;  // entries of a column in which a position does not fit 16 bits
  bool is_long = false;
  for (idx k = 0; k < plan.n; k++) is_long = is_long || plan.col_ptr[k + 1] - plan.col_ptr[k] >= kLong;
  plan.has_maps = plan.flops <= parameters.most_mapped && !is_long;
  if (!plan.has_maps) return;
  plan.map_ptr.resize(plan.u_ptr[plan.n] + 1);
  off sum = 0, u = 0;
  for (idx k = 0; k < plan.n; k++)
    for (off p = plan.col_ptr[k]; p < plan.diag[k]; p++) {
      plan.map_ptr[u++] = sum;
      sum += plan.col_ptr[plan.row[p] + 1] - plan.diag[plan.row[p]] - 1;
    }
  plan.map_ptr[u] = sum;
  write_maps(plan);
}

}  // namespace

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
