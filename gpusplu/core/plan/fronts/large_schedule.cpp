// A list schedule of the large fronts, front by front: which of them share the device, and when they start. It
// determines only the order of tasks; the kernel is dynamic.
#include <algorithm>
#include <queue>

#include "plan/fronts/plan.hpp"

namespace gs::gpu {
namespace {

constexpr double kLeastCrowd = 0.35;  // least share that a front gets of the blocks with which its chain bounds it

struct FrontCost {
  double work, chain;  // block seconds; shortest time with any number of blocks [s]
};

FrontCost front_cost(const Plan& plan, const TileTimes& times, idx f) {
  const double tile = plan.parameters.large_tile, W = plan.width[f], R = plan.rows[f], H = R - W;
  const double pivots = std::ceil(W / tile), tiles = pivots + std::ceil(H / tile);
  const double n_tasks = plan.one_triangle() ? tiles * (tiles + 1) / 2 : tiles * tiles;
  const double flops =
      (plan.one_triangle() ? 1 : 2) * (plan.parameters.is_complex() ? 4 : 1) * (R * R * R - H * H * H) / 3;
  return {n_tasks * times.task + flops * times.flop * times.blocks,
          times.front + pivots * times.pivot + times.column * pivots};
}

}  // namespace

TileTimes tile_times(const Plan& plan) {
  const TileCosts& costs = plan.parameters.costs.tiles;
  const char scalar = plan.parameters.scalar;
  const double flop = scalar == 'D' ? costs.flop_D : scalar == 'F' ? costs.flop : costs.flop_d;
  const double blocks = (double)plan.parameters.multiprocessors * plan.parameters.large_shape().blocks;
  return {costs.front, costs.task, plan.cholesky ? costs.pivot_cholesky : costs.pivot, costs.column, flop, blocks};
}

LargeSchedule schedule_large(const Plan& plan, const std::vector<idx>& large) {
  const idx n = (idx)large.size();
  LargeSchedule out;
  out.start.assign(n, 0);
  out.duration.assign(n, 0);
  out.blocks.assign(n, 0);
  const TileTimes times = tile_times(plan);
  const double blocks = times.blocks;
  std::vector<idx> parent(n, -1), waiting(n, 0);
  std::vector<FrontCost> cost(n);
  std::vector<double> path(n, 0);  // from the start of the front to the end of its root
  for (idx k = n - 1; k >= 0; --k) {
    cost[k] = front_cost(plan, times, large[k]);
    const idx p = plan.parent[large[k]];
    if (const auto at = std::lower_bound(large.begin(), large.end(), p); at != large.end() && *at == p) {
      parent[k] = (idx)(at - large.begin());
      ++waiting[parent[k]];
    }
    path[k] = std::max(cost[k].chain, cost[k].work / blocks) + (parent[k] >= 0 ? path[parent[k]] : 0);
  }

  // Blocks of a front that waits for its chain are wasted where work bounds the device: then more fronts share it.
  double work = 0;
  for (const FrontCost& c : cost) work += c.work;
  const double longest = n ? *std::max_element(path.begin(), path.end()) : 0;
  const double crowd = std::clamp(longest * blocks / std::max(work, 1e-9), kLeastCrowd, 1.0);

  struct Running {
    double end;
    idx front;
    double blocks;
    bool operator<(const Running& other) const { return end != other.end ? end > other.end : front > other.front; }
  };
  const auto later = [&](idx a, idx b) { return path[a] != path[b] ? path[a] < path[b] : a > b; };
  std::priority_queue<idx, std::vector<idx>, decltype(later)> ready(later);
  std::priority_queue<Running> running;
  for (idx k = 0; k < n; ++k)
    if (!waiting[k]) ready.push(k);
  double now = 0, free = blocks;
  while (!ready.empty() || !running.empty()) {
    while (!ready.empty()) {
      const idx k = ready.top();
      const double wanted = std::clamp(crowd * cost[k].work / cost[k].chain, 1.0, blocks);
      if (free < wanted / 2 && !running.empty()) break;
      ready.pop();
      const double given = std::min(wanted, free);
      out.start[k] = now;
      out.duration[k] = cost[k].work / given;
      out.blocks[k] = given;
      running.push({now + out.duration[k], k, given});
      free -= given;
    }
    const Running first = running.top();
    running.pop();
    now = first.end;
    free += first.blocks;
    const idx p = parent[first.front];
    if (p >= 0 && --waiting[p] == 0) ready.push(p);
  }
  out.seconds = now;
  return out;
}

}  // namespace gs::gpu
