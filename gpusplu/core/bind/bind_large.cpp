// Task lists of large fronts alone, without a plan: for benchmarks and tests of their kernels.
#include <stdexcept>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/fronts/large_tasks.hpp"

namespace gs {
namespace {

using gpu::LargeTasks;

template <auto member> auto bytes_of(nb::handle self) {
  const auto& v = nb::cast<const LargeTasks&>(self).*member;
  return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(v.data(), {v.size() * sizeof(v[0])}, self);
}

LargeTasks make(In<idx> width, In<idx> rows, In<idx> parent, In<idx> phase, In<off> below_ptr, In<std::uint16_t> place,
                In<idx> child_ptr, In<idx> child, const std::string& scalar, bool cholesky, int multiprocessors) {
  const std::size_t nf = width.shape(0);
  if (rows.shape(0) != nf || parent.shape(0) != nf || phase.shape(0) != nf || below_ptr.shape(0) != nf + 1 ||
      child_ptr.shape(0) != nf + 1)
    throw std::invalid_argument("make_large_tasks: arrays of fronts differ in length");
  for (std::size_t f = 0; f < nf; f++)
    require(parent.data()[f] < (idx)nf && width.data()[f] >= 0 && rows.data()[f] >= width.data()[f],
            "make_large_tasks: a front has a parent that is none, or fewer rows than columns");
  require_entries(place, below_ptr.data()[nf], "place");
  require_entries(child, child_ptr.data()[nf], "child");
  require(scalar.size() == 1 && std::string("fdFD").find(scalar) != std::string::npos,
          "scalar must be 'f', 'd', 'F' or 'D'");
  const std::vector<off> entry_ptr(nf + 1, 0);
  return gpu::make_large_tasks({.nf = (idx)nf,
                                .cholesky = cholesky,
                                .scalar = scalar[0],
                                .tile = gpu::large_tile(gpu::scalar_bytes(scalar[0])),
                                .multiprocessors = multiprocessors,
                                .width = width.data(),
                                .rows = rows.data(),
                                .parent = parent.data(),
                                .phase = phase.data(),
                                .below_ptr = below_ptr.data(),
                                .place = place.data(),
                                .child_ptr = child_ptr.data(),
                                .child = child.data(),
                                .entry_ptr = entry_ptr.data()});
}

}  // namespace

void bind_large(nb::module_& m) {
  nb::class_<LargeTasks>(m, "LargeTasks", "Tasks of the kernel of large fronts; see core/plan/fronts/large_tasks.hpp.")
      .def_prop_ro("task_bytes", &bytes_of<&LargeTasks::tasks>)
      .def_prop_ro("front_bytes", &bytes_of<&LargeTasks::fronts>)
      .def_prop_ro("piece_bytes", &bytes_of<&LargeTasks::pieces>)
      .def_prop_ro("piece_ptr",
                   [](nb::handle self) { return view_numpy(nb::cast<const LargeTasks&>(self).piece_ptr, self); })
      .def_ro("counters", &LargeTasks::counters)
      .def_ro("seconds", &LargeTasks::seconds);
  m.def("make_large_tasks", &make, "width"_a, "rows"_a, "parent"_a, "phase"_a, "below_ptr"_a, "place"_a, "child_ptr"_a,
        "child"_a, "scalar"_a = "d", "cholesky"_a = false, "multiprocessors"_a = 132,
        "Tasks of the fronts of phase 3 among those given, without entries of A.");
}

}  // namespace gs
