#include "numeric/block_limit.hpp"

#include <algorithm>
#include <limits>

#include "numeric/strips.hpp"

namespace gs {
namespace {

constexpr off kLeastBytes = off(32) << 20;  // of a factor; blocks of smaller ones have no limit
constexpr double kShare = 0.44;             // of the factor: blocks with the matrix and its analysis

}  // namespace

BlockLimit::BlockLimit(const Symbolic& symbolic, const FrontPlan& plan, off scalar_bytes) {
  const off n = symbolic.n, entries = symbolic.one_triangle() ? (symbolic.nnz + n) / 2 : symbolic.nnz;
  const off factor = plan.panel_ptr.back() * scalar_bytes + entries * off(2 * sizeof(std::uint32_t));
  most_ = std::numeric_limits<off>::max();
  if (factor < kLeastBytes) return;
  off serial = 0, total = 0, waiting = 0;
  for (const FrontTask& task : plan.tasks) {
    off most = 0, blocks = 0;
    const auto size = [&](idx s) {
      return scalar_bytes * (off)contribution_size(FrontShape(symbolic, s).H, symbolic.one_triangle());
    };
    for (idx s = task.first; s <= task.last; s++) {
      blocks += size(s);
      most = std::max(most, blocks);
      for (idx c = plan.child_ptr[s]; c < plan.child_ptr[s + 1]; c++) blocks -= size(plan.child[c]);
    }
    tasks_.push_back({most, blocks});
    serial = std::max(serial, waiting + most);
    waiting += blocks, total += most;
  }
  const off matrix = symbolic.nnz * (scalar_bytes + off(sizeof(idx))) + n * off(sizeof(off)) +
                     (2 * (off)symbolic.row_ind.size() + 8 * n) * off(sizeof(idx));
  most_ = std::max(serial, off(kShare * factor) - matrix);
  is_needed_ = total > most_;
}

BlockLimit::Tasks::Tasks(const FrontPlan& plan, const BlockLimit& limit)
    : plan_(plan), limit_(limit), is_done_(plan.tasks.size()) {}

idx BlockLimit::Tasks::next() {
  idx t = -1;
  const auto ready = std::find_if(ready_.begin(), ready_.end(), [&](idx t) { return may_begin(t); });
  if (ready != ready_.end()) {
    t = *ready;
    ready_.erase(ready);
  } else if (next_start_ < plan_.start_tasks.size() && may_begin(plan_.start_tasks[next_start_])) {
    t = plan_.start_tasks[next_start_++];
  }
  if (t < 0 || !limit_.is_needed_) return t;
  running_ += limit_.tasks_[t].need, last_ = std::max(last_, t);
  return t;
}

void BlockLimit::Tasks::end(idx t, idx parent) {
  if (parent >= 0) ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), parent), parent);
  if (!limit_.is_needed_) return;
  running_ -= limit_.tasks_[t].need, waiting_ += limit_.tasks_[t].change;
  is_done_[t] = true;
  while (first_ < (idx)is_done_.size() && is_done_[first_]) first_++;
}

bool BlockLimit::Tasks::may_begin(idx t) const {
  const std::vector<Task>& tasks = limit_.tasks_;
  if (!limit_.is_needed_ || (t == first_ && running_ == 0)) return true;
  if (waiting_ + running_ + tasks[t].need > limit_.most_) return false;
  off blocks = waiting_ + tasks[t].change;
  for (idx s = first_; s < std::max(t, last_); s++) {
    if (is_done_[s] || s == t) continue;
    if (blocks + tasks[s].need > limit_.most_) return false;
    blocks += tasks[s].change;
  }
  return true;
}

}  // namespace gs
