#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/fronts/segments.hpp"
#include "plan/fronts/solve_schedule.hpp"

namespace gs {
namespace {

using gpu::Plan;
using gpu::PlanParameters;

// Number of right-hand sides that the kernels process together, of `nrhs`.
int solve_columns(const Plan& plan, int nrhs) {
  return nrhs == 1 ? 1 : gpu::solve_rhs_group(plan.parameters.scalar_bytes());
}

// Blocks per multiprocessor and shared memory per block of a solve with that many right-hand sides at a time.
std::pair<int, int> solve_shape(const Plan& plan, int columns) {
  const int bytes = plan.parameters.scalar_bytes();
  return {gpu::solve_blocks(bytes), gpu::SOLVE_TICKET_BYTES + gpu::solve_scalars(columns) * bytes};
}
std::pair<int, int> large_solve_shape(const Plan& plan, bool forward, int columns) {
  const int bytes = plan.parameters.scalar_bytes();
  const int scalars = gpu::large_solve_scalars(plan.parameters.large_tile, columns);
  return {gpu::large_solve_blocks(forward, columns), gpu::SOLVE_TICKET_BYTES + scalars * bytes};
}

PlanParameters parameters_of(const Costs& costs, const nb::kwargs& named) {
  PlanParameters p;
  p.costs = costs.supernodal;
  const std::pair<const char*, int*> numbers[] = {{"shared_memory_bytes", &p.shared_memory_bytes},
                                                  {"multiprocessors", &p.multiprocessors},
                                                  {"arch", &p.arch},
                                                  {"warp_rows", &p.warp_rows},
                                                  {"small_rows", &p.small_rows},
                                                  {"large_cost", &p.large_cost},
                                                  {"block_rows", &p.block_rows},
                                                  {"large_tile", &p.large_tile}};
  for (const auto& [key, value] : named) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "block_bytes" || name == "memory_bytes") {
      (name == "block_bytes" ? p.block_bytes : p.memory_bytes) = nb::cast<off>(value);
      continue;
    }
    if (name == "scalar") {
      const std::string scalar = nb::cast<std::string>(value);
      if (scalar.size() != 1 || std::string("fdFD").find(scalar) == std::string::npos)
        throw nb::value_error(("scalar must be 'f', 'd', 'F' or 'D', got '" + scalar + "'").c_str());
      p.scalar = scalar[0];
      continue;
    }
    const auto* number = std::find_if(std::begin(numbers), std::end(numbers), [&](auto& n) { return n.first == name; });
    if (number == std::end(numbers)) throw nb::type_error(("a plan has no parameter '" + name + "'").c_str());
    *number->second = nb::cast<int>(value);
  }
  return p;
}

Plan make_plan_binding(const Symbolic& symbolic, In<off> ptr, In<idx> ind, const Costs& costs, nb::kwargs named) {
  const PlanParameters parameters = parameters_of(costs, named);
  const PatternView A = pattern_view(ptr, ind);
  require_structure_of(A, symbolic);
  return without_gil([&] { return gpu::make_plan(symbolic, A, parameters); });
}

Tuple<std::size_t, Plan, std::vector<double>> make_best_plan_binding(const std::vector<const Symbolic*>& symbolics,
                                                                     In<off> ptr, In<idx> ind, const Costs& costs,
                                                                     nb::kwargs named) {
  const PlanParameters parameters = parameters_of(costs, named);
  const PatternView A = pattern_view(ptr, ind);
  for (const Symbolic* symbolic : symbolics) require_analysis_of(A, *symbolic);
  auto best = without_gil([&] { return gpu::make_best_plan(symbolics, A, parameters); });
  return nb::make_tuple(best.which, std::move(best.plan), std::move(best.seconds));
}

Tuple<double, double> predict_plan_binding(const Symbolic& symbolic, const Costs& costs, nb::kwargs named) {
  const PlanParameters parameters = parameters_of(costs, named);
  const gpu::Prediction p = without_gil([&] { return gpu::predict_plan(symbolic, parameters); });
  return nb::make_tuple(p.factor_seconds, p.solve_seconds);
}

