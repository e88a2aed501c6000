#include <pthread.h>

#include "bind/bind.hpp"
#include "bind/call.hpp"
#include "bind/checks.hpp"

namespace gs {
namespace {

// Python's main thread; in a forked child the one that forked.
unsigned long main_thread = 0;
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });

// Of this thread; a reference, or null. Initial-exec as in base/threads.cpp.
__attribute__((tls_model("initial-exec"))) constinit thread_local PyObject* callback = nullptr;
__attribute__((tls_model("initial-exec"))) constinit thread_local std::int64_t between = Operation::kBetween;

nb::object watch(nb::object next, double seconds) {
  require(seconds > 0 && seconds <= 0.1, "seconds must lie in (0, 0.1]");
  between = (std::int64_t)(seconds * 1e9);
  nb::object before = callback ? nb::steal(callback) : nb::none();
  callback = next.is_none() ? nullptr : next.release().ptr();
  return before;
}

}  // namespace

std::int64_t Call::time_between() { return between; }

bool Call::in_main_thread() { return PyThread_get_thread_ident() == main_thread; }

Call::~Call() {
  if (!told_ || !callback) return;
  try {
    nb::borrow(callback)("", 0.0, 0.0);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the callback of gpusplu._core.watch");
  }
}

bool Call::look() noexcept {
  if (!main_ && !callback) return true;
  nb::gil_scoped_acquire acquire;
  try {
    if (main_ && PyErr_CheckSignals() < 0) throw nb::python_error();
    if (callback && *phase() != '\0') {
      told_ = true;
      nb::borrow(callback)(phase(), done(), total());
    }
    return true;
  } catch (nb::python_error& error) {
    raised_.emplace(std::move(error));
    return false;
  }
}

void bind_interrupts(nb::module_& m) {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  m.def("watch", &watch, "callback"_a.none(), "seconds"_a = 0.05,
        "Have callback(phase, done, total) called in this thread every so many seconds that calls of the core take, "
        "which "
        "then look for signals too, and once with "
        "('', 0, 0) when such a call has ended; None: no longer. Returns the callback before. What it raises stops the "
        "work. `total` is 0 where it is not known.");
}

}  // namespace gs
