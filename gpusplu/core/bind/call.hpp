// Calls of the core without the GIL that Python can still interrupt.
#pragma once
#include <cxxabi.h>
#include <nanobind/nanobind.h>

#include <optional>
#include <type_traits>

#include "base/operation.hpp"

namespace gs {

namespace nb = nanobind;

[[noreturn]] void sleep_forever() noexcept;

// Runs work that takes the GIL, or runs Python code, which may release it and take it again. Before version 3.14 Python
// calls pthread_exit in a thread that does so while the interpreter ends. glibc then unwinds the stack of the thread,
// and std::terminate is called at the first function that is noexcept, which destructors are. So the thread sleeps here
// instead, until the process has ended; Python 3.14 does the same. Objects with destructors must not be made in `work`:
// the destructors would run without the GIL.
template <class F> auto enter_python(F&& work) {
#ifdef __GLIBCXX__
  try {
    return work();
  } catch (const abi::__forced_unwind&) {
    sleep_forever();
  }
#else
  return work();
#endif
}

void warn(const char* message);  // a RuntimeWarning

// Polls every 50 ms of a call, or as often as `watch` was set to: in Python's main thread it runs signal handlers, as
// the interpreter does between any two lines of Python, and in every thread the callback given to `watch`. An error
// that they raise stops the work and leaves the call. Other threads see no signals, as in Python: only their callback
// stops them.
class Call : public Operation {
 public:
  Call() : Operation(time_between()) {}

  template <class F> auto run(F&& work) {
    using Result = std::invoke_result_t<F>;
    if constexpr (std::is_void_v<Result>) {
      released([](void* p) { (*static_cast<std::remove_reference_t<F>*>(p))(); }, (void*)&work);
    } else {
      std::optional<Result> result;
      auto keep = [&] { result.emplace(work()); };
      released([](void* p) { (*static_cast<decltype(keep)*>(p))(); }, &keep);
      return *std::move(result);
    }
  }

  // Whether the call can be stopped or reports progress: it runs in the main thread, or has a callback.
  bool has_listener() const;

 private:
  void released(void (*work)(void*), void* context);  // compiled once, not for every call
  bool poll() noexcept override;
  void tell_the_end();  // a last call of the callback, if it was called before

  void lock_again();
  void call_back(const char* phase, double done, double total);

  const bool main_ = in_main_thread();
  PyThreadState* state_ = nullptr;  // while the lock is released
  bool reported_ = false;
  std::optional<nb::python_error> raised_;
  static bool in_main_thread();
  static std::int64_t time_between();  // time between polls of this thread [ns]
};

template <class F> auto without_gil(F&& work) {
  Call call;
  return call.run(work);
}

}  // namespace gs
