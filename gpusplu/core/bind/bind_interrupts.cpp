#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/stopwatch.hpp"
#include "bind/bind.hpp"
#include "bind/call.hpp"
#include "bind/checks.hpp"
#include "bind/held_signals.hpp"

namespace gs {
namespace {

// Python's main thread; in a forked child the thread that forked.
unsigned long main_thread = 0;
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });

// The callback of this thread: a reference, or null. Initial-exec as in base/threads.cpp.
__attribute__((tls_model("initial-exec"))) constinit thread_local PyObject* callback = nullptr;
__attribute__((tls_model("initial-exec"))) constinit thread_local std::int64_t between = Operation::kBetween;

nb::object watch(nb::object next, double seconds) {
  require(seconds > 0 && seconds <= 0.1, "seconds must lie in (0, 0.1]");
  between = (std::int64_t)(seconds * 1e9);
  nb::object before = callback ? nb::steal(callback) : nb::none();
  callback = next.is_none() ? nullptr : next.release().ptr();
  return before;
}

// Calls a driver's `query` until the operation behind `handle` has finished. Short waits must not take longer than the
// driver's own wait, which spins; so this function spins for two milliseconds too. Later sleeps are a small part of the
// time waited so far.
constexpr std::int64_t kClosely = 200'000, kSpin = 2'000'000, kLongestNap = 1'000'000;  // [ns]

int poll(std::uintptr_t query, std::uintptr_t handle, int pending) {
  const auto query_function = reinterpret_cast<int (*)(void*)>(query);
  Call call;
  if (!call.has_listener()) return pending;
  return call.run([&] {
    const Stopwatch watch;
    for (;;) {
      const int answer = query_function(reinterpret_cast<void*>(handle));
      if (answer != pending) return answer;
      const auto waited = (std::int64_t)(watch.seconds() * 1e9);
      if (waited < kClosely) continue;
      go_on();
      if (waited < kSpin) sched_yield();
      else sleep_for(std::min(waited / 64, kLongestNap));
    }
  });
}

}  // namespace

std::int64_t Call::time_between() { return between; }

bool Call::in_main_thread() { return runs_signal_handlers(); }

void sleep_forever() noexcept {
  for (;;) pause();
}

void warn(const char* message) {
  if (enter_python([&] { return PyErr_WarnEx(PyExc_RuntimeWarning, message, 1); }) < 0) throw nb::python_error();
}

void Call::released(void (*work)(void*), void* context) {
  std::exception_ptr failure;
  state_ = PyEval_SaveThread();
  try {
    work(context);
  } catch (const Interrupted&) {
  } catch (...) {
    failure = std::current_exception();
  }
  lock_again();
  tell_the_end();
  if (raised_) throw nb::python_error(std::move(*raised_));
  if (failure) std::rethrow_exception(failure);
}

void Call::lock_again() {
  PyThreadState* const state = std::exchange(state_, nullptr);
  enter_python([&] { PyEval_RestoreThread(state); });
}

// The final callback; handlers of signals that came after the last poll run in it. Its errors are kept.
void Call::tell_the_end() {
  if (!reported_ || !callback) return;
  reported_ = false;
  call_back("", 0.0, 0.0);
}

bool Call::has_listener() const { return main_ || callback; }

bool Call::poll() noexcept {
  if (!has_listener() || !state_) return true;  // with the GIL: a handler or callback of poll() made this call
  lock_again();
  if (main_ && PyErr_CheckSignals() < 0) {
    raised_.emplace();
  } else if (callback && *phase() != '\0') {
    reported_ = true;
    call_back(phase(), done(), total());
  }
  state_ = PyEval_SaveThread();
  return !raised_;
}

// Keeps an error of the callback unless an earlier error is kept.
void Call::call_back(const char* phase, double done, double total) {
  PyObject* const called = callback;  // the callback may replace itself
  Py_INCREF(called);
  PyObject* const result = enter_python([&] { return PyObject_CallFunction(called, "sdd", phase, done, total); });
  if (result) {
    Py_DECREF(result);
  } else {
    nb::python_error error;
    if (!raised_) raised_.emplace(std::move(error));
  }
  Py_DECREF(called);
}

bool find_main_thread() {
  PyObject* threading = PyImport_ImportModule("threading");
  PyObject* thread = threading ? PyObject_CallMethod(threading, "main_thread", nullptr) : nullptr;
  PyObject* ident = thread ? PyObject_GetAttrString(thread, "ident") : nullptr;
  if (ident) main_thread = PyLong_AsUnsignedLong(ident);
  Py_XDECREF(ident), Py_XDECREF(thread), Py_XDECREF(threading);
  return !PyErr_Occurred();
}

bool runs_signal_handlers() { return PyThread_get_thread_ident() == main_thread; }

void bind_interrupts(nb::module_& m) {
  m.def("watch", &watch, "callback"_a.none(), "seconds"_a = 0.05,
        "Have callback(phase, done, total) called in this thread every so many seconds that calls of the core take, "
        "which then look for signals too, and once with ('', 0, 0) when such a call has ended; None: no longer. "
        "Returns the callback before. What it raises stops the "
        "work. `total` is 0 where it is not known.");
  m.def("poll", &poll, "query"_a, "handle"_a, "pending"_a,
        "Call the C function int query(void *handle), without the interpreter's lock, until it returns something else "
        "than `pending`, and return that. Looks for signals and calls back meanwhile, and what they raise leaves the "
        "call. "
        "Returns `pending` at once in a thread where neither can be.");
}

}  // namespace gs