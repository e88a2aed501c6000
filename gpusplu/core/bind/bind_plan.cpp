#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/fronts/segments.hpp"
#include "plan/fronts/solve_schedule.hpp"

namespace gs::gpu {
namespace {

// Number of right-hand sides that the kernels process together, of `nrhs`.
int solve_columns(const Plan& plan, int nrhs) {
  return nrhs == 1 ? 1 : solve_rhs_group(plan.parameters.scalar_bytes());
}

// Blocks per multiprocessor and shared memory per block of a solve with that many right-hand sides at a time.
std::pair<int, int> solve_shape(const Plan& plan, int columns) {
  const int bytes = plan.parameters.scalar_bytes();
  return {solve_blocks(bytes), SOLVE_TICKET_BYTES + solve_scalars(columns) * bytes};
}
std::pair<int, int> large_solve_shape_of(const Plan& plan, bool forward, int columns) {
  const int bytes = plan.parameters.scalar_bytes();
  const int scalars = large_solve_scalars(plan.parameters.large_tile, columns);
  return {large_solve_blocks(forward, columns), SOLVE_TICKET_BYTES + scalars * bytes};
}

PlanParameters parameters_of(const Costs& costs, const nb::kwargs& named) {
  using P = PlanParameters;
  P parameters;
  parameters.costs = costs.supernodal;
  set_members<&P::scalar, &P::shared_memory_bytes, &P::multiprocessors, &P::block_bytes, &P::memory_bytes, &P::arch,
              &P::warp_rows, &P::small_rows, &P::block_rows, &P::large_cost, &P::large_tile>(parameters, named);
  require(std::string("fdFD").find(parameters.scalar) != std::string::npos, "scalar must be 'f', 'd', 'F' or 'D'");
  return parameters;
}

Plan make_plan_binding(const Symbolic& symbolic, In<off> ptr, In<idx> ind, const Costs& costs, nb::kwargs named) {
  const PlanParameters parameters = parameters_of(costs, named);
  const PatternView A = pattern_view(ptr, ind);
  require_structure_of(A, symbolic);
  return without_gil([&] { return make_plan(symbolic, A, parameters); });
}

Tuple<std::size_t, Plan, std::vector<double>> make_best_plan_binding(const std::vector<const Symbolic*>& symbolics,
                                                                     In<off> ptr, In<idx> ind, const Costs& costs,
                                                                     nb::kwargs named) {
  const PlanParameters parameters = parameters_of(costs, named);
  const PatternView A = pattern_view(ptr, ind);
  for (const Symbolic* symbolic : symbolics) require_analysis_of(A, *symbolic);
  auto best = without_gil([&] { return make_best_plan(symbolics, A, parameters); });
  return nb::make_tuple(best.which, std::move(best.plan), std::move(best.seconds));
}

Tuple<double, double> predict_plan_binding(const Symbolic& symbolic, const Costs& costs, nb::kwargs named) {
  const PlanParameters parameters = parameters_of(costs, named);
  const Prediction p = without_gil([&] { return predict_plan(symbolic, parameters); });
  return nb::make_tuple(p.factor_seconds, p.solve_seconds);
}

// Calls query(width, height, is large) for every front.
template <class Int, class Query> NumPy<Int> of_fronts(const Plan& plan, Query&& query) {
  std::vector<Int> found(plan.nf);
  for (idx f = 0; f < plan.nf; f++) found[f] = query(plan.width[f], plan.height(f), plan.phase[f] == LARGE_PHASE);
  return to_numpy(std::move(found));
}
NumPy<off> factor_entries_of(const Plan& plan) {
  return of_fronts<off>(plan, [&](idx W, idx H, bool large) { return factor_entries(plan, W, H, large); });
}
NumPy<idx> block_ld_of(const Plan& plan) {
  return of_fronts<idx>(plan, [](idx, idx H, bool large) { return block_ld(H, large); });
}
NumPy<off> block_entries_of(const Plan& plan) {
  return of_fronts<off>(plan, [](idx, idx H, bool large) { return block_entries(H, large); });
}

Dict tile_times_binding(const Plan& plan) {
  return dict_of<&TileTimes::front, &TileTimes::task, &TileTimes::pivot, &TileTimes::column, &TileTimes::flop,
                 &TileTimes::blocks>(tile_times(plan));
}

Plan plan_with_segments(const Plan& plan, In<idx> segment_ptr, In<idx> order, In<idx> device_of, idx devices) {
  std::vector<idx> ptr = to_vector(segment_ptr);
  const Turns turns{devices, to_vector(order), to_vector(device_of)};
  return without_gil([&] { return with_segments(plan, std::move(ptr), turns); });
}

// Of a factorization of ranges of fronts.
NumPy<double> range_seconds(const Plan& plan, In<idx> begin, In<idx> end) {
  const std::vector<idx> first = to_vector(begin), last = to_vector(end);
  SegmentTimes times = without_gil([&] { return range_times(plan, first, last); });
  for (double& time : times.factor) time *= 1e-6;
  return to_numpy(std::move(times.factor));
}

SolveSchedule solve_schedule(const Plan& plan, const std::optional<In<idx>>& part, idx parts) {
  if (!part) return without_gil([&] { return make_solve_schedule(plan); });
  require_length(*part, plan.nf, "part");
  const std::vector<idx> of_fronts = to_vector(*part);
  return without_gil([&] { return make_solve_schedule(plan, of_fronts, parts); });
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Plan> plan(
      m, "Plan", "Plan of the supernodal GPU engine; see core/plan/fronts/plan.hpp. Arrays are read-only views.");
  def_members<&Plan::n, &Plan::nf, &Plan::cholesky, &Plan::ldlt, &Plan::n_interface, &Plan::one_triangle,
              &Plan::row_perm, &Plan::col_perm, &Plan::row_scale, &Plan::col_scale, &Plan::width, &Plan::rows,
              &Plan::first, &Plan::parent, &Plan::phase, &Plan::level, &Plan::below_ptr, &Plan::below, &Plan::place,
              &Plan::child_ptr, &Plan::child, &Plan::entry_ptr, &Plan::entry_source, &Plan::entry_place,
              &Plan::entry_scale, &Plan::factor_offset, &Plan::block_offset, &Plan::factor_size, &Plan::block_size,
              &Plan::factor_sizes, &Plan::block_sizes, &Plan::received, &Plan::owner_ptr, &Plan::partial, &Plan::items,
              &Plan::segment_ptr, &Plan::segment_place, &Plan::segment_size, &Plan::launch_ptr, &Plan::streamed,
              &Plan::host_size, &Plan::start, &Plan::gather_ptr, &Plan::gather_source, &Plan::fronts, &Plan::launches,
              &Plan::phase_seconds, &Plan::factor_seconds, &Plan::solve_seconds, &Plan::flops, &Plan::seconds>(plan)
      .def_prop_ro("scalar", [](const Plan& p) { return p.parameters.scalar; })
      .def_prop_ro("warp_rows", [](const Plan& p) { return p.parameters.warp_rows; })
      .def_prop_ro("small_rows", [](const Plan& p) { return p.parameters.small_rows; })
      .def_prop_ro("block_rows", [](const Plan& p) { return p.parameters.block_rows; })
      .def_prop_ro("large_tile", [](const Plan& p) { return p.parameters.large_tile; })
      .def_prop_ro("large_tasks", &view_of<&Plan::large, &LargeTasks::tasks>)
      .def_prop_ro("large_fronts", &view_of<&Plan::large, &LargeTasks::fronts>)
      .def_prop_ro("large_chunks", &view_of<&Plan::large, &LargeTasks::chunks>)
      .def_prop_ro("large_chunk_ptr", &view_of<&Plan::large, &LargeTasks::chunk_ptr>)
      .def_prop_ro("large_counters", [](const Plan& p) { return p.large.counters; })
      .def_prop_ro("large_blocks", [](const Plan& p) { return p.parameters.large_shape().blocks; })
      .def("factor_entries", &factor_entries_of, "Of each front [scalars].")
      .def("block_ld", &block_ld_of, "Leading dimension of each front's contribution block.")
      .def("block_entries", &block_entries_of, "Of each front's contribution block [scalars].")
      .def("tile_times", &tile_times_binding)
      .def("solve_columns", &solve_columns, "nrhs"_a)
      .def("solve_shape", &solve_shape, "columns"_a)
      .def("large_solve_shape", &large_solve_shape_of, "forward"_a, "columns"_a)
      .def("with_segments", &plan_with_segments, "segment_ptr"_a, "order"_a, "device_of"_a, "devices"_a,
           "The same fronts in segments that begin at these, which run in this order and on these devices.")
      .def("range_seconds", &range_seconds, "begin"_a, "end"_a,
           "Seconds of a factorization predicted for ranges of fronts, begin <= f < end.")
      .def("solve_schedule", &solve_schedule, "part"_a = nb::none(), "parts"_a = 0,
           "Order of the solve on the GPU; in so many parts, of which part[f] has front f.");
  using Schedule = SolveSchedule;
  nb::class_<Schedule> schedule(m, "SolveSchedule",
                                "Order of the solve on the GPU; see core/plan/fronts/solve_schedule.hpp.");
  def_members<&Schedule::tickets, &Schedule::slots, &Schedule::chunk_ptr, &Schedule::ticket_ptr, &Schedule::forward_ptr,
              &Schedule::backward_ptr, &Schedule::chunks, &Schedule::large, &Schedule::large_forward,
              &Schedule::large_backward>(schedule);
  m.def("front_ld", &front_ld, "rows"_a, "Leading dimension of a front in shared memory.");
  m.def("large_ld", &large_ld, "rows"_a, "Leading dimension of a part of a large front with so many rows.");
  m.def("make_plan", &make_plan_binding, "symbolic"_a, "ptr"_a, "ind"_a, "costs"_a, "parameters"_a,
        "Plan of the supernodal GPU engine for a symbolic of method 'front' and the canonical pattern it was made of. "
        "Parameters: fields of PlanParameters, core/plan/fronts/plan.hpp.");
  m.def(
      "make_best_plan", &make_best_plan_binding, "symbolics"_a, "ptr"_a, "ind"_a, "costs"_a, "parameters"_a,
      "(which, Plan, seconds of each) of those of several symbolics whose plan promises the fastest factorization and "
      "solve.");
  m.def("predict_plan", &predict_plan_binding, "symbolic"_a, "costs"_a, "parameters"_a,
        "(seconds of a factorization, of a solve) that a plan with these parameters would predict.");
}

}  // namespace gs::gpu
