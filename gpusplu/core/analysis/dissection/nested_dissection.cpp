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

#include "analysis/amd.hpp"
#include "analysis/column_counts.hpp"
#include "analysis/dissection/coarsen.hpp"
#include "analysis/dissection/components.hpp"
#include "analysis/dissection/partition.hpp"
#include "analysis/dissection/tasks.hpp"
#include "analysis/graph.hpp"
#include "analysis/shrinking_graph.hpp"
#include "base/threads.hpp"

namespace gs {
namespace nd {
namespace {

constexpr idx kLeaf = 240;    // components up to this size are ordered by minimum degree
constexpr idx kTwice = 3000;  // up to this size, both partitioning methods are tried on the whole graph
constexpr int kProbers = 4;   // threads that take part in a probe; the others find work in the graph itself
constexpr idx kBall = 8000, kSmallestBall = 1500;  // an eighth of the graph within these limits
constexpr idx kThread = 500;                       // vertices that are worth a thread, a millisecond
constexpr idx kFork = 1000;       // one child of a component of this size may be ordered by another thread
constexpr idx kParallel = 4000;   // from this size on, both children are cut out at the same time
constexpr int kGenerations = 3;   // a hierarchy is coarsened again at every third depth
constexpr idx kDenseLeaf = 2048;  // largest component without a separator that minimum degree can order
constexpr int kDeepest = 100;     // unbalanced beyond reason

constexpr idx kEliminated = INT32_MAX;

constexpr idx kTrim = 1 << 15;       // vertices: memory is freed after the separator of such a graph is found
constexpr double kWorthwhile = 0.9;  // classes per vertex above which twins are not merged
constexpr idx kEarlyDegree = 2;      // of vertices that are eliminated before
constexpr idx kLongRow = 1000;       // longest list that is searched

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
  if (!ws.place || ws.place->size() < whole.n) ws.place.emplace(whole.n);
  idx* place = ws.place->data();  // columns plus one
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
  coarsen(ws, component.hierarchy, coarse_target(g.n), random);
  const Partition part = find_separator(ws, component.hierarchy, context.coarse(), random);
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
  if (ws.tasks && n >= kTrim) ws.trim();
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

double factor_flops(const Graph& g, const std::vector<idx>& order) {
  return ordered_tree({g.n, g.ptr, g.adj}, order).cost.flops;
}

// Chooses between separators and cuts at the coarse levels: orders a ball of some thousand vertices by both methods and
// compares the flops of its factorization. (The size of the top separator is no guide.) `compared`, if any, learns how
// minimum degree compares. The trials and their parts may run on different threads; they have a task queue of their
// own, so that no thread that runs a trial waits for the answer.
class Probe {
 public:
  Probe(const Graph& whole, std::uint64_t seed, const Compared& compared) : compared_(compared) {
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
    const int n_trials = compared_ ? 3 : 2;
    for (int which = begun_.fetch_add(1); which < n_trials; which = begun_.fetch_add(1)) {
      tasks_.try_to([&](Workspace& own) { flops_[which] = which == 2 ? by_degree() : trial(Coarse(which), own); }, ws);
      if (done_.fetch_add(1) + 1 < n_trials) continue;
      const double least = std::min(flops_[0], flops_[1]);
      if (compared_) tasks_.try_to([&](Workspace&) { compared_(flops_[2] / least, least / ball_.n()); }, ws);
      tasks_.close();
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

  double by_degree() const {
    const Graph& graph = ball_.hierarchy.level[0];
    return factor_flops(graph, amd({graph.n, graph.ptr, graph.adj}));
  }

  const Compared& compared_;
  Component ball_;
  std::vector<idx> numbers_;     // 0, 1, ...
  double flops_[3] = {0, 0, 0};  // by separators, by cuts, by minimum degree
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

std::vector<idx> dissect(const Graph& whole, const Compared& compared) {
  constexpr std::uint64_t seed = 1;
  std::vector<idx> all(whole.n);
  if (whole.n == 0) return all;
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Component> components = connected_components(whole, all.data(), kLeaf, seed);
  const bool large =
      std::any_of(components.begin(), components.end(), [](const Component& c) { return c.n() > kLeaf; });
  std::optional<Probe> probe;
  std::deque<Attempt> attempts;
  if (large && whole.n <= kTwice) {
    for (const Coarse coarse : {Coarse::separators, Coarse::cuts})
      attempts.emplace_back(whole, components, [coarse] { return coarse; });
  } else {
    if (large) probe.emplace(whole, seed, compared);
    attempts.emplace_back(whole, components, [&] { return probe->answer(); });
  }
  if (!probe && compared) compared(0, 0);

  Tasks tasks;
  run_helpers(1 + whole.n / kThread, [&](const Team& team) {
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

// Classes of vertices.
struct Classes {
  RawVector<idx> of;             // of each vertex
  std::vector<idx> first, size;  // of each class: its lowest vertex, and the number of its members
};

// Twins are vertices with equal closed neighbourhoods (Ashcraft, SIAM J. Sci. Comput. 16 (1995)): finite elements with
// several unknowns a node have as many. Where they save less than a tenth of the vertices, each is a class by itself.
// They are adjacent, so comparing sums of hashed neighbourhoods along the edges finds them; a collision costs quality,
// never correctness.
Classes find_twins(PatternView g) {
  RawVector<std::uint64_t> key(g.n);
  RawVector<idx> twin(g.n);  // a lower one, or the vertex itself
  const auto for_vertices = [&](auto&& visit) {
    over_range(g.n, g.nnz(), [&](idx begin, idx end) {
      for (idx v = begin; v < end; v++) visit(v);
    });
  };
  for_vertices([&](idx v) {
    std::uint64_t sum = mix((std::uint64_t)v);
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) sum += g.ind[p] == v ? 0 : mix((std::uint64_t)g.ind[p]);
    key[v] = sum;
  });
  for_vertices([&](idx v) {
    const idx* end = g.ind + g.ptr[v + 1];
    const idx* found = std::find_if(g.ind + g.ptr[v], end, [&](idx u) { return u < v && key[u] == key[v]; });
    twin[v] = found < end ? *found : v;
  });
  Classes classes;
  classes.first = indices_where(g.n, [&](idx v) { return twin[v] == v; });
  if ((double)classes.first.size() >= kWorthwhile * g.n) classes.first = indices_where(g.n, [](idx) { return true; });
  const idx n_classes = (idx)classes.first.size();
  classes.size.assign(n_classes, 1);
  classes.of.resize(g.n);
  over_range(n_classes, g.n, [&](idx begin, idx end) {
    for (idx c = begin; c < end; c++) classes.of[classes.first[c]] = c;
  });
  for (idx v = 0; n_classes < g.n && v < g.n; v++)
    if (twin[v] != v) classes.size[classes.of[v] = classes.of[twin[v]]]++;
  return classes;
}

// Removes v, which has the neighbours a and b, and connects a with b. Returns false without a change where that would
// be expensive.
bool bypass(ShrinkingGraph& g, idx v, idx a, idx b) {
  if (g.vertex[a].length > kLongRow || g.vertex[b].length > kLongRow) return false;
  idx *v_in_a = std::find(g.begin(a), g.end(a), v), *v_in_b = std::find(g.begin(b), g.end(b), v);
  if (v_in_a == g.end(a) || v_in_b == g.end(b)) return false;  // the pattern is not symmetric
  if (std::find(g.begin(a), g.end(a), b) == g.end(a)) {
    *v_in_a = b, *v_in_b = a;
  } else {
    *v_in_a = *(g.end(a) - 1), g.vertex[a].length--, g.vertex[a].degree--;
    *v_in_b = *(g.end(b) - 1), g.vertex[b].length--, g.vertex[b].degree--;
  }
  return true;
}

// In rounds of independent vertices, so that chains of branches give shallow elimination trees. No fill but one edge in
// place of two.
void eliminate_low_degrees(ShrinkingGraph& g) {
  std::vector<idx> next = indices_where(g.n, [&](idx v) { return g.is_in(v) && g.vertex[v].degree <= kEarlyDegree; });
  Pace pace;
  for (idx round = 1; !next.empty(); round++)
    for (const idx v : std::exchange(next, {})) {
      pace.go_on(4);
      if (!g.is_in(v) || g.vertex[v].degree > kEarlyDegree) continue;
      if (g.vertex[v].touched == round) {
        next.push_back(v);
        continue;
      }
      idx *const begin = g.begin(v), *const end = std::remove_if(begin, g.end(v), [&](idx u) { return !g.is_in(u); });
      g.vertex[v].length = (idx)(end - begin);
      if (end - begin == 2 && !bypass(g, v, begin[0], begin[1])) continue;
      if (end - begin == 1) g.vertex[*begin].degree--;
      g.take(v);
      for (const idx* u = begin; u < end; u++) {
        g.vertex[*u].touched = round;
        if (g.vertex[*u].degree <= kEarlyDegree) next.push_back(*u);
      }
    }
}

// Twins become one vertex; vertices of high degree, unless there are many, go last, those of low degree first.
ReducedGraph reduce(PatternView graph, const Classes& classes) {
  const auto number = [&](idx v) { return classes.first[classes.of[v]] == v ? classes.of[v] : -1; };
  ShrinkingGraph shrinking(
      graph, (idx)classes.first.size(), [&](idx c) { return classes.first[c]; }, number);
  shrinking.postpone_dense(shrinking.n / 20 + 1);
  eliminate_low_degrees(shrinking);
  return shrinking.reduce();
}

}  // namespace
}  // namespace nd

std::vector<idx> nested_dissection(PatternView graph, const Compared& compared) {
  const nd::Classes classes = nd::find_twins(graph);
  const ReducedGraph reduced = nd::reduce(graph, classes);
  const std::vector<idx> weight = gather(classes.size, reduced.rest);
  const nd::Graph whole{(idx)weight.size(),
                        reduced.graph.ptr.data(),
                        reduced.graph.ind.data(),
                        weight.data(),
                        nullptr,
                        std::accumulate(weight.begin(), weight.end(), off(0))};
  const std::vector<idx> order = reduced.expand(nd::dissect(whole, compared));
  if ((idx)order.size() == graph.n) return order;  // classes are the vertices
  std::vector<idx> perm(graph.n), place(classes.size.size());
  idx end = 0;
  for (const idx c : order) place[c] = end, end += classes.size[c];
  for (idx v = 0; v < graph.n; v++) perm[place[classes.of[v]]++] = v;
  return perm;
}

}  // namespace gs