// Calls query(width, height, is large) for every front.
template <class Int, class Query> NumPy<Int> of_fronts(const Plan& plan, Query&& query) {
  std::vector<Int> found(plan.nf);
  for (idx f = 0; f < plan.nf; f++) found[f] = query(plan.width[f], plan.height(f), plan.phase[f] == gpu::LARGE_PHASE);
  return to_numpy(std::move(found));
}
NumPy<off> factor_entries(const Plan& plan) {
  return of_fronts<off>(plan, [&](idx W, idx H, bool large) { return gpu::factor_entries(plan, W, H, large); });
}
NumPy<idx> block_ld(const Plan& plan) {
  return of_fronts<idx>(plan, [](idx, idx H, bool large) { return gpu::block_ld(H, large); });
}
NumPy<off> block_entries(const Plan& plan) {
  return of_fronts<off>(plan, [](idx, idx H, bool large) { return gpu::block_entries(H, large); });
}

nb::typed<nb::dict, nb::str, double> tile_times(const Plan& plan) {
  const gpu::TileTimes times = gpu::tile_times(plan);
  nb::dict found;
  found["front"] = times.front, found["task"] = times.task, found["pivot"] = times.pivot;
  found["column"] = times.column, found["flop"] = times.flop, found["blocks"] = times.blocks;
  return found;
}

Plan plan_with_segments(const Plan& plan, In<idx> segment_ptr, In<idx> order, In<idx> device_of, idx devices) {
  std::vector<idx> ptr = to_vector(segment_ptr);
  const gpu::Turns turns{devices, to_vector(order), to_vector(device_of)};
  return without_gil([&] { return gpu::with_segments(plan, std::move(ptr), turns); });
}

