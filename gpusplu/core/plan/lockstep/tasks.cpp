// Which fronts are processed together. Cost: O(fronts).
#include <algorithm>

#include "plan/lockstep/plan.hpp"

namespace gs::gpu {
namespace {

// Multiply-adds, assembled entries, and a constant for the front itself.
double front_work(const LockstepFront& front, bool cholesky) {
  const double W = front.width, R = front.rows, H = R - W;
  return 32 + (W * W * W / 3 + W * W * H + W * H * H + 2 * R * R) * (cholesky ? 0.5 : 1);
}

}  // namespace

void cut_lockstep_tasks(double grain, LockstepPlan& plan) {
  std::vector<double> subtree(plan.nf);
  std::vector<idx> size(plan.nf, 1), task_of(plan.nf);
  for (idx f = 0; f < plan.nf; f++) {
    const double work = front_work(plan.fronts[f], plan.cholesky);
    plan.work += work, subtree[f] += work;
    if (const idx above = plan.fronts[f].parent; above >= 0) subtree[above] += subtree[f], size[above] += size[f];
  }
  const auto is_below = [&](idx f) { return subtree[f] <= grain; };
  for (idx f = 0; f < plan.nf; f++) {
    const idx above = plan.fronts[f].parent;
    if (grain > 0 && is_below(f) && above >= 0 && is_below(above)) continue;
    if (grain <= 0 && f + 1 < plan.nf) continue;
    const idx first = grain <= 0 ? 0 : is_below(f) ? f - size[f] + 1 : f;
    const double work = grain <= 0 ? plan.work : is_below(f) ? subtree[f] : front_work(plan.fronts[f], plan.cholesky);
    std::fill(task_of.begin() + first, task_of.begin() + f + 1, (idx)plan.tasks.size());
    plan.tasks.push_back({first, f, -1, 0, 0, 0, work});
  }
  for (LockstepTask& task : plan.tasks) {
    const idx above = plan.fronts[task.last].parent;
    if (above < 0) continue;
    LockstepTask& parent = plan.tasks[task.parent = task_of[above]];
    parent.children++;
    parent.level = std::max(parent.level, task.level + 1);
  }
}

}  // namespace gs::gpu
