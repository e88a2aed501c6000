#include "bind/held_signals.hpp"

#include <pthread.h>
#include <signal.h>

#include <optional>
#include <utility>

#include "bind/bind.hpp"

namespace gs {
namespace {

// Only the main thread writes it; the signal handler and a forked child read it.
struct {
  bool holding = false;
  bool held[NSIG] = {};
  volatile sig_atomic_t arrived[NSIG] = {};
  struct sigaction before[NSIG];
} signals;

void note_down(int number) { signals.arrived[number] = 1; }

bool is_note_down(const struct sigaction& action) {
  return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == note_down;
}

// Keeps a handler that other code has installed meanwhile.
void give_back(int number) noexcept {
  struct sigaction now;
  if (signals.held[number] && sigaction(number, nullptr, &now) == 0 && is_note_down(now))
    sigaction(number, &signals.before[number], nullptr);
  signals.held[number] = false;
}

// In a forked child, which may lack the thread that holds the signals. Signals that arrived belong to the parent.
[[maybe_unused]] const int reset_after_fork = pthread_atfork(nullptr, nullptr, [] {
  for (int number = 1; number < NSIG; number++) give_back(number), signals.arrived[number] = 0;
  signals.holding = false;
});

// Whether signal.getsignal(number) is callable. Numbers that this system does not know raise.
bool has_handler(PyObject* getsignal, int number) {
  PyObject* handler = PyObject_CallFunction(getsignal, "i", number);
  if (!handler) PyErr_Clear();
  const bool callable = handler && PyCallable_Check(handler);
  Py_XDECREF(handler);
  return callable;
}

}  // namespace

// C code only: Python code would let handlers run.
HeldSignals::HeldSignals() {
  if (signals.holding || !runs_signal_handlers()) return;
  PyObject* module = PyImport_AddModule("_signal");  // borrowed; exists since the interpreter started
  PyObject* getsignal = module ? PyObject_GetAttrString(module, "getsignal") : nullptr;
  if (!getsignal) {
    PyErr_Clear();
    return;
  }
  holding_ = signals.holding = true;
  for (int number = 1; number < NSIG; number++) {
    signals.arrived[number] = 0;
    if (!has_handler(getsignal, number)) continue;
    struct sigaction action = {};
    action.sa_handler = note_down;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    signals.held[number] = sigaction(number, &action, &signals.before[number]) == 0;
  }
  Py_DECREF(getsignal);
}

HeldSignals::~HeldSignals() {
  if (!holding_) return;
  for (int number = 1; number < NSIG; number++) give_back(number);
  signals.holding = false;
  for (int number = 1; number < NSIG; number++)
    if (signals.arrived[number]) signals.arrived[number] = 0, raise(number);
}

namespace {

nb::object call(nb::handle function, nb::handle arguments) {
  nb::object result = nb::steal(enter_python([&] { return PyObject_CallObject(function.ptr(), arguments.ptr()); }));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// Runs the handlers of earlier signals first.
nb::object uninterrupted(nb::callable work, nb::args arguments) {
  const HeldSignals held;
  if (PyErr_CheckSignals() < 0) throw nb::python_error();
  return call(work, arguments);
}

// Base of context managers. Calls `dropped` if an instance is deleted that has begun and not ended.
struct Uninterrupted {
  Uninterrupted() = default;
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
  ~Uninterrupted() {
    if (!dropped.is_valid() || dropped.is_none()) return;
    PyObject *type, *value, *traceback;  // the exception that made the program drop the instance
    PyErr_Fetch(&type, &value, &traceback);
    const HeldSignals held;
    if (PyErr_CheckSignals() < 0) PyErr_WriteUnraisable(dropped.ptr());
    PyObject* const result = PyObject_CallNoArgs(dropped.ptr());
    if (!result) PyErr_WriteUnraisable(dropped.ptr());
    Py_XDECREF(result);
    PyErr_Restore(type, value, traceback);
  }

  nb::object dropped = nb::none();
};

nb::object enter(nb::handle self) {
  const HeldSignals held;
  if (PyErr_CheckSignals() < 0) throw nb::python_error();
  return call(self.attr("begin"), nb::tuple());
}

// Calls end() even if handlers raise; their error is rethrown afterwards.
void leave(nb::handle self, nb::args) {
  const HeldSignals held;
  std::optional<nb::python_error> raised;
  if (PyErr_CheckSignals() < 0) raised.emplace();
  call(self.attr("end"), nb::tuple());
  if (raised) throw nb::python_error(std::move(*raised));
}

}  // namespace

void bind_held_signals(nb::module_& m) {
  m.def(
      "uninterrupted", &uninterrupted,
      nb::sig(
          "def uninterrupted(work: collections.abc.Callable[..., typing.Any], *arguments: typing.Any) -> typing.Any"),
      "work(*arguments). Signals that arrive meanwhile have their handlers run, in the main thread, when it is done.");
  nb::class_<Uninterrupted>(
      m, "Uninterrupted",
      "Context manager of subclasses' begin() and end(), which no handler of a signal interrupts, "
      "and of which the second is called where the first has returned.")
      .def(nb::init<>())
      .def_rw("dropped", &Uninterrupted::dropped, nb::arg().none(), "Called if it is deleted between the two; or None.")
      .def("__enter__", &enter, nb::sig("def __enter__(self) -> None"))
      .def("__exit__", &leave, nb::sig("def __exit__(self, *error: object) -> None"));
}

}  // namespace gs
