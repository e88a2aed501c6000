#include "numeric/lockstep_sums.hpp"

#include <limits>
#include <stdexcept>

namespace gs {
namespace {

using gpu::LockstepFront;

// Calls add(in_block, from, to) for the entries of a child's block, as kernels/lockstep/assembly.hpp adds them.
template <class Add>
void each_entry(const gpu::LockstepPlan& plan, const LockstepFront& front, const LockstepFront& child, Add&& add) {
  const std::uint16_t* place = plan.place.data() + child.below;
  const idx m = child.rows - child.width, pivots = child.above_pivots;
  const off R = front.rows, W = front.width, H = R - W;
  const off upper = R * W;
  for (idx j = 0; j < m; j++)
    for (idx i = plan.cholesky ? j : 0; i < m; i++) {
      const off from = child.block + off(j) * m + i, row = place[i], column = place[j];
      if (j < pivots) add(false, from, column * R + row);
      else if (i < pivots) add(false, from, upper + row * H + column - W);
      else add(true, from, (column - W) * H + row - W);
    }
}

}  // namespace

LockstepSums make_lockstep_sums(const gpu::LockstepPlan& plan) {
  if (plan.task_size + plan.shared_size > std::numeric_limits<idx>::max())
    throw std::length_error("the blocks of a system have more than 2147483647 entries");
  LockstepSums sums;
  sums.ptr = {0};
  for (const LockstepFront& front : plan.fronts)
    for (const bool of_block : {false, true}) {
      for (idx c = front.child_begin; c < front.child_end; c++) {
        const LockstepFront& child = plan.fronts[plan.child[c]];
        if (child.rows - child.width > most_listed_rows) continue;
        each_entry(plan, front, child, [&](bool in_block, off from, off to) {
          if (in_block == of_block) sums.from.push_back((idx)from), sums.to.push_back((idx)to);
        });
      }
      sums.ptr.push_back((off)sums.to.size());
    }
  return sums;
}

}  // namespace gs
