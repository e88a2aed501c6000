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

// Decides with how many threads short jobs of one kind and size currently run fastest. It compares rates, that is work
// per time measured by the caller's clock, of the number in use and of another one, which a few jobs try now and then.
//
// The usual number is what the caller wants, or a smaller power of two. A trial takes half or twice the usual number.
// It wins if most of its jobs are faster than the median of the usual ones by 5%. Trials cost at most 2% of the time
// that jobs take, and become rare while they change nothing. There are none while other threads want all processors.
//
// Beside busy processes: a thread that loses its processor in the middle of a job gets it back after milliseconds. In a
// job of 20 ms and more the other threads continue meanwhile, so helpers always add to what one thread does, whatever
// other processes do, and such jobs get what they want. A job of 0.3 ms can only wait, and takes ten times as long.
// When the rate of the usual number falls so far below that of its best job that one thread may be faster, or while the
// system says that all processors are wanted, a few jobs try one thread, at most every 250 ms. The first one does not
// count: its data are in the caches of other processors. If one of the next is faster, one thread does the jobs until
// it turns out to be slower, until the system has said three times within 40 ms that processors are free, or for 250
// ms; then the usual number is measured again, and compared with the last rate of one thread. Such a measurement takes
// 10 ms and more while other processes want all processors; so the 40 ms double each time that one thread is faster
// again.
class ThreadChoice {
 public:
  static constexpr std::int64_t kLongest = 20'000'000;  // longer jobs, by the best rate, use what they want [ns]
  static constexpr std::int64_t kHold = 40'000'000;     // shortest time with one thread for the moment [ns]
  static constexpr std::int64_t kLatest = 250'000'000;  // the longest, or ten times the last job [ns]

  // Times are wall_clock()'s; now: when the job begins or has ended. Each job is chosen for and then recorded, before
  // the next one. want: at least 2.
  int choose(int want, std::int64_t now, bool (*processors_are_taken)());
  // work: estimated time on one thread [s].
  void record(double work, std::int64_t elapsed, std::int64_t now, bool (*processors_are_taken)());

 private:
  static constexpr int kUnlimited = 30;  // level of what the caller wants, whatever that is
  static constexpr int kMedian = 9;      // jobs

  // Mean rate of recent jobs.
  struct Mean {
    double work = 0, time = 0;
    void add(double more_work, double more_time);
    double rate() const { return time > 0 ? work / time : 0; }
  };

  // Jobs with another number of threads.
  struct Trial {
    int level = -1;                    // -1: none
    bool brief = false;                // of one thread for the moment
    int warming = 0;                   // jobs that do not count: their data are in the caches of other processors
    double to_beat = 0, expected = 0;  // rates
    double most_lost = 0;              // [ns]
    int faster = 0, slower = 0, enough = 0;
    double lost = 0, time = 0;  // [ns]
  };

  void record_trial(double work, double elapsed, std::int64_t now);
  void consider_one_thread(double work, bool is_long, std::int64_t now, bool (*processors_are_taken)());
  void consider_neighbours(double work, bool (*processors_are_taken)());
  void use_one_thread(std::int64_t now);
  void return_to_usual(std::int64_t now);
  void move_to(int level);
  double median() const;

  int want_ = 0, level_ = 0;  // of the current job: at most 2^level threads
  int last_level_ = 0;        // of the job before
  int usual_ = kUnlimited;    // level
  Trial trial_;
  Mean all_, one_;               // of the usual number and of one thread
  double best_ = 0;              // best rate of a job with the usual number
  double recent_[kMedian] = {};  // rates of the last jobs with the usual number
  int n_recent_ = 0, recent_level_ = 0;

  // One thread for the moment.
  bool alone_ = false;
  std::int64_t until_ = 0, latest_ = 0;       // the earliest and the latest end
  std::int64_t hold_ = kHold, returned_ = 0;  // shortest time of the next one; the end of the last one
  std::int64_t next_look_ = 0;                // at the running threads
  int n_free_ = 0;                            // looks in a row that found free processors
  std::int64_t next_trial_ = 0, measured_ = 0;
  double last_ = 0;         // time of the last job with the usual number [ns]
  double rate_before_ = 0;  // of the usual number, when one thread began

  // Trials of neighbours, in time that these jobs took [ns].
  double spent_ = 0, last_end_ = 0, earliest_ = 0, interval_ = 0;
  double rate_then_ = 0;  // of the usual number at the last trial
  int direction_ = -1;    // of the next
  int n_calm_ = 0;        // looks in a row that found free processors
};

class JobKind {
 public:
  // Of jobs on one of the two pools of threads, which does one job at a time.
  ThreadChoice& of_size(double work, int pool);
  BlasInterference blas;

 private:
  static constexpr int kSizes = 64;
  ThreadChoice sizes_[2][kSizes];  // indexed by the binary exponent of the work
};

}  // namespace gs
