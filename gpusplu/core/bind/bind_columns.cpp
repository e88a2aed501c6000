#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/columns/glu_schedule.hpp"
#include "plan/columns/groups.hpp"
#include "plan/columns/long_columns.hpp"
#include "plan/columns/plan.hpp"
#include "plan/columns/trailing.hpp"

namespace gs::gpu {
namespace {

// Columns of L + U from an external factorization: (pointers, rows, positions of the diagonal).
using Columns = std::tuple<In<off>, In<idx>, In<off>>;

ColumnPattern checked_columns(const Columns& columns, idx n) {
  const auto& [ptr, row, diag] = columns;
  require_length(ptr, (off)n + 1, "pointers of L + U");
  require_length(diag, n, "diag");
  const off *at = ptr.data(), *d = diag.data();
  require(at[0] == 0, "pointers of L + U must start with 0");
  for (idx k = 0; k < n; k++) require(at[k] <= at[k + 1], "pointers of L + U must ascend");
  require_entries(row, at[n], "row");
  const ColumnPattern pattern{n, at, d, row.data()};
  for (idx k = 0; k < n; k++) {
    const idx *first = pattern.row + at[k], *last = pattern.row + at[k + 1];
    require(d[k] >= at[k] && d[k] < at[k + 1] && pattern.row[d[k]] == k, "diag must be the place of the diagonal");
    require(*first >= 0 && *(last - 1) < n && std::is_sorted(first, last, std::less_equal<idx>()),
            "rows of L + U must ascend");
  }
  return pattern;
}

ColumnPlan make_columns(In<off> ptr, In<idx> ind, In<idx> row_perm, In<idx> col_perm, std::optional<In<double>> rows,
                        std::optional<In<double>> cols, double most_mapped, std::optional<Columns> columns) {
  const PatternView A = pattern_view(ptr, ind);
  require_permutation(row_perm, A.n, "row_perm");
  require_permutation(col_perm, A.n, "col_perm");
  require(rows.has_value() == cols.has_value(), "scales of rows and columns come together");
  if (rows) require_length(*rows, A.n, "row_scale"), require_length(*cols, A.n, "col_scale");
  ColumnParameters parameters;
  if (rows) parameters.row_scale = rows->data(), parameters.col_scale = cols->data();
  parameters.most_mapped = most_mapped;
  if (columns && A.n > 0) parameters.pattern = checked_columns(*columns, A.n);
  return without_gil([&] { return make_column_plan(A, row_perm.data(), col_perm.data(), parameters); });
}

// The columns before a division.
ColumnPattern columns_before(const ColumnPlan& plan, idx division) {
  require(division >= 0 && division <= plan.n, "the division must be in 0 .. n");
  return plan.first_columns(division);
}

GluSchedule glu_schedule(const ColumnPlan& plan, const Costs& costs, int forced, off capacity) {
  return without_gil([&] { return make_glu_schedule(plan, {forced, capacity, costs.glu.schedule}); });
}

auto column_groups(const ColumnPlan& plan, idx division, off leaf, off capacity, idx columns,
                   std::optional<In<idx>> single) {
  const ColumnPattern pattern = columns_before(plan, division);
  const GroupLimits limits{leaf, capacity, columns, single ? to_vector(*single) : std::vector<idx>()};
  ColumnGroups groups = without_gil([&] { return make_column_groups(pattern, limits); });
  return std::make_pair(to_numpy(std::move(groups.range)), to_numpy(std::move(groups.level_ptr)));
}

NumPy<idx> chosen_long_columns(const ColumnPlan& plan, idx division, const Costs& costs, off most_listed) {
  const ColumnPattern pattern = columns_before(plan, division);
  return to_numpy(
      without_gil([&] { return choose_long_columns(pattern, plan.level.data(), costs.columns.longest, most_listed); }));
}

Dict long_columns(const ColumnPlan& plan, In<idx> columns, const Costs& costs) {
  const std::vector<idx> chosen = to_vector(columns);
  for (const idx column : chosen) require(column >= 0 && column < plan.n, "columns must be in 0 .. n - 1");
  return dict_of<&LongColumns::parts, &LongColumns::target, &LongColumns::term_ptr, &LongColumns::term,
                 &LongColumns::level, &LongColumns::rest, &LongColumns::shallow>(
      without_gil([&] { return make_long_columns(plan.first_columns(plan.n), chosen, costs.columns.longest); }));
}

Dict column_times_binding(const ColumnPlan& plan, bool with_long_columns, const Costs& all, double column,
                          double update, double slice, double long_column, double long_depth) {
  const ColumnCosts costs{column, update, slice, long_column, long_depth};
  const idx* const levels = with_long_columns ? plan.level.data() : nullptr;
  return dict_of<&ColumnTimes::finish, &ColumnTimes::last, &ColumnTimes::depth>(
      without_gil([&] { return column_times(plan.first_columns(plan.n), levels, costs, all.columns.longest); }));
}

double longest_column(const ColumnPlan& plan, In<off> position, idx p, double entry, double term) {
  require_entries(position, plan.n, "position");
  return longest_trailing_column(plan.first_columns(plan.n), position.data(), p, entry, term);
}

off trailing_term_count(const ColumnPlan& plan, idx division) {
  (void)columns_before(plan, division);
  return count_trailing_terms(plan.first_columns(plan.n), division);
}

Dict trailing_terms(const ColumnPlan& plan, idx division, off capacity, off kept, off overlapped, int scalar_bytes) {
  (void)columns_before(plan, division);
  return dict_of<&TrailingTerms::term_ptr, &TrailingTerms::place, &TrailingTerms::position, &TrailingTerms::order,
                 &TrailingTerms::huge, &TrailingTerms::step_ptr, &TrailingTerms::step, &TrailingTerms::batch_ptr,
                 &TrailingTerms::batch, &TrailingTerms::need_ptr, &TrailingTerms::need>(without_gil([&] {
    return make_trailing_terms(plan.first_columns(plan.n), division, {capacity, kept, overlapped, scalar_bytes});
  }));
}

}  // namespace

void bind_columns(nb::module_& m) {
  nb::class_<ColumnPlan> plan(
      m, "ColumnPlan", "Plan of the column engines; see core/plan/columns/plan.hpp. Arrays are read-only views.");
  using Plan = ColumnPlan;
  def_members<&Plan::n, &Plan::nnz, &Plan::n_levels, &Plan::row_perm, &Plan::col_perm, &Plan::row_scale,
              &Plan::col_scale, &Plan::col_ptr, &Plan::row, &Plan::diag, &Plan::row_ptr, &Plan::col, &Plan::place,
              &Plan::entry_source, &Plan::entry_place, &Plan::entry_scale, &Plan::level, &Plan::level_left,
              &Plan::level_ptr, &Plan::level_column, &Plan::u_ptr, &Plan::has_maps, &Plan::map_ptr, &Plan::map,
              &Plan::flops, &Plan::seconds>(plan)
      .def("glu_schedule", &glu_schedule, "costs"_a, "forced"_a = -1, "capacity"_a = GluParameters{}.capacity,
           "Launches of the glu engine; `forced`: a mode for everything, `capacity`: scalars in shared memory.")
      .def("groups", &column_groups, "division"_a, "leaf"_a, "capacity"_a, "columns"_a, "single"_a = nb::none(),
           "(range, level_ptr): groups of columns for one block each; see core/plan/columns/groups.hpp.")
      .def(
          "columns_that_follow",
          [](const Plan& p) {
            return to_numpy(without_gil([&] { return columns_that_follow(p.first_columns(p.n)); }));
          },
          "1 for columns of L with the rows of the column before but for its own.")
      .def(
          "row_diagonals",
          [](const Plan& p) {
            return to_numpy(without_gil([&] { return row_diagonals(p.first_columns(p.n), p.row_ptr.data()); }));
          },
          "Where the diagonal lies in each row of L + U, by rows.")
      .def("choose_long_columns", &chosen_long_columns, "division"_a, "costs"_a, "most_listed"_a = 20'000'000,
           "Columns that are more than a warp's work; core/plan/columns/long_columns.hpp.")
      .def("long_columns", &long_columns, "columns"_a, "costs"_a,
           "Parts and terms of long columns; core/plan/columns/long_columns.hpp.")
      .def("column_times", &column_times_binding, "with_long_columns"_a, "costs"_a, "column"_a, "update"_a, "slice"_a,
           "long_column"_a, "long_depth"_a,
           "When columns are finished, the latest of those before, the chain of L; core/plan/columns/trailing.hpp.")
      .def("longest_trailing_column", &longest_column, "position"_a, "p"_a, "entry"_a, "term"_a)
      .def("count_trailing_terms", &trailing_term_count, "division"_a)
      .def("trailing_terms", &trailing_terms, "division"_a, "capacity"_a, "kept"_a, "overlapped"_a, "scalar_bytes"_a,
           "What a dense trailing block takes from the columns; core/plan/columns/trailing.hpp.");
  nb::class_<GluSchedule> schedule(m, "GluSchedule",
                                   "Launches of the glu engine; see core/plan/columns/glu_schedule.hpp.");
  def_members<&GluSchedule::tasks, &GluSchedule::chunks, &GluSchedule::runs, &GluSchedule::updates,
              &GluSchedule::places, &GluSchedule::chains, &GluSchedule::steps, &GluSchedule::level_chunk,
              &GluSchedule::predicted_seconds>(schedule);
  m.def("flag_words", &flag_words, "columns"_a, "Words of shared memory for the flags of a group of columns.");
  m.def("bitmap_words", &bitmap_words, "n"_a, "Words of shared memory of a warp in the symbolic phase of sflu.");
  m.def("make_column_plan", &make_columns, "ptr"_a, "ind"_a, "row_perm"_a, "col_perm"_a, "row_scale"_a = nb::none(),
        "col_scale"_a = nb::none(), "most_mapped"_a = 1e8, "columns"_a = nb::none(),
        "Plan of the column engines for a canonical pattern and gather permutations; `columns`: pointers, rows and "
        "places of the diagonal of L + U, where they are known.");
}

}  // namespace gs::gpu
