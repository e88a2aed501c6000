#include "base/loops.hpp"

namespace gs {

void Loops::open(int count, void (*body)(void*, int, int), void* context) {
  body_ = body, context_ = context;
  count_.store(count, std::memory_order_relaxed), next_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen + 1, std::memory_order_release);
  all_->changed();
}

void Loops::close() {
  int inside = gate_.fetch_sub(kOpen + 1, std::memory_order_acq_rel) - (kOpen + 1);
  const auto is_empty = [&] { return (inside = gate_.load(std::memory_order_acquire)) == 0; };
  if (inside > 0) team_->wait(is_empty, [&](std::int64_t) { gate_.wait(inside, std::memory_order_acquire); });
}

bool Loops::enter() {
  int gate = gate_.load(std::memory_order_relaxed);
  while (gate & kOpen)
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
  return false;
}

void Loops::leave() {
  if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1) gate_.notify_one();
}

bool SharedLoops::help(const Team& team) {
  for (int k = 1; k < team.size; k++) {
    Loops& loops = loops_[(team.rank + k) % team.size];
    if (!loops.has_iterations() || !loops.enter()) continue;
    loops.share(team.rank), loops.leave();
    return true;
  }
  return false;
}

void SharedLoops::changed() {
  changes_.fetch_add(1, std::memory_order_acq_rel);
  changes_.notify_all();
}

void SharedLoops::end() {
  ended_.store(true, std::memory_order_release);
  changed();
}

void SharedLoops::wait_while(int now) const {
  WaitRecord idle;  // not recorded for the job: an idle wait does not show contention
  wait_until([&] { return changes_.load(std::memory_order_acquire) != now; },
             [&](std::int64_t) { changes_.wait(now, std::memory_order_acquire); }, idle);
}

}  // namespace gs
