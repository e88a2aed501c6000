// What is known about jobs of one kind, such as solves: how they are best done at the moment.
#pragma once
#include <atomic>
#include <cstdint>

namespace gs {

// Whether workers of OpenBLAS are put aside for jobs of a kind (blas_threads.hpp), because they were in the way of one.
class BlasInterference {
 public:
  bool interferes();  // and they have had a processor since this was asked last
  void found_interference();

 private:
  std::atomic<std::int64_t> until_{0}, time_of_blas_{0};
};

// Whether short jobs of one kind and size are better done by one thread at the moment, which is decided by their rates:
// work per time with all threads and with one, measured by the caller's clock.
//
// A thread that loses its processor in the middle of a job gets it back after milliseconds. A job of 20 ms and more
// does other work meanwhile, so that helpers add to what one thread does, whatever neighbours do. A job of 0.3 ms has
// nothing else to do than to wait, and takes ten times as long.
//
// All threads are the default. When their rate falls so far below that of their best job that one thread may do better,
// it is tried with one job. Where that was faster, so are those of the next 50 ms; then all threads are measured again.
class RateComparison {
 public:
  static constexpr std::int64_t kLongest = 20'000'000;  // jobs that take longer have all threads [ns]
  static constexpr std::int64_t kHold = 50'000'000;     // of a decision for one thread, at most [ns]

  // Times are wall_clock()'s; now: when the job begins or has ended.
  bool wants_one_thread(std::int64_t now) const;
  void record(int threads, double work, std::int64_t elapsed, std::int64_t now);

 private:
  // Of recent jobs.
  struct Mean {
    std::atomic<double> work{0}, time{0};
    void add(double more_work, double more_time);
    void forget() { work.store(0, std::memory_order_relaxed), time.store(0, std::memory_order_relaxed); }
    double rate() const;
  };

  void compare(std::int64_t now);

  Mean all_, one_;
  std::atomic<double> best_{0};  // rate of one job with all threads
  std::atomic<bool> trial_{false};
  std::atomic<std::int64_t> until_{0};  // one thread
  std::atomic<std::int64_t> next_trial_{0}, measured_{0};
};

class JobKind {
 public:
  RateComparison& of_size(double work);
  BlasInterference blas;

 private:
  static constexpr int kSizes = 64;
  RateComparison sizes_[kSizes];  // by the exponent of the work
};

}  // namespace gs
