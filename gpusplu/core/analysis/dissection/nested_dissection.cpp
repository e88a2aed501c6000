// Compression, dissection of the reduced graph as tasks on a team, expansion.
//
// The recursion: George, SIAM J. Numer. Anal. 10 (1973); the children reuse the coarse levels of their parents for a
// few generations, which saves most of the coarsening (half of the time otherwise). Small components are ordered by
// minimum degree: the elimination graph as bit rows; George, Liu, SIAM Review 31 (1989): external degree, mass
// elimination. Halo: Pellegrini, Roman, Amestoy, Concurrency 12 (2000).
#include "analysis/dissection/nested_dissection.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <numeric>
#include <utility>

#include "analysis/amd.hpp"
#include "analysis/column_counts.hpp"
#include "analysis/dissection/coarsen.hpp"
#include "analysis/dissection/components.hpp"
#include "analysis/dissection/partition.hpp"
#include "analysis/dissection/tasks.hpp"
#include "analysis/graph.hpp"
#include "analysis/low_degrees.hpp"
#include "base/parallel.hpp"
#include "base/threads.hpp"

namespace gs {
namespace nd {
namespace {

constexpr idx kLeaf = 240;    // components up to this size are ordered by minimum degree
constexpr idx kTwice = 3000;  // up to this size, both partitioning methods are tried on the whole graph
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
  reserve_zeros(ws.place, whole.n);
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
  idx* order;     // places -> vertices of the whole graph
  Coarse coarse;  // partition type of the coarse levels
};

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
  find_separator(ws, component.hierarchy, context.coarse, part, random);
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
    const Graph& g = component.hierarchy.level[0];
    const std::vector<idx> order = amd({n, g.ptr, g.adj});
    for (idx i = 0; i < n; i++) context.order[component.first + i] = component.vertex[order[i]];
    return;
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

// One order of a graph with known connected components.
struct Attempt {
  std::vector<idx> order;
  std::vector<Component> components;
  Context context;

  Attempt(const Graph& whole, const std::vector<Component>& components, Coarse coarse)
      : order(whole.n), components(components), context{whole, order.data(), coarse} {}

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

  // Runs and returns the flops of a Cholesky factorization in this order.
  double flops(Workspace& ws) {
    run(ws);
    const Graph& g = context.whole;
    return ordered_tree({g.n, g.ptr, g.adj}, order).cost.flops;
  }
};

// Orders a graph with both kinds of coarse levels. The attempt with fewer flops.
Attempt better_attempt(Workspace& ws, const Graph& whole, const std::vector<Component>& components) {
  Attempt separators(whole, components, Coarse::separators), cuts(whole, components, Coarse::cuts);
  double flops = 0;
  Fork other(ws.tasks, ws, whole.n, [&](Workspace& own) { flops = cuts.flops(own); });
  const double least = separators.flops(ws);
  other.join(true);
  return std::move(flops < least ? cuts : separators);
}

// Chooses the kind of coarse levels of a large graph by ordering a ball of some thousand vertices with both. (The size
// of the top separator is no guide.)
Coarse probe(Workspace& ws, const Graph& whole, std::uint64_t seed) {
  const idx size = std::min(whole.n, std::max(kSmallestBall, std::min(kBall, whole.n / 8)));
  std::vector<idx> local(whole.n, -1), numbers(size);
  Component ball = extract(whole, collect_ball(whole, size, seed + 77).data(), size, local);
  std::iota(numbers.begin(), numbers.end(), 0);
  ball.vertex = numbers.data();
  ball.seed = seed;
  const Graph graph = ball.hierarchy.level[0];
  return better_attempt(ws, graph, {ball}).context.coarse;
}

std::vector<idx> order_whole(Workspace& ws, const Graph& whole) {
  constexpr std::uint64_t seed = 1;
  std::vector<idx> all(whole.n);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Component> components = connected_components(whole, all.data(), kLeaf, seed);
  const bool large =
      std::any_of(components.begin(), components.end(), [](const Component& c) { return c.n() > kLeaf; });
  if (large && whole.n <= kTwice) return better_attempt(ws, whole, components).order;
  Attempt attempt(whole, components, large ? probe(ws, whole, seed) : Coarse::separators);
  attempt.run(ws);
  return std::move(attempt.order);
}

std::vector<idx> dissect(const Graph& whole) {
  std::vector<idx> order;
  if (whole.n == 0) return order;
  Tasks tasks;
  run_helpers(num_threads(), [&](const Team& team) {
    Workspace ws;
    if (team.size > 1) ws.tasks = &tasks;
    if (team.rank > 0) return tasks.serve(ws);
    tasks.try_to([&](Workspace& own) { order = order_whole(own, whole); }, ws);
    tasks.close();
  });
  tasks.rethrow();
  return order;
}

// Classes of twins, vertices with equal closed neighbourhoods, numbered by their first members. Twins are adjacent, so
// comparing sums of hashed neighbourhoods along the edges finds them; a collision costs quality, never correctness.
struct Twins {
  std::vector<idx> class_of, first_member, weight;  // of vertices; of classes

