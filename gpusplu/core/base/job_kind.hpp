// Statistics of jobs of one kind, such as solves, and how to run them at the moment.
#pragma once
#include <atomic>
#include <cstdint>

namespace gs {

// Whether OpenBLAS workers are pinned for jobs of a kind (blas_threads.hpp) because they disturbed one.
class BlasInterference {
 public:
  bool interferes();  // true if workers were found to interfere and have used CPU time since the last call
  bool is_known(std::int64_t now) const { return now < until_.load(std::memory_order_relaxed); }
  void found_interference();

 private:
  std::atomic<std::int64_t> until_{0}, time_of_blas_{0};
};

// Decides whether short jobs of one kind and size currently run faster on one thread. It compares rates, that is work
// per time, with all threads and with one, measured by the caller's clock.
//
// A thread that loses its processor in the middle of a job gets it back after milliseconds. In a job of 20 ms and more
// the other threads continue meanwhile, so helpers always add to what one thread does, whatever other processes do. A
// job of 0.3 ms can only wait, and takes ten times as long.
//
// All threads are the default. When their rate falls so far below that of their best job that one thread may be faster,
// one job tries it. A process that starts beside busy ones has no better job to compare with: as long as the system
// says that all processors are wanted, one short job a second tries one thread. If it was faster, the jobs of the next
// 40 ms run on one thread; then all threads are measured again, and compared with the last rate of one thread. A
// measurement takes 10 ms and more while other processes want all processors, so then the next one may wait for 250 ms.
class RateComparison {
 public:
  static constexpr std::int64_t kLongest = 20'000'000;  // longer jobs, by the best rate, always use all threads [ns]
  static constexpr std::int64_t kHold = 40'000'000;     // validity of a decision for one thread [ns]
  static constexpr std::int64_t kLatest = 250'000'000;  // the same while all processors are taken, at least [ns]

  // Times are wall_clock()'s; now: when the job begins or has ended. work: estimated time on one thread [s].
  bool wants_one_thread(std::int64_t now, bool (*processors_are_taken)());
  void record(int threads, double work, std::int64_t elapsed, std::int64_t now, bool (*processors_are_taken)());

 private:
  // Mean rate of recent jobs.
  struct Mean {
    std::atomic<double> work{0}, time{0};
    void add(double more_work, double more_time);
    void forget() { work.store(0, std::memory_order_relaxed), time.store(0, std::memory_order_relaxed); }
    double rate() const;
  };

  void use_one_thread(std::int64_t now);

  Mean all_, one_;
  std::atomic<double> best_{0};  // best rate of a job with all threads
  std::atomic<bool> trial_{false};
  std::atomic<std::int64_t> until_{0}, latest_{0};  // end of the one-thread period, and the latest it may have
  std::atomic<std::int64_t> next_trial_{0}, next_check_{0}, measured_{0};
  std::atomic<std::int64_t> last_{0};  // time of the last job with all threads
};

class JobKind {
 public:
  RateComparison& of_size(double work);
  BlasInterference blas;

 private:
  static constexpr int kSizes = 64;
  RateComparison sizes_[kSizes];  // indexed by the binary exponent of the work
};

}  // namespace gs
