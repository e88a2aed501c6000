// State that a call of the core shares with all threads that work for it: the stop request and the progress.
//
// Threads check for a stop request every few milliseconds: go_on() throws Interrupted; must_stop() is for members of
// teams, which must not throw because other members wait for them. They leave their work undone, and run_helpers throws
// when all members have finished. So all memory is freed on the way out and no thread is left behind; the owner of a
// half-changed object marks it as such (numeric/factor.hpp).
//
// The calling thread polls regularly (bind/call.hpp); the others only read the result.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/blas_threads.hpp"
#include "base/types.hpp"

namespace gs {

// The call was asked to stop. Not a std::exception: no handler may treat it as a failure and try another method.
struct Interrupted {};

class Operation;

namespace detail {
// The operation that a thread works for, and whether the thread made the call.
struct ProgressPoint {
  Operation* operation = nullptr;
  bool caller = false;
};
// In the static TLS block, as in threads.cpp.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local ProgressPoint progress_point;
}  // namespace detail

// While it exists, the thread that constructed it and its helpers work for it.
class Operation {
 public:
  static constexpr std::int64_t kBetween = 50'000'000;  // time between polls [ns]

  explicit Operation(std::int64_t between = kBetween) : between_(between), before_(detail::progress_point) {
    detail::progress_point = {this, true};
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void poll_if_due();                   // for the calling thread
  PinnedBlas& blas() { return blas_; }  // pinned until the operation ends or polls: the workers sleep by then

  // Progress for monitors: work done and total work; 0 if the total is not known.
  void begin(const char* phase, double work) {
    phase_ = phase, total_ = work;
    done_.store(0, std::memory_order_relaxed);
  }
  void add(double work) { done_.fetch_add(work, std::memory_order_relaxed); }

 protected:
  ~Operation() { detail::progress_point = before_; }
  virtual bool poll() noexcept = 0;  // false: stop
  const char* phase() const { return phase_; }
  double total() const { return total_; }
  double done() const { return done_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t between_;
  const detail::ProgressPoint before_;
  std::atomic<bool> stopped_{false};
  std::int64_t due_ = 0;  // [ns]
  PinnedBlas blas_;
  const char* phase_ = "";
  double total_ = 0;
  std::atomic<double> done_{0};
};

// Makes a thread work for the operation of another thread.
class Helping {
 public:
  explicit Helping(Operation* operation) : before_(detail::progress_point) {
    detail::progress_point = {operation, false};
  }
  ~Helping() { detail::progress_point = before_; }
  Helping(const Helping&) = delete;
  Helping& operator=(const Helping&) = delete;

 private:
  const detail::ProgressPoint before_;
};

inline bool must_stop() noexcept {
  const auto [operation, caller] = detail::progress_point;
  if (!operation) return false;
  if (caller) operation->poll_if_due();
  return operation->stopped();
}

inline void go_on() {
  if (must_stop()) throw Interrupted();
}

// One sleep in a wait that has lasted this long, for the thread that polls for stop requests and so cannot sleep until
// it is woken: not much longer than a wake-up takes, nor than a small part of the wait [ns].
void nap(std::int64_t waited) noexcept;
void sleep_for(std::int64_t time) noexcept;  // [ns]

// begin_phase starts the next phase of the operation, with `work` in some unit; the function below adds to the work
// done.
inline void begin_phase(const char* phase, double work = 0) {
  if (detail::progress_point.caller) detail::progress_point.operation->begin(phase, work);
}
inline void have_done(double work) {
  if (detail::progress_point.operation) detail::progress_point.operation->add(work);
}

// For loops of short steps: polls each time so many entries were visited, which takes some 50 microseconds.
class Pace {
 public:
  bool must_stop(off entries = 1) noexcept {
    if ((left_ -= entries) > 0) return false;
    left_ = kEntries;
    return gs::must_stop();
  }
  void go_on(off entries = 1) {
    if (must_stop(entries)) throw Interrupted();
  }

 private:
  static constexpr off kEntries = 1 << 14;
  off left_ = kEntries;
};

}  // namespace gs
