#include "bind/bind.hpp"
#include "plan/fronts/solve_schedule.hpp"

namespace gs {
using gpu::SolveSchedule;

namespace {

SolveSchedule schedule_in_parts(const gpu::Plan& plan, In<idx> part, idx parts) {
  const std::vector<idx> of_fronts = to_vector(part);
  return without_gil([&] { return gpu::make_solve_schedule(plan, of_fronts, parts); });
}

}  // namespace

void bind_solve_schedule(nb::module_& m) {
  nb::class_<SolveSchedule>(m, "SolveSchedule",
                            "Order of the solve on the GPU; see core/plan/fronts/solve_schedule.hpp.")
      .def_prop_ro("tickets", &SolveSchedule::tickets)
      .def_prop_ro("slot_bytes", &bytes_of<&SolveSchedule::slots>)
      .def_prop_ro("chunk_ptr", &view_of<&SolveSchedule::chunk_ptr>)
      .def_prop_ro("ticket_ptr", &view_of<&SolveSchedule::ticket_ptr>)
      .def_prop_ro("forward_ptr", &view_of<&SolveSchedule::forward_ptr>)
      .def_prop_ro("backward_ptr", &view_of<&SolveSchedule::backward_ptr>)
      .def_prop_ro("chunk_bytes", &bytes_of<&SolveSchedule::chunks>)
      .def_prop_ro("large_bytes", &bytes_of<&SolveSchedule::large>)
      .def_prop_ro("large_forward_bytes", &bytes_of<&SolveSchedule::large_forward>)
      .def_prop_ro("large_backward_bytes", &bytes_of<&SolveSchedule::large_backward>);
  m.def(
      "make_solve_schedule",
      [](const gpu::Plan& plan) { return without_gil([&] { return gpu::make_solve_schedule(plan); }); }, "plan"_a,
      "Order of the solve on the GPU for a plan.");
  m.def("make_solve_schedule_in_parts", &schedule_in_parts, "plan"_a, "part"_a, "parts"_a,
        "The same in so many parts, of which part[f] has front f.");
}

}  // namespace gs
