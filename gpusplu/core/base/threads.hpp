// One pool of worker threads for the whole process, and teams that run on it.
#pragma once
#include <atomic>
#include <type_traits>

#include "base/operation.hpp"
#include "base/waiting.hpp"

namespace gs {

int num_threads();            // current limit: set_num_threads, else GPUSPLU_NUM_THREADS, else the usable processors
void set_num_threads(int n);  // n < 1 restores the default
void work_apart(bool begin);  // until work_apart(false) the calling thread and all others have half of the threads each

// The C++ library allocates exception data of a thread at its first throw. If that allocation fails, which is likely
// for an exception about low memory, the process is aborted. So each thread forces the allocation when it starts.
// False: not enough memory; the thread must end silently.
bool can_throw();

// A member's view of its team. rank 0 is the calling thread.
struct Team {
  int rank = 0, size = 1;
  WaitRecord* waits = nullptr;
  static constexpr std::int64_t kSpinning = 100'000;  // [ns]
  // Waits until ready(), which another member makes true; sleep(waited) may block until that member wakes it. Most
  // waits inside jobs take less than kSpinning. To yield the processor earlier costs milliseconds beside busy
  // processes.
  template <class Ready, class Sleep> void wait(const Ready& ready, const Sleep& sleep) const {
    if (size > 1) wait_until(ready, sleep, *waits, kSpinning);
  }
  template <class Ready> void wait(const Ready& ready) const { wait(ready, nap); }
  // A helper that may leave the rest of a short job to the caller does so when some thread has no processor: otherwise
  // the threads of the job would wait for each other again and again.
  bool may_leave() const { return rank > 0 && waits->stopped.load(std::memory_order_relaxed); }
};

class JobKind;  // base/job_kind.hpp

namespace detail {
void run_helpers(int want, void (*body)(void*, const Team&), void* context, JobKind* kind, double work);
}

// Runs body(const Team&) on the caller, rank 0, and on up to min(want, num_threads()) - 1 helpers, and returns when the
// started ones are done: it does not wait for a thread that the system has not started in time. So body must not leave
// work to a certain rank other than 0, and must have no barrier. Runs on the caller only if another thread uses the
// pool or the caller is in a team already, and on fewer threads if the system does not grant as many. The body must not
// throw. `kind`, if given, is the kind of job, and `work` the estimated time on one thread [s]. Throws Interrupted if
// members may have left work undone after a stop request (operation.hpp).
template <class F> void run_helpers(int want, F&& body, JobKind* kind = nullptr, double work = 0) {
  using Body = std::remove_reference_t<F>;
  detail::run_helpers(
      want, [](void* p, const Team& team) { (*static_cast<Body*>(p))(team); }, (void*)&body, kind, work);
  go_on();
}

}  // namespace gs
