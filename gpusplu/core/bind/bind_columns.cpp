#include <nanobind/stl/optional.h>

#include <optional>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/columns/glu_schedule.hpp"
#include "plan/columns/plan.hpp"

namespace gs {
namespace {

using gpu::ColumnPlan;

template <auto member> auto array_of(nb::handle self) {
  const auto& v = nb::cast<const ColumnPlan&>(self).*member;
  using T = std::remove_cvref_t<decltype(v[0])>;
  return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(v.data(), {v.size()}, self);
}

nb::object map_of(nb::handle self) {
  if (nb::cast<const ColumnPlan&>(self).map32.empty()) return nb::cast(array_of<&ColumnPlan::map16>(self));
  return nb::cast(array_of<&ColumnPlan::map32>(self));
}

template <class V> nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>> bytes_of(const V& v, nb::handle self) {
  return {v.data(), {v.size() * sizeof(v[0])}, self};
}

ColumnPlan make_binding(In<off> ptr, In<idx> ind, In<idx> row_perm, In<idx> col_perm, std::optional<In<double>> rows,
                        std::optional<In<double>> cols, double most_mapped) {
  const PatternView A = pattern_view(ptr, ind);
  require_permutation(row_perm, A.n, "row_perm");
  require_permutation(col_perm, A.n, "col_perm");
  require(rows.has_value() == cols.has_value(), "scales of rows and columns come together");
  if (rows) require_length(*rows, A.n, "row_scale"), require_length(*cols, A.n, "col_scale");
  gpu::ColumnParameters parameters;
  if (rows) parameters.row_scale = rows->data(), parameters.col_scale = cols->data();
  parameters.most_mapped = most_mapped;
  return without_gil([&] { return gpu::make_column_plan(A, row_perm.data(), col_perm.data(), parameters); });
}

}  // namespace

void bind_columns(nb::module_& m) {
  nb::class_<ColumnPlan>(m, "ColumnPlan",
                         "Plan of the column engines; see core/plan/columns/plan.hpp. Arrays are read-only views.")
      .def_ro("n", &ColumnPlan::n)
      .def_prop_ro("nnz", &ColumnPlan::nnz)
      .def_prop_ro("n_levels", &ColumnPlan::n_levels)
      .def_prop_ro("row_perm", &array_of<&ColumnPlan::row_perm>)
      .def_prop_ro("col_perm", &array_of<&ColumnPlan::col_perm>)
      .def_prop_ro("row_scale", &array_of<&ColumnPlan::row_scale>)
      .def_prop_ro("col_scale", &array_of<&ColumnPlan::col_scale>)
      .def_prop_ro("col_ptr", &array_of<&ColumnPlan::col_ptr>)
      .def_prop_ro("row", &array_of<&ColumnPlan::row>)
      .def_prop_ro("diag", &array_of<&ColumnPlan::diag>)
      .def_prop_ro("row_ptr", &array_of<&ColumnPlan::row_ptr>)
      .def_prop_ro("col", &array_of<&ColumnPlan::col>)
      .def_prop_ro("place", &array_of<&ColumnPlan::place>)
      .def_prop_ro("entry_source", &array_of<&ColumnPlan::entry_source>)
      .def_prop_ro("entry_place", &array_of<&ColumnPlan::entry_place>)
      .def_prop_ro("entry_scale", &array_of<&ColumnPlan::entry_scale>)
      .def_prop_ro("level", &array_of<&ColumnPlan::level>)
      .def_prop_ro("level_left", &array_of<&ColumnPlan::level_left>)
      .def_prop_ro("level_ptr", &array_of<&ColumnPlan::level_ptr>)
      .def_prop_ro("level_column", &array_of<&ColumnPlan::level_column>)
      .def_prop_ro("u_ptr", &array_of<&ColumnPlan::u_ptr>)
      .def_ro("has_maps", &ColumnPlan::has_maps)
      .def_prop_ro("map_ptr", &array_of<&ColumnPlan::map_ptr>)
      .def_prop_ro("map", &map_of)
      .def_ro("flops", &ColumnPlan::flops)
      .def_ro("seconds", &ColumnPlan::seconds);
  using gpu::GluSchedule;
  nb::class_<GluSchedule>(m, "GluSchedule", "Launches of the glu engine; see core/plan/columns/glu_schedule.hpp.")
      .def_prop_ro("task_bytes",
                   [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).tasks, self); })
      .def_prop_ro("piece_bytes",
                   [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).pieces, self); })
      .def_prop_ro("run_bytes", [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).runs, self); })
      .def_prop_ro("update_bytes",
                   [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).updates, self); })
      .def_prop_ro("place_bytes",
                   [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).places, self); })
      .def_prop_ro("chain_bytes",
                   [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).chains, self); })
      .def_prop_ro("step_bytes",
                   [](nb::handle self) { return bytes_of(nb::cast<const GluSchedule&>(self).steps, self); })
      .def_prop_ro("level_piece",
                   [](nb::handle self) { return view_numpy(nb::cast<const GluSchedule&>(self).level_piece, self); })
      .def_ro("predicted_seconds", &GluSchedule::predicted_seconds);
  m.def(
      "make_glu_schedule",
      [](const ColumnPlan& plan, const Costs& costs, int forced, off capacity) {
        const gpu::GluParameters parameters{forced, capacity, costs.glu.schedule};
        return without_gil([&] { return gpu::make_glu_schedule(plan, parameters); });
      },
      "plan"_a, "costs"_a, "forced"_a = -1, "capacity"_a = gpu::GluParameters{}.capacity,
      "Launches for a column plan; `forced`: a mode for everything, `capacity`: scalars in shared memory.");
  m.def("make_column_plan", &make_binding, "ptr"_a, "ind"_a, "row_perm"_a, "col_perm"_a, "row_scale"_a = nb::none(),
        "col_scale"_a = nb::none(), "most_mapped"_a = 1e8,
        "Plan of the column engines for a canonical pattern and gather permutations.");
}

}  // namespace gs
