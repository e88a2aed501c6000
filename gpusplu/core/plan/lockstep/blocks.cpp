// Where contribution blocks lie: in the memory of a task each takes the lowest gap that is large enough, so that the
// used memory stays small and in the nearest cache. Cost: O(fronts * blocks that are alive).
#include <algorithm>
#include <map>

#include "plan/lockstep/plan.hpp"

namespace gs::gpu {
namespace {

// Memory with blocks in it: their ends by their begins.
class Gaps {
 public:
  off take(off size) {
    off begin = 0;
    for (const auto& [used, end] : used_) {
      if (used - begin >= size) break;
      begin = end;
    }
    if (size > 0) used_.emplace(begin, begin + size);
    return begin;
  }
  void give(off begin) { used_.erase(begin); }

 private:
  std::map<off, off> used_;
};

}  // namespace

void place_lockstep_blocks(LockstepPlan& plan) {
  for (const LockstepTask& task : plan.tasks) {
    Gaps gaps;
    for (idx f = task.first; f <= task.last; f++) {
      LockstepFront& front = plan.fronts[f];
      const off H = front.rows - front.width, size = H * H;
      front.block_shared = f == task.last;
      if (front.block_shared) {
        front.block = plan.shared_size;
        plan.shared_size += size;
      } else {
        const off begin = gaps.take(size);
        front.block = begin;
        plan.task_size = std::max(plan.task_size, begin + size);
      }
      for (idx c = front.child_begin; c < front.child_end; c++) {
        const LockstepFront& child = plan.fronts[plan.child[c]];
        if (!child.block_shared && child.rows > child.width) gaps.give(child.block);
      }
    }
  }
}

}  // namespace gs::gpu
