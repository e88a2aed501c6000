#include "bind/bind.hpp"
#include "plan/fronts/solve_schedule.hpp"

namespace gs {
namespace {

using gpu::SolveSchedule;

// An array of structs as bytes; Python gives it a type.
template <auto member> auto bytes_of(nb::handle self) {
  const auto& v = nb::cast<const SolveSchedule&>(self).*member;
  return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(v.data(), {v.size() * sizeof(v[0])}, self);
}

template <auto member> auto array_of(nb::handle self) {
  return view_numpy(nb::cast<const SolveSchedule&>(self).*member, self);
}

}  // namespace

void bind_solve_schedule(nb::module_& m) {
  nb::class_<SolveSchedule>(m, "SolveSchedule",
                            "Order of the solve on the GPU; see core/plan/fronts/solve_schedule.hpp.")
      .def_prop_ro("tickets", &SolveSchedule::tickets)
      .def_prop_ro("slot_bytes", &bytes_of<&SolveSchedule::slots>)
      .def_prop_ro("piece_ptr", &array_of<&SolveSchedule::piece_ptr>)
      .def_prop_ro("ticket_ptr", &array_of<&SolveSchedule::ticket_ptr>)
      .def_prop_ro("forward_ptr", &array_of<&SolveSchedule::forward_ptr>)
      .def_prop_ro("backward_ptr", &array_of<&SolveSchedule::backward_ptr>)
      .def_prop_ro("piece_bytes", &bytes_of<&SolveSchedule::pieces>)
      .def_prop_ro("large_bytes", &bytes_of<&SolveSchedule::large>)
      .def_prop_ro("large_forward_bytes", &bytes_of<&SolveSchedule::large_forward>)
      .def_prop_ro("large_backward_bytes", &bytes_of<&SolveSchedule::large_backward>);
  m.def("make_solve_schedule", &gpu::make_solve_schedule, "plan"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Order of the solve on the GPU for a plan.");
}

}  // namespace gs
