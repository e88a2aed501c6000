#include "analysis/dissection/probe.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/dissection/recursion.hpp"

namespace gs::nd {
namespace {

constexpr idx kBall = 8000, kSmallestBall = 1500;  // an eighth of the graph within these limits

// The first `size` vertices of breadth-first searches from random vertices, ascending.
std::vector<idx> collect_ball(const Graph& g, idx size, std::uint64_t seed) {
  std::vector<char> met(g.n, 0);
  std::vector<idx> queue;
  queue.reserve(size);
  Random random(seed);
  for (std::size_t head = 0; (idx)queue.size() < size; head++) {
    if (head == queue.size()) {
      idx v = random.below(g.n);
      while (met[v]) v = v + 1 == g.n ? 0 : v + 1;
      met[v] = 1;
      queue.push_back(v);
    }
    for (off p = g.ptr[queue[head]]; p < g.ptr[queue[head] + 1] && (idx)queue.size() < size; p++) {
      if (met[g.adj[p]]) continue;
      met[g.adj[p]] = 1;
      queue.push_back(g.adj[p]);
    }
  }
  std::sort(queue.begin(), queue.end());
  return queue;
}

}  // namespace

// Row subtrees (Liu, SIAM J. Matrix Anal. 11 (1990)).
double factor_flops(const Graph& g, const std::vector<idx>& order) {
  std::vector<idx> place(g.n), parent(g.n, -1), mark(g.n, -1), count(g.n, 1);
  for (idx k = 0; k < g.n; k++) place[order[k]] = k;
  for (idx k = 0; k < g.n; k++) {
    mark[k] = k;
    for (off p = g.ptr[order[k]]; p < g.ptr[order[k] + 1]; p++) {
      for (idx i = place[g.adj[p]]; i < k && mark[i] != k; i = parent[i]) {
        if (parent[i] < 0) parent[i] = k;
        mark[i] = k;
        count[i]++;
      }
    }
  }
  double flops = 0;
  for (idx c : count) flops += (double)c * c;
  return flops;
}

Probe::Probe(const Graph& whole, std::uint64_t seed) : seed_(seed) {
  const idx size = std::min(whole.n, std::max(kSmallestBall, std::min(kBall, whole.n / 8)));
  const std::vector<idx> ball = collect_ball(whole, size, seed + 77);
  std::vector<idx> local(whole.n, -1);
  for (idx i = 0; i < size; i++) local[ball[i]] = i;
  for (idx v : ball) {
    ptr_.push_back((off)adj_.size());
    weight_.push_back(whole.weight[v]);
    for (off p = whole.ptr[v]; p < whole.ptr[v + 1]; p++)
      if (local[whole.adj[p]] >= 0) adj_.push_back(local[whole.adj[p]]);
  }
  ptr_.push_back((off)adj_.size());
  ball_ = {size,           ptr_.data(), adj_.data(),
           weight_.data(), nullptr,     std::accumulate(weight_.begin(), weight_.end(), off(0))};
}

double Probe::trial(Coarse coarse, Workspace& ws) const {
  std::vector<idx> order(ball_.n), all(ball_.n);
  std::iota(all.begin(), all.end(), 0);
  const Context context{ball_, order.data(), [coarse] { return coarse; }};
  Component component;
  component.hierarchy.level.push_back(ball_);
  component.vertex = all.data();
  component.seed = seed_;
  dissect(context, ws, component);
  return factor_flops(ball_, order);
}

void Probe::help() {
  Workspace ws;
  ws.tasks = &tasks_;
  for (int which = begun_.fetch_add(1); which < 2; which = begun_.fetch_add(1)) {
    tasks_.try_to([&](Workspace& own) { flops_[which] = trial(which == 0 ? Coarse::separators : Coarse::cuts, own); },
                  ws);
    if (done_.fetch_add(1) == 1) tasks_.close();
  }
  tasks_.serve(ws);
}

Coarse Probe::answer() {
  help();
  tasks_.rethrow();
  return flops_[1] < flops_[0] ? Coarse::cuts : Coarse::separators;
}

}  // namespace gs::nd