  explicit Twins(PatternView g) : class_of(g.n) {
    std::vector<std::uint64_t> key(g.n);
    std::vector<idx> first(g.n);  // the smallest neighbour with an equal neighbourhood, or the vertex itself
    over_range(g.n, g.nnz(), [&](idx begin, idx end) {
      for (idx v = begin; v < end; v++) {
        key[v] = mix((std::uint64_t)v);
        for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) key[v] += g.ind[p] == v ? 0 : mix((std::uint64_t)g.ind[p]);
      }
    });
    over_range(g.n, g.nnz(), [&](idx begin, idx end) {
      for (idx v = begin; v < end; v++) {
        const idx *from = g.ind + g.ptr[v], *to = g.ind + g.ptr[v + 1];
        const idx* twin = std::find_if(from, to, [&](idx u) { return u < v && key[u] == key[v]; });
        first[v] = twin < to ? *twin : v;
      }
    });
    for (idx v = 0; v < g.n; v++) {
      class_of[v] = first[v] == v ? (idx)first_member.size() : class_of[first[v]];
      if (first[v] == v) first_member.push_back(v), weight.push_back(0);
      weight[class_of[v]]++;
    }
  }

  // The graph of the classes.
  Pattern graph(PatternView g) const {
    const idx n = (idx)weight.size();
    Pattern out{n, std::vector<off>((std::size_t)n + 1), {}};
    const auto for_neighbours = [&](auto&& visit) {
      over_range(n, g.nnz(), [&](idx begin, idx end) {
        for (idx c = begin; c < end; c++)
          for (off p = g.ptr[first_member[c]]; p < g.ptr[first_member[c] + 1]; p++)
            if (const idx u = g.ind[p]; u != first_member[c] && first_member[class_of[u]] == u) visit(c, class_of[u]);
      });
    };
    for_neighbours([&](idx c, idx) { out.ptr[c + 1]++; });
    std::partial_sum(out.ptr.begin(), out.ptr.end(), out.ptr.begin());
    out.ind.resize(out.ptr[n]);
    std::vector<off> next(out.ptr.begin(), out.ptr.end() - 1);
    for_neighbours([&](idx c, idx neighbour) { out.ind[next[c]++] = neighbour; });
    return out;
  }

  // The vertices in an order of the classes.
  std::vector<idx> expand(const std::vector<idx>& order) const {
    std::vector<idx> next(order.size()), perm(class_of.size());
    idx begin = 0;
    for (const idx c : order) next[c] = begin, begin += weight[c];
    for (std::size_t v = 0; v < perm.size(); v++) perm[next[class_of[v]]++] = (idx)v;
    return perm;
  }
};

}  // namespace
}  // namespace nd

// Twins become one (Ashcraft, SIAM J. Sci. Comput. 16 (1995)): finite elements with several unknowns a node shrink by
// that factor.
std::vector<idx> nested_dissection(PatternView graph) {
  const nd::Twins twins(graph);
  const auto order = [&](PatternView rest, const std::vector<idx>& vertex, FactorSize&) {
    const std::vector<idx> weight = gather(twins.weight, vertex);
    const off total = std::accumulate(weight.begin(), weight.end(), off(0));
    return nd::dissect({rest.n, rest.ptr, rest.ind, weight.data(), nullptr, total});
  };
  return twins.expand(order_without_low_degrees(twins.graph(graph).view(), Leaves::in_rounds, order));
}

}  // namespace gs
