#include "base/job_kind.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/blas_threads.hpp"
#include "base/waiting.hpp"

namespace gs {
namespace {

constexpr std::int64_t kBlasHold = 10'000'000'000;  // how long workers stay pinned after they ran again [ns]
constexpr double kRecent = 25'000'000;              // averaging time of the mean over recent jobs [ns]
constexpr double kFaster = 1.1;                     // one thread must exceed the usual rate by this factor
constexpr int kTrials = 20;                         // time until the next trial of one thread, in units of the last one
constexpr std::int64_t kValid = 1'000'000'000;      // how long the measured rate of one thread stays valid [ns]
constexpr double kEnough = 10e6;                    // time of jobs that tells their rate [ns]

constexpr double kBetter = 1.05;       // a neighbour must exceed the usual rate by this factor
constexpr int kWins = 4, kLosses = 3;  // jobs that decide about a neighbour
constexpr int kLooks = 3;              // looks in a row at the running threads that must find free processors
constexpr double kFirst = 10;          // time before the first trial of a neighbour, in units of the first job
constexpr double kCost = 50;           // time until the next one, in units of what the last one lost
constexpr double kOften = 20e6;        // the same, at least [ns]
constexpr double kSeldom = 500e6;      // and at most, by doubling while trials change nothing [ns]
constexpr double kOtherRate = 1.3;     // a change of the usual rate by this factor makes trials frequent again

// One thread is tried if the rate falls below this fraction of the best rate; above it, one thread cannot win.
double suspicious(int threads) { return std::max(0.3, 1.2 / threads); }

}  // namespace

bool BlasInterference::interferes() {
  if (!is_known(wall_clock())) return false;
  const std::int64_t time = time_of_blas();
  if (time_of_blas_.exchange(time, std::memory_order_relaxed) == time) return false;
  found_interference();
  return true;
}

void BlasInterference::found_interference() { until_.store(wall_clock() + kBlasHold, std::memory_order_relaxed); }

void ThreadChoice::Mean::add(double more_work, double more_time) {
  const double keep = std::exp(-more_time / kRecent);
  work = work * keep + more_work, time = time * keep + more_time;
}

double ThreadChoice::median() const {
  double sorted[kMedian];
  std::copy(recent_, recent_ + kMedian, sorted);
  std::nth_element(sorted, sorted + kMedian / 2, sorted + kMedian);
  return sorted[kMedian / 2];
}

int ThreadChoice::choose(int want, std::int64_t now, bool (*processors_are_taken)()) {
  const int all = std::bit_width(unsigned(want - 1));
  want_ = want;
  if (alone_ && now >= next_look_) {
    next_look_ = now + kHold / kLooks;
    n_free_ = processors_are_taken() ? 0 : n_free_ + 1;
  }
  if (alone_ && (now >= latest_ || (now >= until_ && n_free_ >= kLooks))) return_to_usual(now);
  level_ = std::min(all, trial_.level >= 0 ? trial_.level : alone_ ? 0 : usual_);
  return std::min(want, 1 << level_);
}

void ThreadChoice::record(double work, std::int64_t elapsed, std::int64_t now, bool (*processors_are_taken)()) {
  if (work <= 0 || elapsed <= 0) return;
  const double time = double(elapsed), rate = work / time;
  if (spent_ == 0) earliest_ = kFirst * time;
  spent_ += time;
  const bool is_cold = level_ == 0 && last_level_ > 0;  // its data are in the caches of other processors
  last_level_ = level_;
  if (level_ == 0 && !is_cold) one_.add(work, time), measured_ = now;
  if (trial_.level >= 0) return record_trial(work, time, now);
  if (level_ == 0 && usual_ > 0) {
    if (alone_ && one_.time > kEnough && one_.rate() < rate_before_) return_to_usual(now), next_trial_ = now + kLatest;
    return;
  }
  if (level_ != recent_level_) all_ = {}, n_recent_ = 0, recent_level_ = level_;
  last_ = time;
  all_.add(work, time);
  best_ = std::max(best_, rate);
  recent_[n_recent_++ % kMedian] = rate;
  const bool is_long = work > double(kLongest) * std::max(best_, one_.rate());  // by itself, not because of others
  if (now - returned_ > kLatest) hold_ = kHold;
  if (level_ > 0) consider_one_thread(work, is_long, now, processors_are_taken);
  if (!is_long && trial_.level < 0 && !alone_) consider_neighbours(work, processors_are_taken);
}

void ThreadChoice::consider_one_thread(double work, bool is_long, std::int64_t now, bool (*processors_are_taken)()) {
  const bool is_valid = measured_ > 0 && now - measured_ < kValid;
  if (!is_long && is_valid && one_.rate() > kFaster * all_.rate()) return use_one_thread(now);
  if (now < next_trial_) return;
  const bool is_slow = !is_long && all_.rate() < suspicious(std::min(want_, 1 << level_)) * best_;
  if (!is_slow && (now < next_look_ || work > 1e-9 * kLongest)) return;
  next_look_ = now + kHold;
  const bool taken = processors_are_taken();
  if (!is_slow && !taken) return;
  trial_ = {.level = 0, .brief = true, .warming = 1, .to_beat = kFaster * all_.rate(), .expected = all_.rate()};
  trial_.most_lost = double(taken ? kHold : kHold / 4), trial_.enough = 1;
  one_ = {};
}

void ThreadChoice::consider_neighbours(double work, bool (*processors_are_taken)()) {
  if (n_recent_ < kMedian) return;
  const double rate = median();
  if (std::max(rate, rate_then_) > kOtherRate * std::min(rate, rate_then_)) interval_ = std::min(interval_, kOften);
  if (spent_ < std::max(earliest_, last_end_ + interval_)) return;
  n_calm_ = processors_are_taken() ? 0 : n_calm_ + 1;
  if (n_calm_ == 0) earliest_ = spent_ + double(kHold);
  else if (n_calm_ < kLooks) earliest_ = spent_ + kMedian * work / rate;
  if (n_calm_ < kLooks) return;
  const int all = std::bit_width(unsigned(want_ - 1));
  if (level_ == 0) direction_ = 1;
  if (level_ == all) direction_ = -1;
  rate_then_ = rate;
  trial_ = {.level = level_ + direction_, .warming = 1, .to_beat = kBetter * rate, .expected = rate};
  trial_.most_lost = 1.5 * work / rate, trial_.enough = kWins;
}

void ThreadChoice::record_trial(double work, double elapsed, std::int64_t now) {
  Trial& t = trial_;
  t.time += elapsed, t.lost += elapsed - work / t.expected;
  if (t.warming > 0) t.warming--, t.most_lost += t.brief ? t.lost : 0;  // of a neighbour, it counts as loss
  else (work / elapsed > t.to_beat ? t.faster : t.slower)++;
  const bool won = t.faster == t.enough;
  if (!won && t.slower < kLosses && t.lost <= t.most_lost) return;
  t.level = -1;
  if (t.brief) {
    next_trial_ = now + std::max(kLatest, std::int64_t(kTrials * t.time));
    if (won) return use_one_thread(now);
    best_ = std::max(0.9 * best_, all_.rate());  // the best rate may come from another matrix
    return;
  }
  last_end_ = spent_, earliest_ = spent_ + kCost * t.lost;
  if (won) return move_to(level_);
  direction_ = -direction_, interval_ = std::clamp(2 * interval_, kOften, kSeldom);
}

void ThreadChoice::move_to(int level) {
  usual_ = (1 << level) >= want_ ? kUnlimited : level;
  all_ = {}, best_ = 0, n_recent_ = 0, interval_ = 0;
}

void ThreadChoice::use_one_thread(std::int64_t now) {
  alone_ = true, n_free_ = 0, next_look_ = now + kHold / kLooks;
  until_ = now + hold_, latest_ = now + std::max(kLatest, std::int64_t(kTrials / 2 * last_));
  if (now - returned_ < kLatest) hold_ = std::min(2 * hold_, kLatest);
  rate_before_ = all_.rate(), all_ = {};
}

void ThreadChoice::return_to_usual(std::int64_t now) { alone_ = false, returned_ = now; }

ThreadChoice& JobKind::of_size(double work, int pool) {
  return sizes_[pool][std::clamp(work > 0 ? std::ilogb(work) + kSizes / 2 : 0, 0, kSizes - 1)];
}

}  // namespace gs
