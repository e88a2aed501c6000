// One pool of worker threads for the whole process, and teams that run on it.
#pragma once
#include <atomic>
#include <type_traits>

#include "base/operation.hpp"
#include "base/waiting.hpp"

namespace gs {

int num_threads();  // current limit: set_num_threads, else GPUSPLU_NUM_THREADS, else the processors we may use
void set_num_threads(int n);  // n < 1 restores the default
void work_apart(bool begin);  // until the end the calling thread and all others have half as many threads each

// What the C++ library needs in a thread in order to throw is allocated when it first throws, and where that fails, as
// it well may when memory is what an exception is about, the process is aborted. So a thread has it allocated when it
// starts. False: memory is too short; the thread must end without a word.
bool can_throw();

// What a team member knows. rank 0 is the calling thread.
struct Team {
  int rank = 0, size = 1;
  WaitRecord* waits = nullptr;
  // Until ready(), which another member brings about; sleep(waited) may last until that wakes it.
  template <class Ready, class Sleep> void wait(const Ready& ready, const Sleep& sleep) const {
    if (size > 1) wait_until(ready, sleep, *waits);
  }
  template <class Ready> void wait(const Ready& ready) const { wait(ready, nap); }
};

class JobKind;  // base/job_kind.hpp

namespace detail {
void run_helpers(int want, void (*body)(void*, const Team&), void* context, JobKind* kind, double work);
}

// Runs body(const Team&) on the caller, rank 0, and on up to min(want, num_threads()) - 1 helpers, and returns when
// those that have started are done: nobody waits for a thread that the system has not run in time. So body must leave
// no work to a certain rank but 0, and have no barrier. Runs on the caller alone when the pool is in use by another
// thread or the caller is in a team already, and on fewer threads where the system does not grant as many. The body
// must not throw. `kind`, if given, is the kind of job, and `work` its size in some unit of that kind. Throws
// Interrupted where members may have left work undone because they were to stop (operation.hpp).
template <class F> void run_helpers(int want, F&& body, JobKind* kind = nullptr, double work = 0) {
  using Body = std::remove_reference_t<F>;
  detail::run_helpers(
      want, [](void* p, const Team& team) { (*static_cast<Body*>(p))(team); }, (void*)&body, kind, work);
  go_on();
}

}  // namespace gs
