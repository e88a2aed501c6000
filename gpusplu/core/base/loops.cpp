#include "base/loops.hpp"

namespace gs {

void Loops::open(int count, void (*body)(void*, int, int), void* context) {
  count_ = count, body_ = body, context_ = context;
  next_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen + 1, std::memory_order_release);
  number_.store((number_.load(std::memory_order_relaxed) + 1) & (kOpen - 1), std::memory_order_release);
  number_.notify_all();
}

void Loops::close() {
  int inside = gate_.fetch_sub(kOpen + 1, std::memory_order_acq_rel) - (kOpen + 1);
  const auto is_empty = [&] { return (inside = gate_.load(std::memory_order_acquire)) == 0; };
  if (inside > 0) team_->wait(is_empty, [&](std::int64_t) { gate_.wait(inside, std::memory_order_acquire); });
}

void Loops::end() {
  number_.store(kEnd, std::memory_order_release);
  number_.notify_all();
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

void Loops::wait_while(int number) const {
  WaitRecord idle;  // not recorded for the job: an idle wait does not show contention
  wait_until([&] { return number_.load(std::memory_order_acquire) != number; },
             [&](std::int64_t) { number_.wait(number, std::memory_order_acquire); }, idle);
}

}  // namespace gs
