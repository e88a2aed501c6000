// What a call of the core and all threads that work for it have in common: whether it has to stop, and how far it is.
//
// Work looks at it wherever a few milliseconds have passed: go_on() throws Interrupted; must_stop() is for members of
// teams, who must not throw and are waited for. They leave their work undone, and run_helpers throws when everybody
// has come to the end. So all memory is given back on the way out, no thread stays
// behind, and what half changed is for whoever holds it to say (numeric/factor.hpp).
//
// The thread that called looks around by itself, now and then (bind/call.hpp); the others only see what it saw.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/blas_threads.hpp"
#include "base/types.hpp"

namespace gs {

// The call was asked to stop. No std::exception: nobody shall take it for a failure, and go on in another way.
struct Interrupted {};

class Operation;

namespace detail {
// Whom a thread works for, and whether it is the one that called.
struct ProgressPoint {
  Operation* operation = nullptr;
  bool caller = false;
};
// In the block that a thread begins with, as in threads.cpp.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local ProgressPoint progress_point;
}  // namespace detail

// While it lives, the thread that made it and its helpers work for it.
class Operation {
 public:
  static constexpr std::int64_t kBetween = 50'000'000;  // looks [ns]

  explicit Operation(std::int64_t between = kBetween) : between_(between), before_(detail::progress_point) {
    detail::progress_point = {this, true};
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void poll_if_due();                   // of the thread that called
  PinnedBlas& blas() { return blas_; }  // until it ends or looks: they sleep by then

  // For whoever watches: what is done, and how much work it will be; 0 where that is not known.
  void begin(const char* phase, double work) {
    phase_ = phase, total_ = work;
    done_.store(0, std::memory_order_relaxed);
  }
  void add(double work) { done_.fetch_add(work, std::memory_order_relaxed); }

 protected:
  ~Operation() { detail::progress_point = before_; }
  virtual bool poll() noexcept = 0;  // whether to go on
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

// A thread that works for the operation of another.
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

// Part of a wait that has lasted this long, for the thread that looks whether to stop, which therefore cannot sleep
// until it is woken: not much longer than it takes to be woken, nor than a small part of the wait [ns].
void nap(std::int64_t waited) noexcept;
void sleep_for(std::int64_t time) noexcept;  // [ns]

// What begins is the next phase of the operation, so much work in some unit; and so much of it was done.
inline void begin_phase(const char* phase, double work = 0) {
  if (detail::progress_point.caller) detail::progress_point.operation->begin(phase, work);
}
inline void have_done(double work) {
  if (detail::progress_point.operation) detail::progress_point.operation->add(work);
}

// For loops of short steps: looks after every so many entries that were visited, which is some 50 microseconds.
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
