#include "base/job_kind.hpp"

#include <algorithm>
#include <cmath>

#include "base/blas_threads.hpp"
#include "base/waiting.hpp"

namespace gs {
namespace {

constexpr std::int64_t kBlasHold = 10'000'000'000;  // how long workers stay pinned after they ran again [ns]
constexpr double kRecent = 25'000'000;              // averaging time of the mean over recent jobs [ns]
constexpr double kFaster = 1.1;                     // the rate of one thread must exceed the rate of all by this factor
constexpr int kTrials = 20;                         // time until the next trial, in units of the last trial's time
constexpr std::int64_t kValid = 1'000'000'000;      // how long the measured rate of one thread stays valid [ns]

// One thread is tried if the rate falls below this fraction of the best rate of all threads; above it, one thread
// cannot win.
double suspicious(int threads) { return std::max(0.3, 1.2 / threads); }

double get(const std::atomic<double>& x) { return x.load(std::memory_order_relaxed); }
std::int64_t get(const std::atomic<std::int64_t>& x) { return x.load(std::memory_order_relaxed); }
template <class T> void set(std::atomic<T>& x, T value) { x.store(value, std::memory_order_relaxed); }

}  // namespace

bool BlasInterference::interferes() {
  if (!is_known(wall_clock())) return false;
  const std::int64_t time = time_of_blas();
  if (time_of_blas_.exchange(time, std::memory_order_relaxed) == time) return false;
  found_interference();
  return true;
}

void BlasInterference::found_interference() { until_.store(wall_clock() + kBlasHold, std::memory_order_relaxed); }

void RateComparison::Mean::add(double more_work, double more_time) {
  const double keep = std::exp(-more_time / kRecent);
  set(work, get(work) * keep + more_work), set(time, get(time) * keep + more_time);
}

double RateComparison::Mean::rate() const { return get(time) > 0 ? get(work) / get(time) : 0; }

bool RateComparison::wants_one_thread(std::int64_t now, bool (*processors_are_taken)()) {
  if (trial_.load(std::memory_order_relaxed) || now < get(until_)) return true;
  if (now >= get(latest_) || !processors_are_taken()) return false;
  set(until_, now + kHold);
  return true;
}

// Threads that run jobs of one size concurrently may overwrite each other's results, which costs one trial.
void RateComparison::record(int threads, double work, std::int64_t elapsed, std::int64_t now,
                            bool (*processors_are_taken)()) {
  if (work <= 0 || elapsed <= 0) return;
  if (threads == 1) {
    one_.add(work, double(elapsed));
    set(measured_, now);
    if (!trial_.exchange(false, std::memory_order_relaxed)) return;
    set(next_trial_, now + std::max(kHold, kTrials * elapsed));
    if (one_.rate() > kFaster * all_.rate()) return use_one_thread(now);
    return set(best_, std::max(0.9 * get(best_), all_.rate()));  // the best rate may come from another matrix
  }
  set(latest_, std::int64_t(0)), set(last_, elapsed);
  all_.add(work, double(elapsed));
  set(best_, std::max(get(best_), work / double(elapsed)));
  // By itself, not because of other processes.
  const bool is_long = work > double(kLongest) * std::max(get(best_), one_.rate());
  if (get(measured_) > 0 && now - get(measured_) < kValid) {
    if (!is_long && one_.rate() > kFaster * all_.rate()) use_one_thread(now);
  } else if (now >= get(next_trial_)) {
    const bool is_slow = !is_long && all_.rate() < suspicious(threads) * get(best_);
    if (is_slow || (work <= 1e-9 * kLongest && now >= get(next_check_) && processors_are_taken())) set(trial_, true);
    else if (now >= get(next_check_)) set(next_check_, now + kHold);
  }
}

void RateComparison::use_one_thread(std::int64_t now) {
  set(until_, now + kHold), set(latest_, now + std::max(kLatest, kTrials / 2 * get(last_)));
  all_.forget();
}

RateComparison& JobKind::of_size(double work) {
  return sizes_[std::clamp(work > 0 ? std::ilogb(work) + kSizes / 2 : 0, 0, kSizes - 1)];
}

}  // namespace gs
