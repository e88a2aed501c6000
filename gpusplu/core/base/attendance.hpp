// What members of a team do with their time, and how they wait for each other without being in anybody's way.
//
// A team is worth having while its members have processors. Where other threads and processes keep these busy, members
// wait for members that do not run, each time for as long as the system gives to others, some milliseconds; one thread
// then does more than the team. Whether that is so shows in the time that processors spent on the team's work, waits
// left out.
#pragma once
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/operation.hpp"

namespace gs {

// Between two looks at a word that another thread writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr int kLooks = 200;  // a few microseconds

// The same, in a loop: whoever is waited for may have lost his processor, and others may want ours.
inline void relax(int look) { look < kLooks ? relax() : (void)sched_yield(); }

// Since some fixed moment, and what of it this thread had a processor [ns].
struct Clocks {
  std::int64_t wall, processor;
  static Clocks now();
};
std::int64_t wall_clock();

// The account of a job: what its members tell.
class Job {
 public:
  // Of the time since the job began, less than three quarters of one processor's were spent on it. What is spent alone
  // while others compete is half or more, so one member would not take much longer.
  bool crowded() const;
  void tell(std::int64_t worked) { worked_.fetch_add(worked, std::memory_order_relaxed); }
  void wait_was_long() { impatient_.store(true, std::memory_order_relaxed); }
  bool impatient() const { return impatient_.load(std::memory_order_relaxed); }  // somebody waited long
  std::int64_t elapsed() const { return wall_clock() - begin_; }                 // [ns]
  void begin_again();                                                            // while nobody works

 private:
  std::int64_t begin_ = wall_clock();
  std::atomic<std::int64_t> worked_{0};  // by all members [ns]
  std::atomic<bool> impatient_{false};
};

// One member's part.
class Attendance {
 public:
  explicit Attendance(Job& job) : job_(job), told_(Clocks::now().processor) {}

  // Until ready(): looks, then offers its processor to others, and after a while sleeps if there is a sleep().
  template <class Ready, class Sleep> void wait(const Ready& ready, const Sleep& sleep) {
    for (int look = 0; look < kLooks; look++) {
      if (ready()) return;
      relax();
    }
    const Clocks from = Clocks::now();
    while (!ready()) {
      if (const std::int64_t waited = wall_clock() - from.wall; waited < kOffering) sched_yield();
      else detail::station.caller ? nap(waited) : sleep();
    }
    waited_since(from);
  }

  void tell();  // what it worked since it last told
  Job& job() { return job_; }

 private:
  static constexpr std::int64_t kOffering = 300'000;  // [ns]
  void waited_since(const Clocks& from);

  Job& job_;
  std::int64_t told_, waited_ = 0;  // processor's time when it last told, and that of waits since [ns]
};

// Of a kind of job, how it is done for now: by one thread, if a team was in its own way a short time ago; by a team for
// which workers of OpenBLAS are put aside (blas_threads.hpp), if they were in its way.
class Crowding {
 public:
  int members(int want) const;
  void found(std::int64_t lost);  // [ns]
  bool is_beside_blas();          // and they have had a processor since that was asked last
  void found_beside_blas();

 private:
  std::atomic<std::int64_t> until_{0};
  std::atomic<std::int64_t> beside_until_{0}, time_of_blas_{0};
};

}  // namespace gs
