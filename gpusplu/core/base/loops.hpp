// Parallel loops inside a job. Members of a team run programs of their own, such as the factorization of one front; a
// program opens loops, and members that have no program help with any open loop.
//
// Iterations are handed out one by one, and a loop ends when all of them are done, not when all threads have arrived.
// So a thread that the system has suspended delays the others only by its current iteration, and a helper may join and
// leave at any time. On a busy machine a leader does what one thread would do; the helpers add to it.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <type_traits>

#include "base/threads.hpp"

namespace gs {

class SharedLoops;

// The loops of one member, the leader.
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

  // Runs body(k, rank) for k = 0 .. count - 1; it must not throw. Iterations begin in ascending order, so one may wait
  // for those before it. After a stop request the remaining iterations are skipped.
  template <class F> void run(int count, F&& body) {
    using Body = std::remove_reference_t<F>;
    const bool shared = size_ > 1 && count > 1;
    if (shared) {
      open(
          count, [](void* p, int k, int rank) { (*static_cast<Body*>(p))(k, rank); }, (void*)&body);
      return share(rank_), close();
    }
    for (int k = 0; k < count && !must_stop(); k++) body(k, rank_);
  }

  // Inside an iteration: waits for an iteration before it.
  template <class Ready> void wait(const Ready& ready) const {
    if (size_ > 1) team_->wait(ready);
  }

 private:
  friend class SharedLoops;
  static constexpr int kOpen = 1 << 30;

  void begin(const Team& team, SharedLoops& all) { rank_ = team.rank, size_ = team.size, team_ = &team, all_ = &all; }
  void open(int count, void (*body)(void*, int, int), void* context);
  void close();
  void share(int rank) {
    const int count = count_.load(std::memory_order_relaxed);
    for (int k; !must_stop() && (k = next_.fetch_add(1, std::memory_order_relaxed)) < count;) body_(context_, k, rank);
  }
  bool has_iterations() const {
    return next_.load(std::memory_order_relaxed) < count_.load(std::memory_order_relaxed) &&
           (gate_.load(std::memory_order_relaxed) & kOpen);
  }
  bool enter();
  void leave();

  int rank_, size_ = 1;
  const Team* team_ = nullptr;
  SharedLoops* all_ = nullptr;
  void (*body_)(void*, int, int) = nullptr;
  void* context_ = nullptr;
  // On a cache line of its own.
  // kOpen while threads may enter, plus the number of threads inside. The loop's data change only at 0.
  alignas(64) std::atomic<int> gate_{0};
  std::atomic<int> count_{0}, next_{0};
};

// The loops of all members of a team.
class SharedLoops {
 public:
  explicit SharedLoops(int most_members) : loops_(new Loops[most_members]) {}

  // Called once by each member: `other(loops)` runs the member's next program, which may open loops, or returns false
  // if there is none at the moment. Returns after end(). Open loops come first: they are on longer paths.
  template <class Other> void run(const Team& team, Other&& other) {
    Loops& own = loops_[team.rank];
    own.begin(team, *this);
    for (;;) {
      const int now = changes_.load(std::memory_order_acquire);
      if (ended_.load(std::memory_order_acquire) || team.may_leave()) return;
      if (!help(team) && !other(own)) wait_while(now);
    }
  }
  void changed();  // wakes members that found nothing to do
  void end();      // members return

 private:
  bool help(const Team& team);
  void wait_while(int now) const;

  std::unique_ptr<Loops[]> loops_;
  alignas(64) std::atomic<int> changes_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace gs
