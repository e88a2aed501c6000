// Parallel loops inside a job: one thread, the leader, runs the program; others help with the loops in it.
//
// Iterations are handed out one by one, and a loop ends when all of them are done, not when all threads have arrived.
// So a thread that the system has suspended delays the others only by its current iteration, and a helper may join and
// leave at any time. On a busy machine the leader does what one thread would do; the helpers add to it.
#pragma once
#include <algorithm>
#include <atomic>
#include <type_traits>

#include "base/threads.hpp"

namespace gs {

class Loops {
 public:
  // Loops of a single thread with this rank in its job.
  explicit Loops(int rank = 0) : rank_(rank) {}
  Loops(const Loops&) = delete;
  Loops& operator=(const Loops&) = delete;

  int rank() const { return rank_; }  // rank of the leader
  int size() const { return size_; }  // threads that may share loops
  // Number of ranges to divide n rows or columns into, of at least `least` each.
  int parts(int n, int least) const { return size_ == 1 ? 1 : std::clamp(n / least, 1, 2 * size_); }

  // Runs body(k, rank) for k = 0 .. count - 1, and first() on the leader at the same time. Neither may throw. After a
  // stop request the remaining iterations are skipped.
  template <class F, class First> void run(int count, F&& body, First&& first) {
    using Body = std::remove_reference_t<F>;
    const bool shared = size_ > 1 && count > 0;
    if (shared)
      open(
          count, [](void* p, int k, int rank) { (*static_cast<Body*>(p))(k, rank); }, (void*)&body);
    if (!must_stop()) first();
    if (shared) return share(rank_), close();
    for (int k = 0; k < count && !must_stop(); k++) body(k, rank_);
  }
  template <class F> void run(int count, F&& body) {
    if (count == 1 && !must_stop()) body(0, rank_);
    if (count > 1) run(count, body, [] {});
  }

  // Makes the calling member of a team the leader.
  void begin(const Team& team) { rank_ = team.rank, size_ = team.size, team_ = &team; }
  void end();  // helpers return

  // Called by the other members; returns after end(). Between loops it calls other(), which returns false if it has no
  // work.
  template <class Other> void help(const Team& team, Other&& other) {
    for (int seen = -1;;) {
      const int now = number_.load(std::memory_order_acquire);
      if (now == kEnd) return;
      if (now != seen && enter()) {
        share(team.rank), leave();
        seen = now;
      } else if (!other()) {
        wait_while(now);
      }
    }
  }

 private:
  static constexpr int kEnd = -2;
  static constexpr int kOpen = 1 << 30;

  void open(int count, void (*body)(void*, int, int), void* context);
  void close();
  void share(int rank) {
    for (int k; !must_stop() && (k = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) body_(context_, k, rank);
  }
  bool enter();
  void leave();
  void wait_while(int number) const;

  int rank_, size_ = 1;
  const Team* team_ = nullptr;
  int count_ = 0;
  void (*body_)(void*, int, int) = nullptr;
  void* context_ = nullptr;
  // On separate cache lines: idle helpers poll the first.
  alignas(64) std::atomic<int> number_{0};  // number of the last loop that began
  // kOpen while threads may enter, plus the number of threads inside. The loop's data change only at 0.
  alignas(64) std::atomic<int> gate_{0};
  std::atomic<int> next_{0};
};

}  // namespace gs
