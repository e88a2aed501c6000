// Compression, dissection of the reduced graph as tasks on a team, expansion.
//
// The recursion: George, SIAM J. Numer. Anal. 10 (1973); the children reuse the coarse levels of their parents for a
// few generations, which saves most of the coarsening (half of the time otherwise). Small components are ordered by
// minimum degree: the elimination graph as bit rows; George, Liu, SIAM Review 31 (1989): external degree, mass
// elimination. Halo: Pellegrini, Roman, Amestoy, Concurrency 12 (2000).
#include "analysis/dissection/nested_dissection.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>

#include "analysis/compress.hpp"
#include "analysis/dissection/coarsen.hpp"
#include "analysis/dissection/components.hpp"
#include "analysis/dissection/partition.hpp"
#include "analysis/dissection/tasks.hpp"
#include "base/threads.hpp"

namespace gs {
namespace nd {
namespace {

constexpr idx kLeaf = 240;    // components up to this size are ordered by minimum degree
constexpr idx kTwice = 3000;  // up to this size, both partitioning methods are tried on the whole graph
constexpr int kProbers = 4;   // threads that take part in a probe; the others find work in the graph itself
constexpr idx kBall = 8000, kSmallestBall = 1500;  // an eighth of the graph within these limits
constexpr idx kFork = 1000;       // one child of a component of this size may be ordered by another thread
constexpr idx kParallel = 4000;   // from this size on, both children are cut out at the same time
constexpr int kGenerations = 3;   // a hierarchy is coarsened again at every third depth
constexpr idx kDenseLeaf = 2048;  // largest component without a separator that minimum degree can order
constexpr int kDeepest = 100;     // unbalanced beyond reason

constexpr idx kEliminated = INT32_MAX;

struct BitRows {
  idx n, words;  // rows; words of a row: columns are the n vertices, then the halo
  std::uint64_t* bits;
  std::uint64_t* row(idx v) const { return bits + (std::size_t)v * words; }
  idx count(idx v) const {
    idx total = 0;
    for (idx w = 0; w < words; w++) total += std::popcount(row(v)[w]);
    return total;
  }
  static void set(std::uint64_t* row, idx u) { row[u >> 6] |= std::uint64_t(1) << (u & 63); }
  static void reset(std::uint64_t* row, idx u) { row[u >> 6] &= ~(std::uint64_t(1) << (u & 63)); }
  // Calls f for the vertices of a row, not for its halo; f may change the row at the vertex it was called for.
  template <class F> void each(const std::uint64_t* row, F&& f) const {
    for (idx w = 0; w < (n + 63) >> 6; w++) {
      std::uint64_t rest = row[w];
      if (n - 64 * w < 64) rest &= (std::uint64_t(1) << (n - 64 * w)) - 1;
      for (; rest; rest &= rest - 1) f(64 * w + std::countr_zero(rest));
    }
  }
};

BitRows load(Workspace& ws, const Graph& whole, const idx* vertex, idx n) {
  ws.place.reserve(whole.n);
  idx* place = ws.place.data();  // columns plus one
  const idx halo_limit = std::max<idx>(64, 2 * n);
  idx columns = n;
  ws.list.clear();
  for (idx i = 0; i < n; i++) place[vertex[i]] = i + 1;
  for (idx i = 0; i < n; i++) {
    for (off p = whole.ptr[vertex[i]]; p < whole.ptr[vertex[i] + 1]; p++) {
      const idx u = whole.adj[p];
      if (place[u] != 0 || columns - n == halo_limit) continue;
      place[u] = ++columns;
      ws.list.push_back(u);
    }
  }
  const idx words = (columns + 63) >> 6;
  ws.bit_rows.assign((std::size_t)n * words, 0);
  const BitRows rows{n, words, ws.bit_rows.data()};
  for (idx i = 0; i < n; i++)
    for (off p = whole.ptr[vertex[i]]; p < whole.ptr[vertex[i] + 1]; p++)
      if (const idx column = place[whole.adj[p]]) BitRows::set(rows.row(i), column - 1);
  for (idx i = 0; i < n; i++) place[vertex[i]] = 0;
  for (idx u : ws.list) place[u] = 0;
  return rows;
}

// Eliminates v: its neighbours become a clique. ws.list: those that are indistinguishable from v.
void eliminate(Workspace& ws, const BitRows& rows, idx v) {
  const idx degree = ws.degree[v];
  const std::uint64_t* pivot = rows.row(v);
  ws.degree[v] = kEliminated;
  ws.list.clear();
  rows.each(pivot, [&](idx u) {
    std::uint64_t* row = rows.row(u);
    for (idx w = 0; w < rows.words; w++) row[w] |= pivot[w];
    BitRows::reset(row, v), BitRows::reset(row, u);
    ws.degree[u] = rows.count(u);
    if (ws.degree[u] == degree - 1) ws.list.push_back(u);
  });
}

// Eliminates ws.list, all neighbours of v, with it.
void eliminate_twins(Workspace& ws, const BitRows& rows, idx v) {
  for (idx u : ws.list) {
    ws.degree[u] = kEliminated;
    BitRows::reset(rows.row(v), u);
  }
  rows.each(rows.row(v), [&](idx y) {
    for (idx u : ws.list) BitRows::reset(rows.row(y), u);
    ws.degree[y] -= (idx)ws.list.size();
  });
}

// Orders n vertices of the graph into order[0 .. n-1] by exact external degree. Their neighbours outside, which come
// later, count in the degrees (halo: 3-7 % less fill on 2D meshes and circuits). Cost: O(n d (n + halo) / 64) for
// fronts of d vertices.
void order_leaf(Workspace& ws, const Graph& whole, const idx* vertex, idx n, idx* order) {
  const BitRows rows = load(ws, whole, vertex, n);
  ws.degree.resize(n);
  for (idx i = 0; i < n; i++) ws.degree[i] = rows.count(i);
  for (idx done = 0; done < n;) {
    const idx v = (idx)(std::min_element(ws.degree.begin(), ws.degree.end()) - ws.degree.begin());
    order[done++] = vertex[v];
    eliminate(ws, rows, v);
    if (ws.list.empty()) continue;
    for (idx u : ws.list) order[done++] = vertex[u];
    eliminate_twins(ws, rows, v);
  }
}

struct Context {
  Graph whole;
  idx* order;                      // places -> vertices of the whole graph
  std::function<Coarse()> coarse;  // partition type of the coarse levels
};

void order_by_degree(const Component& component, idx* order) {
  const Graph& g = component.hierarchy.level[0];
  std::vector<idx> local(g.n);
  std::iota(local.begin(), local.end(), 0);
  std::stable_sort(local.begin(), local.end(),
                   [&](idx a, idx b) { return g.ptr[a + 1] - g.ptr[a] < g.ptr[b + 1] - g.ptr[b]; });
  for (idx i = 0; i < g.n; i++) order[i] = component.vertex[local[i]];
}

void order_small(const Context& context, Workspace& ws, const Component& component) {
  order_leaf(ws, context.whole, component.vertex, component.n(), context.order + component.first);
}

// Cuts a component in two and orders its separator. Returns false if there is none.
bool divide(const Context& context, Workspace& ws, Component& component, Component child[2]) {
  const Graph g = component.hierarchy.level[0];
  ArenaScope scope(ws.arena);
  ws.reserve(g.n);
  Random random(mix(component.seed));
  Partition part{ws.arena.get<signed char>(g.n)};
  coarsen(ws, component.hierarchy, coarse_target(g.n), random);
  find_separator(ws, component.hierarchy, context.coarse(), part, random);
  if (part.weight[0] == 0 || part.weight[1] == 0) return false;
  split(ws, component, part, (component.depth + 1) % kGenerations != 0, g.n >= kParallel, child);
  idx* separator = context.order + child[1].first + child[1].n();
  for (idx v = 0; v < g.n; v++)
    if (part.side[v] == 2) *separator++ = component.vertex[v];
  return true;
}

void dissect(const Context& context, Workspace& ws, Component& component) {
  go_on();
  const idx n = component.n();
  Component child[2];
  if (n <= kLeaf) return order_small(context, ws, component);
  if (component.depth > kDeepest || !divide(context, ws, component, child)) {
    if (n <= kDenseLeaf) return order_small(context, ws, component);
    return order_by_degree(component, context.order + component.first);
  }
  component.memory.reset();
  Fork fork(n < kFork ? nullptr : ws.tasks, ws, child[1].n(),
            [&](Workspace& other) { dissect(context, other, child[1]); });
  dissect(context, ws, child[0]);
  fork.join(true);
}

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

// Sum of the squared column counts of the Cholesky factor in that order: order[place] is a vertex of the graph.
// By row subtrees (Liu, SIAM J. Matrix Anal. 11 (1990)).
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

// Chooses between separators and cuts at the coarse levels: orders a ball of some thousand vertices by both methods and
// compares the flops of its factorization. (The size of the top separator is no guide.) The two trials and their parts
// may run on different threads; they have a task queue of their own, so that no thread that runs a trial waits for the
// answer.
class Probe {
 public:
  Probe(const Graph& whole, std::uint64_t seed) {
    const idx size = std::min(whole.n, std::max(kSmallestBall, std::min(kBall, whole.n / 8)));
    std::vector<idx> local(whole.n, -1);
    ball_ = extract(whole, collect_ball(whole, size, seed + 77).data(), size, local);
    numbers_.resize(size);
    std::iota(numbers_.begin(), numbers_.end(), 0);
    ball_.vertex = numbers_.data();
    ball_.seed = seed;
  }

