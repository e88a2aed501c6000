#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/columns/glu_schedule.hpp"
#include "plan/columns/plan.hpp"

namespace gs {
namespace {

using gpu::ColumnPlan;

nb::object map_of(nb::handle self) {
  if (nb::cast<const ColumnPlan&>(self).map32.empty()) return nb::cast(view_of<&ColumnPlan::map16>(self));
  return nb::cast(view_of<&ColumnPlan::map32>(self));
}

// Columns of L + U from an external factorization: (pointers, rows, positions of the diagonal).
using Columns = std::tuple<In<off>, In<idx>, In<off>>;

gpu::ColumnPattern checked_columns(const Columns& columns, idx n) {
  const auto& [ptr, row, diag] = columns;
  require_length(ptr, (off)n + 1, "pointers of L + U");
  require_length(diag, n, "diag");
  const off *at = ptr.data(), *d = diag.data();
  require(at[0] == 0, "pointers of L + U must start with 0");
  for (idx k = 0; k < n; k++) require(at[k] <= at[k + 1], "pointers of L + U must ascend");
  const gpu::ColumnPattern pattern = column_pattern(ptr, row, diag);
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
  gpu::ColumnParameters parameters;
  if (rows) parameters.row_scale = rows->data(), parameters.col_scale = cols->data();
  parameters.most_mapped = most_mapped;
  if (columns && A.n > 0) parameters.pattern = checked_columns(*columns, A.n);
  return without_gil([&] { return gpu::make_column_plan(A, row_perm.data(), col_perm.data(), parameters); });
}

}  // namespace

void bind_columns(nb::module_& m) {
  nb::class_<ColumnPlan>(m, "ColumnPlan",
                         "Plan of the column engines; see core/plan/columns/plan.hpp. Arrays are read-only views.")
      .def_ro("n", &ColumnPlan::n)
      .def_prop_ro("nnz", &ColumnPlan::nnz)
      .def_prop_ro("n_levels", &ColumnPlan::n_levels)
      .def_prop_ro("row_perm", &view_of<&ColumnPlan::row_perm>)
      .def_prop_ro("col_perm", &view_of<&ColumnPlan::col_perm>)
      .def_prop_ro("row_scale", &view_of<&ColumnPlan::row_scale>)
      .def_prop_ro("col_scale", &view_of<&ColumnPlan::col_scale>)
      .def_prop_ro("col_ptr", &view_of<&ColumnPlan::col_ptr>)
      .def_prop_ro("row", &view_of<&ColumnPlan::row>)
      .def_prop_ro("diag", &view_of<&ColumnPlan::diag>)
      .def_prop_ro("row_ptr", &view_of<&ColumnPlan::row_ptr>)
      .def_prop_ro("col", &view_of<&ColumnPlan::col>)
      .def_prop_ro("place", &view_of<&ColumnPlan::place>)
      .def_prop_ro("entry_source", &view_of<&ColumnPlan::entry_source>)
      .def_prop_ro("entry_place", &view_of<&ColumnPlan::entry_place>)
      .def_prop_ro("entry_scale", &view_of<&ColumnPlan::entry_scale>)
      .def_prop_ro("level", &view_of<&ColumnPlan::level>)
      .def_prop_ro("level_left", &view_of<&ColumnPlan::level_left>)
      .def_prop_ro("level_ptr", &view_of<&ColumnPlan::level_ptr>)
      .def_prop_ro("level_column", &view_of<&ColumnPlan::level_column>)
      .def_prop_ro("u_ptr", &view_of<&ColumnPlan::u_ptr>)
      .def_ro("has_maps", &ColumnPlan::has_maps)
      .def_prop_ro("map_ptr", &view_of<&ColumnPlan::map_ptr>)
      .def_prop_ro("map", &map_of)
      .def_ro("flops", &ColumnPlan::flops)
      .def_ro("seconds", &ColumnPlan::seconds);
  using gpu::GluSchedule;
  nb::class_<GluSchedule>(m, "GluSchedule", "Launches of the glu engine; see core/plan/columns/glu_schedule.hpp.")
      .def_prop_ro("task_bytes", &bytes_of<&GluSchedule::tasks>)
      .def_prop_ro("chunk_bytes", &bytes_of<&GluSchedule::chunks>)
      .def_prop_ro("run_bytes", &bytes_of<&GluSchedule::runs>)
      .def_prop_ro("update_bytes", &bytes_of<&GluSchedule::updates>)
      .def_prop_ro("place_bytes", &bytes_of<&GluSchedule::places>)
      .def_prop_ro("chain_bytes", &bytes_of<&GluSchedule::chains>)
      .def_prop_ro("step_bytes", &bytes_of<&GluSchedule::steps>)
      .def_prop_ro("level_chunk", &view_of<&GluSchedule::level_chunk>)
      .def_ro("predicted_seconds", &GluSchedule::predicted_seconds);
  m.def(
      "make_glu_schedule",
      [](const ColumnPlan& plan, const Costs& costs, int forced, off capacity) {
        const gpu::GluParameters parameters{forced, capacity, costs.glu.schedule};
        return without_gil([&] { return gpu::make_glu_schedule(plan, parameters); });
      },
      "plan"_a, "costs"_a, "forced"_a = -1, "capacity"_a = gpu::GluParameters{}.capacity,
      "Launches for a column plan; `forced`: a mode for everything, `capacity`: scalars in shared memory.");
  m.def("make_column_plan", &make_columns, "ptr"_a, "ind"_a, "row_perm"_a, "col_perm"_a, "row_scale"_a = nb::none(),
        "col_scale"_a = nb::none(), "most_mapped"_a = 1e8, "columns"_a = nb::none(),
        "Plan of the column engines for a canonical pattern and gather permutations; `columns`: pointers, rows and "
        "places of the diagonal of L + U, where they are known.");
}

}  // namespace gs