Tuple<NumPy<double>, NumPy<double>> range_seconds(const Plan& plan, In<idx> begin, In<idx> end) {
  const std::vector<idx> first = to_vector(begin), last = to_vector(end);
  gpu::SegmentTimes times = without_gil([&] { return gpu::range_times(plan, first, last); });
  for (std::vector<double>* each : {&times.factor, &times.solve})
    for (double& time : *each) time *= 1e-6;
  return nb::make_tuple(to_numpy(std::move(times.factor)), to_numpy(std::move(times.solve)));
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan",
                   "Plan of the supernodal GPU engine; see core/plan/fronts/plan.hpp. Arrays are read-only views.")
      .def_ro("n", &Plan::n)
      .def_ro("nf", &Plan::nf)
      .def_ro("cholesky", &Plan::cholesky)
      .def_ro("ldlt", &Plan::ldlt)
      .def_ro("n_interface", &Plan::n_interface)
      .def_prop_ro("one_triangle", &Plan::one_triangle)
      .def_prop_ro("scalar", [](const Plan& p) { return std::string(1, p.parameters.scalar); })
      .def_prop_ro("warp_rows", [](const Plan& p) { return p.parameters.warp_rows; })
      .def_prop_ro("small_rows", [](const Plan& p) { return p.parameters.small_rows; })
      .def_prop_ro("block_rows", [](const Plan& p) { return p.parameters.block_rows; })
      .def_prop_ro("large_tile", [](const Plan& p) { return p.parameters.large_tile; })
      .def_prop_ro("row_perm", &view_of<&Plan::row_perm>)
      .def_prop_ro("col_perm", &view_of<&Plan::col_perm>)
      .def_prop_ro("row_scale", &view_of<&Plan::row_scale>)
      .def_prop_ro("col_scale", &view_of<&Plan::col_scale>)
      .def_prop_ro("width", &view_of<&Plan::width>)
      .def_prop_ro("rows", &view_of<&Plan::rows>)
      .def_prop_ro("first", &view_of<&Plan::first>)
      .def_prop_ro("parent", &view_of<&Plan::parent>)
      .def_prop_ro("phase", &view_of<&Plan::phase>)
      .def_prop_ro("level", &view_of<&Plan::level>)
      .def_prop_ro("below_ptr", &view_of<&Plan::below_ptr>)
      .def_prop_ro("below", &view_of<&Plan::below>)
      .def_prop_ro("place", &view_of<&Plan::place>)
      .def_prop_ro("child_ptr", &view_of<&Plan::child_ptr>)
      .def_prop_ro("child", &view_of<&Plan::child>)
      .def_prop_ro("entry_ptr", &view_of<&Plan::entry_ptr>)
      .def_prop_ro("entry_source", &view_of<&Plan::entry_source>)
      .def_prop_ro("entry_place", &view_of<&Plan::entry_place>)
      .def_prop_ro("entry_scale", &view_of<&Plan::entry_scale>)
      .def_prop_ro("factor_offset", &view_of<&Plan::factor_offset>)
      .def_prop_ro("block_offset", &view_of<&Plan::block_offset>)
      .def("factor_entries", &factor_entries, "Of each front [scalars].")
      .def("block_ld", &block_ld, "Leading dimension of each front's contribution block.")
      .def("block_entries", &block_entries, "Of each front's contribution block [scalars].")
      .def_ro("factor_size", &Plan::factor_size)
      .def_ro("block_size", &Plan::block_size)
      .def_prop_ro("factor_sizes", &view_of<&Plan::factor_sizes>)
      .def_prop_ro("block_sizes", &view_of<&Plan::block_sizes>)
      .def_prop_ro("received", &view_of<&Plan::received>)
      .def_prop_ro("owner_ptr", &view_of<&Plan::owner_ptr>)
      .def_prop_ro("partial", &view_of<&Plan::partial>)
      .def_prop_ro("item_bytes", &bytes_of<&Plan::items>)
      .def_prop_ro("segment_ptr", &view_of<&Plan::segment_ptr>)
      .def_prop_ro("segment_place", &view_of<&Plan::segment_place>)
      .def_prop_ro("segment_size", &view_of<&Plan::segment_size>)
      .def_prop_ro("launch_ptr", &view_of<&Plan::launch_ptr>)
      .def_ro("streamed", &Plan::streamed)
      .def_ro("host_size", &Plan::host_size)
      .def_prop_ro("start", &view_of<&Plan::start>)
      .def_prop_ro("gather_ptr", &view_of<&Plan::gather_ptr>)
      .def_prop_ro("gather_source", &view_of<&Plan::gather_source>)
      .def_prop_ro("front_bytes", &bytes_of<&Plan::fronts>)
      .def_prop_ro("launch_bytes", &bytes_of<&Plan::launches>)
      .def_prop_ro("large_task_bytes", &bytes_of<&Plan::large, &gpu::LargeTasks::tasks>)
      .def_prop_ro("large_front_bytes", &bytes_of<&Plan::large, &gpu::LargeTasks::fronts>)
      .def_prop_ro("large_chunk_bytes", &bytes_of<&Plan::large, &gpu::LargeTasks::chunks>)
      .def_prop_ro("large_chunk_ptr", &view_of<&Plan::large, &gpu::LargeTasks::chunk_ptr>)
      .def_prop_ro("large_counters", [](const Plan& p) { return p.large.counters; })
      .def_prop_ro("large_blocks", [](const Plan& p) { return p.parameters.large_shape().blocks; })
      .def_prop_ro("tile_times", &tile_times)
      .def("solve_columns", &solve_columns, "nrhs"_a)
      .def("solve_shape", &solve_shape, "columns"_a)
      .def("large_solve_shape", &large_solve_shape, "forward"_a, "columns"_a)
      .def_prop_ro("phase_seconds", &view_of<&Plan::phase_seconds>)
      .def_ro("factor_seconds", &Plan::factor_seconds)
      .def_ro("solve_seconds", &Plan::solve_seconds)
      .def_ro("flops", &Plan::flops)
      .def_ro("seconds", &Plan::seconds);

  m.def("front_ld", &gpu::front_ld, "rows"_a, "Leading dimension of a front in shared memory.");
  m.def("large_ld", &gpu::large_ld, "rows"_a, "Leading dimension of a part of a large front with so many rows.");
  m.def("make_plan", &make_plan_binding, "symbolic"_a, "ptr"_a, "ind"_a, "costs"_a, "parameters"_a,
        "Plan of the supernodal GPU engine for a symbolic of method 'front' and the canonical pattern it was made of. "
        "Parameters: fields of PlanParameters, core/plan/fronts/plan.hpp.");
  m.def(
      "make_best_plan", &make_best_plan_binding, "symbolics"_a, "ptr"_a, "ind"_a, "costs"_a, "parameters"_a,
      "(which, Plan, seconds of each) of those of several symbolics whose plan promises the fastest factorization and "
      "solve.");
  m.def("plan_with_segments", &plan_with_segments, "plan"_a, "segment_ptr"_a, "order"_a, "device_of"_a, "devices"_a,
        "The same fronts in segments that begin at these, which run in this order and on these devices.");
  m.def("range_seconds", &range_seconds, "plan"_a, "begin"_a, "end"_a,
        "(of a factorization, of one way of a solve): seconds predicted for ranges of fronts, begin <= f < end.");
  m.def("predict_plan", &predict_plan_binding, "symbolic"_a, "costs"_a, "parameters"_a,
        "(seconds of a factorization, of a solve) that a plan with these parameters would predict.");
}

}  // namespace gs