  // Takes part until both trials are done.
  void help() {
    Workspace ws;
    ws.tasks = &tasks_;
    for (int which = begun_.fetch_add(1); which < 2; which = begun_.fetch_add(1)) {
      tasks_.try_to([&](Workspace& own) { flops_[which] = trial(which == 0 ? Coarse::separators : Coarse::cuts, own); },
                    ws);
      if (done_.fetch_add(1) == 1) tasks_.close();
    }
    tasks_.serve(ws);
  }

  // The same, and returns the better method.
  Coarse answer() {
    help();
    tasks_.rethrow();
    return flops_[1] < flops_[0] ? Coarse::cuts : Coarse::separators;
  }

 private:
  double trial(Coarse coarse, Workspace& ws) const {
    std::vector<idx> order(ball_.n());
    const Context context{ball_.hierarchy.level[0], order.data(), [coarse] { return coarse; }};
    Component component(ball_);
    dissect(context, ws, component);
    return factor_flops(context.whole, order);
  }

  Component ball_;
  std::vector<idx> numbers_;  // 0, 1, ...
  double flops_[2] = {0, 0};
  std::atomic<int> begun_{0}, done_{0};
  Tasks tasks_;
};

// One order of a graph with known connected components.
struct Attempt {
  std::vector<idx> order;
  std::vector<Component> components;
  Context context;
  double flops = 0;

