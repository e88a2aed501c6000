#include "plan/lockstep/plan.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "analysis/elimination_tree.hpp"
#include "analysis/entry_places.hpp"
#include "analysis/graph.hpp"
#include "analysis/structure.hpp"
#include "base/stopwatch.hpp"
#include "plan/gaps.hpp"

namespace gs::gpu {
namespace {

// The analysis with supernodes merged by other costs, on the same ordering except for columns that change places at
// equal fill.
Symbolic with_merging(const Symbolic& symbolic, PatternView A, const SupernodeCosts& merging) {
  std::vector<idx> row_of_col(symbolic.n);
  for (idx k = 0; k < symbolic.n; k++) row_of_col[symbolic.col_perm[k]] = symbolic.row_perm[k];
  Symbolic merged;
  merged.n = symbolic.n, merged.nnz = symbolic.nnz, merged.cholesky = symbolic.cholesky;
  const Pattern graph = symmetrize(A, row_of_col.data());
  merged.col_perm = supernodal_structure(graph.view(), symbolic.col_perm, Relaxation{merging}, merged);
  merged.row_perm = gather(row_of_col, merged.col_perm);
  merged.row_scale = symbolic.row_scale, merged.col_scale = symbolic.col_scale;
  return merged;
}

void place_fronts(const Symbolic& s, LockstepPlan& plan) {
  if (s.row_ind.size() > (std::size_t)std::numeric_limits<idx>::max())
    throw std::length_error("the fronts have more than 2147483647 rows: the fill is too large");
  Children children(s.super_parent);
  children.drop_roots();
  plan.fronts.resize(plan.nf);
  for (idx f = 0; f < plan.nf; f++) {
    const idx W = s.super_ptr[f + 1] - s.super_ptr[f], H = (idx)(s.row_ptr[f + 1] - s.row_ptr[f]);
    if (W + H > MOST_LOCKSTEP_ROWS) throw std::length_error("a front has too many rows for lockstep");
    const idx* place = s.rel_ind.data() + s.row_ptr[f];
    const idx above = s.super_parent[f], width = above < 0 ? 0 : s.super_ptr[above + 1] - s.super_ptr[above];
    LockstepFront& front = plan.fronts[f] = {};
    front.width = W, front.rows = W + H, front.first = s.super_ptr[f], front.parent = above;
    front.below = (idx)s.row_ptr[f];
    front.above_pivots = above < 0 ? 0 : (idx)(std::lower_bound(place, place + H, width) - place);
    front.child_begin = children.ptr[f], front.child_end = children.ptr[f + 1];
    front.factor = plan.factor_size;
    plan.factor_size += off(W + H) * W + (plan.cholesky ? 0 : off(W) * H);
    plan.tallest = std::max(plan.tallest, W + H);
    plan.flops += gs::front_flops(W, H, plan.cholesky);
  }
  plan.child = std::move(children.list);
  plan.below.assign(s.row_ind.begin(), s.row_ind.end());
  plan.place.resize(s.rel_ind.size());
  std::transform(s.rel_ind.begin(), s.rel_ind.end(), plan.place.begin(),
                 [](idx place) { return (std::uint16_t)place; });
}

void place_entries(const Symbolic& s, PatternView A, LockstepPlan& plan) {
  if (A.nnz() > std::numeric_limits<idx>::max()) throw std::length_error("the matrix has more than 2147483647 entries");
  EntryPlaces<idx> places(columns_of_fronts(s, s.cholesky), A);
  const std::vector<off> ptr = places.count();
  plan.entry_source.resize(ptr.back()), plan.entry_target.resize(ptr.back());
  plan.entry_scale.resize(s.row_scale.empty() ? 0 : ptr.back());
  for (idx f = 0; f < plan.nf; f++)
    plan.fronts[f].entry_begin = (idx)ptr[f], plan.fronts[f].entry_end = (idx)ptr[f + 1];
  places.write([&](off to, idx f, off k, idx j, idx row, idx column) {
    const LockstepFront& front = plan.fronts[f];
    const idx R = front.rows, W = front.width, H = R - W;
    plan.entry_source[to] = (idx)k;
    plan.entry_target[to] = (std::uint32_t)(column < W ? column * R + row : R * W + row * H + column - W);
    if (!plan.entry_scale.empty()) plan.entry_scale[to] = s.row_scale[A.ind[k]] * s.col_scale[s.col_perm[j]];
  });
}

// Which fronts are processed together. Cost: O(fronts).
// Multiply-adds, assembled entries, and a constant for the front itself.
double front_work(const LockstepFront& front, bool cholesky) {
  const double W = front.width, R = front.rows, H = R - W;
  return 32 + (W * W * W / 3 + W * W * H + W * H * H + 2 * R * R) * (cholesky ? 0.5 : 1);
}

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

// Where contribution blocks lie: in the memory of a task each takes the lowest gap that is large enough, so that the
// used memory stays small and in the nearest cache. Cost: O(fronts * blocks that are alive).
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
        front.block = gaps.take(size);
      }
      for (idx c = front.child_begin; c < front.child_end; c++) {
        const LockstepFront& child = plan.fronts[plan.child[c]];
        if (!child.block_shared && child.rows > child.width) gaps.give(child.block);
      }
    }
    plan.task_size = std::max(plan.task_size, gaps.top());
  }
}

}  // namespace

LockstepPlan make_lockstep_plan(const Symbolic& symbolic, PatternView A, const LockstepParameters& parameters) {
  if (symbolic.n != A.n) throw std::invalid_argument("the symbolic is of another matrix: orders differ");
  if (symbolic.method != Method::front) throw std::invalid_argument("a plan needs a symbolic of method 'front'");
  if (symbolic.structural_rank < symbolic.n) throw std::invalid_argument("a structurally singular matrix has no plan");
  const Stopwatch watch;
  LockstepPlan plan;
  Symbolic merged = with_merging(symbolic, A, parameters.merging);
  plan.n = symbolic.n, plan.nf = merged.nsuper(), plan.nnz = A.nnz(), plan.cholesky = symbolic.cholesky;
  place_fronts(merged, plan);
  place_entries(merged, A, plan);
  plan.row_perm = std::move(merged.row_perm), plan.col_perm = std::move(merged.col_perm);
  plan.row_scale = std::move(merged.row_scale), plan.col_scale = std::move(merged.col_scale);
  cut_lockstep_tasks(parameters.grain, plan);
  place_lockstep_blocks(plan);
  plan.seconds = watch.seconds();
  return plan;
}

}  // namespace gs::gpu
