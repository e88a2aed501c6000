// One pool of worker threads for the whole process, and teams that run on it.
#pragma once
#include <atomic>
#include <type_traits>

#include "base/attendance.hpp"
#include "base/operation.hpp"

namespace gs {

int num_threads();  // current limit: set_num_threads, else GPUSPLU_NUM_THREADS, else the processors we may use
void set_num_threads(int n);  // n < 1 restores the default
void work_apart(bool begin);  // until the end the calling thread and all others have half as many threads each

// What the C++ library needs in a thread in order to throw is allocated when it first throws, and where that fails, as
// it well may when memory is what an exception is about, the process is aborted. So a thread has it allocated when it
// starts. False: memory is too short; the thread must end without a word.
bool can_throw();

// Barrier for the members of one team.
class Barrier {
 public:
  Barrier(int size, Job& job) : size_(size), job_(job) {}
  void wait(Attendance& own);

  // Members wait for members that do not run: rank 0 is better off alone. What everybody sees after a wait() is the
  // same for all until the next.
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

  // For the members' own use, two of each for phases that alternate: tasks handed out, and a word passed on.
  std::atomic<int> turn[2] = {0, 0};
  std::atomic<int> word[2] = {0, 0};

 private:
  void judge();

  int size_;
  Job& job_;
  std::atomic<int> arrived_{0}, told_{0};
  std::atomic<int> phase_{0};
  std::atomic<bool> crowded_{false};
};

// What a team member knows. rank 0 is the calling thread.
struct Team {
  int rank = 0, size = 1;
  Barrier* barrier = nullptr;
  Attendance* own = nullptr;
  void sync() const {
    if (size > 1) barrier->wait(*own);
  }
  bool crowded() const { return size > 1 && barrier->crowded(); }
  // Until ready(), which another member brings about.
  template <class Ready> void wait(const Ready& ready) const {
    if (size > 1) own->wait(ready, [] { sched_yield(); });
  }
};

namespace detail {
void run_team(int want, void (*body)(void*, const Team&), void* context, bool all, Crowding* crowding);
}

// Runs body(const Team&) on min(want, num_threads()) threads, the caller among them, and returns when all are done.
// Runs on the caller alone when the pool is in use by another thread or the caller is inside a team already, and on
// fewer threads where the system does not grant as many, so `body` must be right for every team size. The body must
// not throw. `crowding`, if given, is that of this kind of job. Throws Interrupted where members may have left work
// undone because they were to stop (operation.hpp).
template <class F> void run_team(int want, F&& body, Crowding* crowding = nullptr) {
  using Body = std::remove_reference_t<F>;
  detail::run_team(
      want, [](void* p, const Team& team) { (*static_cast<Body*>(p))(team); }, (void*)&body, true, crowding);
  go_on();
}

// The same on the caller, rank 0, and on up to want - 1 helpers, and returns when those that have started are done:
// nobody waits for a thread that the system has not run in time. So body must leave no work to a certain rank, and have
// no barrier.
template <class F> void run_helpers(int want, F&& body, Crowding* crowding = nullptr) {
  using Body = std::remove_reference_t<F>;
  detail::run_team(
      want, [](void* p, const Team& team) { (*static_cast<Body*>(p))(team); }, (void*)&body, false, crowding);
  go_on();
}

}  // namespace gs