  Attempt(const Graph& whole, const std::vector<Component>& components, std::function<Coarse()> coarse)
      : order(whole.n), components(components), context{whole, order.data(), std::move(coarse)} {}

  void run(Workspace& ws) {
    std::deque<Fork> forks;
    for (std::size_t i = 1; i < components.size(); i++) {
      Component& component = components[i];
      forks.emplace_back(ws.tasks, ws, component.n(),
                         [this, &component](Workspace& other) { dissect(context, other, component); });
    }
    dissect(context, ws, components[0]);
    for (Fork& fork : forks) fork.join(true);
  }
};

// The attempts with their flops, where there are two; the calling thread's part of the team.
void lead(Workspace& ws, std::deque<Attempt>& attempts) {
  if (attempts.size() == 1) return attempts[0].run(ws);
  const auto judged = [](Attempt& attempt, Workspace& own) {
    attempt.run(own);
    attempt.flops = factor_flops(attempt.context.whole, attempt.order);
  };
  Fork other(ws.tasks, ws, attempts[1].context.whole.n, [&](Workspace& own) { judged(attempts[1], own); });
  judged(attempts[0], ws);
  other.join(true);
}

std::vector<idx> dissect(const Graph& whole) {
  constexpr std::uint64_t seed = 1;
  std::vector<idx> all(whole.n);
  if (whole.n == 0) return all;
  std::iota(all.begin(), all.end(), 0);
  std::vector<Component> components = connected_components(whole, all.data(), kLeaf, seed);
  const bool large =
      std::any_of(components.begin(), components.end(), [](const Component& c) { return c.n() > kLeaf; });
  std::optional<Probe> probe;
  std::deque<Attempt> attempts;
  if (large && whole.n <= kTwice) {
    for (const Coarse coarse : {Coarse::separators, Coarse::cuts})
      attempts.emplace_back(whole, components, [coarse] { return coarse; });
  } else {
    if (large) probe.emplace(whole, seed);
    attempts.emplace_back(whole, std::move(components), [&] { return probe->answer(); });
  }

  Tasks tasks;
  run_helpers(num_threads(), [&](const Team& team) {
    if (team.rank > 0 && team.rank <= kProbers && probe) probe->help();
    Workspace ws;
    if (team.size > 1) ws.tasks = &tasks;
    if (team.rank > 0) return tasks.serve(ws);
    tasks.try_to([&](Workspace& own) { lead(own, attempts); }, ws);
    tasks.close();
  });
  tasks.rethrow();
  const bool second = attempts.size() > 1 && attempts[1].flops < attempts[0].flops;
  return std::move(attempts[second].order);
}

}  // namespace
}  // namespace nd

std::vector<idx> nested_dissection(PatternView graph) {
  const CompressedGraph reduced = compress(graph);
  const nd::Graph whole{reduced.n(),
                        reduced.ptr.data(),
                        reduced.ind.data(),
                        reduced.weight.data(),
                        nullptr,
                        std::accumulate(reduced.weight.begin(), reduced.weight.end(), off(0))};
  return reduced.expand(nd::dissect(whole));
}

}  // namespace gs
