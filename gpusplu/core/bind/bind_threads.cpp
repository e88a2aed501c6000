#include <stdexcept>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/stopwatch.hpp"
#include "base/threads.hpp"
#include "bind/bind.hpp"
#include "simd/select.hpp"

namespace gs {

namespace {

using Spans = std::vector<FrontSpan>;
using Make = nb::typed<nb::callable, nb::any()>;

// Calls `make` and returns its result with the fronts that threads worked on meanwhile.
Tuple<nb::object, NumPy<std::uint8_t>> with_fronts_recorded(Make make) {
  Spans spans;
  struct Recording {
    Spans* before;
    explicit Recording(Spans* spans) : before(std::exchange(recorded_fronts, spans)) {}
    ~Recording() { recorded_fronts = before; }
  };
  nb::object made;
  {
    const Recording recording(&spans);
    made = nb::steal(enter_python([&] { return PyObject_CallNoArgs(make.ptr()); }));
  }
  if (!made.is_valid()) throw nb::python_error();
  return nb::make_tuple(made, to_numpy(std::move(spans)));
}

}  // namespace

void bind_threads(nb::module_& m) {
  m.def("num_threads", &num_threads, "Threads that the core uses at most.");
  m.def("work_apart", &work_apart, "begin"_a,
        "Until the end the calling thread has a pool beside that of the core's callers, and each side half of the "
        "threads.");
  m.def("set_num_threads", &set_num_threads, "n"_a, "Limit the core's threads; n < 1 restores the default.");
  m.def("simd_level", &simd_level, "Instruction set level of the kernels in use.");
  m.def("with_fronts_recorded", &with_fronts_recorded, "make"_a,
        "What a callable returns, and bytes of a FrontSpan, core/base/stopwatch.hpp, for each front that it factored.");
  using To = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using From = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "copy",
      [](const To& to, const From& from) {
        if (to.nbytes() != from.nbytes()) throw std::length_error("copy: arrays of different sizes");
        without_gil([&] { copy_bytes(to.data(), from.data(), from.nbytes()); });
      },
      "to"_a.noconvert(), "source"_a.noconvert(),
      "Copy the bytes of one array to another, by several threads where they are many.");
}

}  // namespace gs

// threadpoolctl calls this (gpusplu/common/threads.py registers a controller).
extern "C" __attribute__((visibility("default"))) int gpusplu_get_num_threads() {
  try {
    return gs::num_threads();
  } catch (const std::invalid_argument&) {  // from an invalid GPUSPLU_NUM_THREADS; a C caller cannot catch exceptions
    return 1;
  }
}
extern "C" __attribute__((visibility("default"))) void gpusplu_set_num_threads(int n) { gs::set_num_threads(n); }
