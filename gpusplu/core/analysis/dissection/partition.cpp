// The multilevel scheme: Hendrickson, Leland, Supercomputing 1995; Karypis, Kumar, SIAM J. Sci. Comput. 20 (1998).
// Large graphs take the best of several V-cycles from a coarse graph of a sixth of their size or less, which costs less
// than repeating the whole and beats many trials at the bottom (by 10-24 % fill).
//
// Refinement: Fiduccia, Mattheyses, DAC 1982, on the boundary only, as in Karypis, Kumar, section 5.3; passes end after
// few moves without a gain. Edge cuts move boundary vertices to the other side. Separators move their vertices to a
// side and pull in the neighbours on the other side (Hendrickson, Rothberg, SIAM J. Sci. Comput. 20 (1998), section
// 3.3).
#include "analysis/dissection/partition.hpp"

#include <algorithm>
#include <tuple>

#include "analysis/dissection/coarsen.hpp"
#include "analysis/dissection/tasks.hpp"
#include "base/operation.hpp"
#include "base/parallel.hpp"

namespace gs::nd {
namespace {

constexpr int kTrials = 2;     // initial partitions of the coarsest graph
constexpr int kPasses = 8;     // of refinement at most
constexpr idx kPatience = 20;  // moves without a gain that end a pass; 40 took 12 % longer for 0.4 % less fill

constexpr idx kSingleCycle = 2000;  // up to this size one V-cycle is enough
constexpr idx kCycleSize = 3000;    // V-cycles begin at this size at most, or at a hundredth of a larger graph

constexpr idx kProjectedRange = 50000;  // vertices that are worth a task of projection
constexpr int kMostProjected = 16;

int cycles(idx n) { return n <= kSingleCycle ? 1 : n / 100 > kCycleSize ? 5 : 2; }

off difference(const Partition& part) { return std::abs(part.weight[0] - part.weight[1]); }

// The heap with the larger gain of those whose first vertex fits, then that of the lighter destination; -1 for none.
// to(heap): the side to which its vertices move.
template <class To, class Fits> int choose_heap(const Workspace& ws, const Partition& part, To&& to, Fits&& fits) {
  int best = -1;
  for (int h = 0; h < 2; h++) {
    if (ws.heap[h].empty() || !fits(h)) continue;
    if (best >= 0) {
      const idx gain = ws.heap[h].top_gain(), best_gain = ws.heap[best].top_gain();
      if (gain < best_gain || (gain == best_gain && part.weight[to(h)] >= part.weight[to(best)])) continue;
    }
    best = h;
  }
  return best;
}

// Vertex separators. Heap s holds the separator vertices that may move to side s. Like Cuts below it has what refine()
// and grow() need.
struct Separators {
  static constexpr double balance = 1.3;  // a side weighs at most this many halves; 1.2 gave 4 % more fill
  static constexpr int growing = 0;       // the heap by which side 0 grows

  static off cost(const Partition& part) { return part.weight[2]; }
  static bool overweight(const Partition&, off) { return false; }
  static bool is_enough(const Graph&, const Partition&, idx) { return false; }
  static void finish_growth(const Graph&, Partition&) {}

  // v, on side `from`, enters the separator; the gains of its separator neighbours that may move to the other side
  // rise.
  static void pull(Workspace& ws, const Graph& g, Partition& part, idx v, int from) {
    GainHeap& heap = ws.heap[1 - from];
    idx neighbour_weight[2] = {0, 0};
    part.side[v] = 2;
    part.weight[from] -= g.weight[v], part.weight[2] += g.weight[v];
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = g.adj[p];
      const int side = part.side[u];
      if (side == 2) {
        ws.neighbour_weight[from][u] -= g.weight[v];
        if (heap.contains(u)) heap.update(u, g.weight[u] - ws.neighbour_weight[from][u]);
      } else {
        neighbour_weight[side] += g.weight[u];
      }
    }
    ws.neighbour_weight[0][v] = neighbour_weight[0], ws.neighbour_weight[1][v] = neighbour_weight[1];
  }

  // Separator vertex v goes to side `to`; its neighbours on the other side enter the separator and are queued for `to`,
  // and unless side 0 grows for either side.
  static void move(Workspace& ws, const Graph& g, Partition& part, idx v, int to, bool grows) {
    const int other = 1 - to;
    part.side[v] = (signed char)to;
    part.weight[to] += g.weight[v], part.weight[2] -= g.weight[v];
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = g.adj[p];
      const int side = part.side[u];
      if (side == 2) {
        ws.neighbour_weight[to][u] += g.weight[v];
        if (ws.heap[other].contains(u)) ws.heap[other].update(u, g.weight[u] - ws.neighbour_weight[to][u]);
      } else if (side == other) {
        pull(ws, g, part, u, other);
        part.boundary.push_back(u), ws.pulled.push_back(u);
        if (ws.locked[u] == ws.stamp) continue;
        ws.heap[to].insert(u, g.weight[u] - ws.neighbour_weight[other][u]);
        if (!grows) ws.heap[other].insert(u, g.weight[u] - ws.neighbour_weight[to][u]);
      }
    }
  }

  static int choose(const Workspace& ws, const Graph& g, const Partition& part, off heaviest) {
    return choose_heap(
        ws, part, [](int h) { return h; },
        [&](int h) { return part.weight[h] + g.weight[ws.heap[h].top_vertex()] <= heaviest; });
  }

  // Fills both heaps from the boundary, and makes the boundary exact.
  static void queue(Workspace& ws, const Graph& g, Partition& part) {
    std::erase_if(part.boundary, [&](idx v) {
      if (part.side[v] != 2 || ws.heap[0].contains(v)) return true;
      idx weight[3] = {0, 0, 0};
      for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) weight[(int)part.side[g.adj[p]]] += g.weight[g.adj[p]];
      for (int side = 0; side < 2; side++) {
        ws.neighbour_weight[side][v] = weight[side];
        ws.heap[side].insert(v, g.weight[v] - weight[1 - side]);
      }
      return false;
    });
  }

  // The vertices pulled in since then go back too. The next pass recomputes ws.neighbour_weight.
  static void undo(Workspace& ws, const Graph& g, Partition& part, idx v, std::size_t pulled_before) {
    const int to = part.side[v];
    for (; ws.pulled.size() > pulled_before; ws.pulled.pop_back()) {
      const idx u = ws.pulled.back();
      part.side[u] = (signed char)(1 - to);
      part.weight[1 - to] += g.weight[u], part.weight[2] -= g.weight[u];
    }
    part.side[v] = 2;
    part.weight[to] -= g.weight[v], part.weight[2] += g.weight[v];
  }

  static void seed(Workspace& ws, const Graph& g, Partition& part, idx start) {
    pull(ws, g, part, start, 1);
    ws.heap[0].insert(start, 0);
  }
};

idx edge_weight(const Graph& g, off p) { return g.edge_weight ? g.edge_weight[p] : 1; }

struct Gain {
  idx gain;       // decrease of the cut when the vertex changes sides
  bool boundary;  // has an edge in the cut
};
Gain gain_of(const Graph& g, const Partition& part, idx v) {
  idx inside = 0, outside = 0;
  for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++)
    (part.side[g.adj[p]] == part.side[v] ? inside : outside) += edge_weight(g, p);
  return {outside - inside, outside > 0};
}

// Edge bisections. Heap s holds vertices of side s;
struct Cuts {
  static constexpr double balance = 1.25;
  static constexpr int growing = 1;

  static off cost(const Partition& part) { return part.cut; }
  static bool overweight(const Partition& part, off heaviest) {
    return std::max(part.weight[0], part.weight[1]) > heaviest;
  }
  static bool is_enough(const Graph& g, const Partition& part, idx v) {
    return part.weight[0] + g.weight[v] > part.weight[1] - g.weight[v] + g.total_weight / 8;
  }
  static void finish_growth(const Graph& g, Partition& part) {
    part.cut = 0;
    for (idx v = 0; v < g.n; v++)
      for (off p = g.ptr[v]; part.side[v] == 0 && p < g.ptr[v + 1]; p++)
        if (part.side[g.adj[p]] == 1) part.cut += edge_weight(g, p);
  }

  static void set_side(const Graph& g, Partition& part, idx v, int to) {
    part.side[v] = (signed char)to;
    part.weight[to] += g.weight[v], part.weight[1 - to] -= g.weight[v];
  }

  // v changes sides; neighbours that come to the boundary are queued (while side 0 grows: only those of side 1).
  static void move(Workspace& ws, const Graph& g, Partition& part, idx v, int from, bool grows) {
    const int to = 1 - from;
    set_side(g, part, v, to);
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = g.adj[p], change = 2 * edge_weight(g, p);
      const int side = part.side[u];
      GainHeap& heap = ws.heap[side];
      if (heap.contains(u)) {
        heap.update(u, side == to ? heap.gain(u) - change : heap.gain(u) + change);
      } else if (side == from && ws.locked[u] != ws.stamp && (!grows || from == 1)) {
        heap.insert(u, gain_of(g, part, u).gain);
        part.boundary.push_back(u);
      }
    }
  }

  static int choose(const Workspace& ws, const Graph& g, const Partition& part, off heaviest) {
    return choose_heap(
        ws, part, [](int h) { return 1 - h; },
        [&](int h) {
          const off after = part.weight[1 - h] + g.weight[ws.heap[h].top_vertex()];
          return after <= heaviest || after <= part.weight[h];
        });
  }

  static void queue(Workspace& ws, const Graph& g, Partition& part) {
    std::erase_if(part.boundary, [&](idx v) {
      GainHeap& heap = ws.heap[(int)part.side[v]];
      if (heap.contains(v)) return true;
      const Gain gain = gain_of(g, part, v);
      if (gain.boundary) heap.insert(v, gain.gain);
      return !gain.boundary;
    });
  }

  static void undo(Workspace&, const Graph& g, Partition& part, idx v, std::size_t) {
    set_side(g, part, v, 1 - part.side[v]);
  }

  static void seed(Workspace& ws, const Graph&, Partition&, idx start) { ws.heap[1].insert(start, 0); }
};

// One pass; whether it lowered the cost.
template <class Kind> bool refine_pass(Workspace& ws, const Graph& g, Partition& part, off heaviest) {
  ws.stamp++;
  ws.moves.clear(), ws.pulled.clear();
  Kind::queue(ws, g, part);
  const idx size = (idx)part.boundary.size(), limit = std::min(kPatience + size / 16, 2 * size + 15);
  const auto rank = [&] { return std::tuple(Kind::overweight(part, heaviest), Kind::cost(part), difference(part)); };
  const off before = Kind::cost(part);
  auto best = rank();
  std::size_t keep = 0;
  for (std::size_t n_moves = 1;; n_moves++) {
    const int heap = Kind::choose(ws, g, part, heaviest);
    if (heap < 0) break;
    const idx v = ws.heap[heap].top_vertex();
    part.cut -= ws.heap[heap].top_gain();
    ws.heap[heap].remove(v);
    if (ws.heap[1 - heap].contains(v)) ws.heap[1 - heap].remove(v);
    ws.locked[v] = ws.stamp;
    ws.moves.emplace_back(v, ws.pulled.size());
    Kind::move(ws, g, part, v, heap, false);
    if (const auto now = rank(); now < best) best = now, keep = n_moves;
    else if (n_moves - keep > (std::size_t)limit) break;
  }
  for (; ws.moves.size() > keep; ws.moves.pop_back()) {
    const auto [v, pulled_before] = ws.moves.back();
    Kind::undo(ws, g, part, v, pulled_before);
  }
  ws.heap[0].clear(), ws.heap[1].clear();
  part.cut = std::get<1>(best);
  return std::get<1>(best) < before;
}

template <class Kind> void refine(Workspace& ws, const Graph& g, Partition& part) {
  const off heaviest = (off)(Kind::balance / 2 * (double)(part.weight[0] + part.weight[1] + part.weight[2]));
  for (int pass = 0; pass < kPasses && refine_pass<Kind>(ws, g, part, heaviest); pass++) {
  }
}

// Side 0 grows from a random vertex by the best moves to half of the weight.
template <class Kind> void grow_part(Workspace& ws, const Graph& g, Partition& part, Random& random) {
  part.side.assign(g.n, 1);
  part.weight[0] = part.weight[2] = 0, part.weight[1] = g.total_weight;
  part.boundary.clear(), ws.pulled.clear();
  ws.stamp++;
  GainHeap& heap = ws.heap[Kind::growing];
  idx start = random.below(g.n), left = g.n;
  while (part.weight[0] < part.weight[1]) {
    const bool seeds = heap.empty();
    if (seeds) {
      for (; left > 0 && part.side[start] != 1; left--) start = start + 1 == g.n ? 0 : start + 1;
      if (left == 0) break;
      part.boundary.push_back(start);
      Kind::seed(ws, g, part, start);
    }
    const idx v = heap.top_vertex();
    if (!seeds && Kind::is_enough(g, part, v)) break;
    heap.remove(v);
    Kind::move(ws, g, part, v, Kind::growing, true);
  }
  heap.clear();
  Kind::finish_growth(g, part);
}

// A partition with an empty side is better than none and worse than any other.
double badness(const Partition& part, off cost) {
  return (double)cost + (part.weight[0] == 0 || part.weight[1] == 0 ? 1e18 : 0);
}

// The best of kTrials partitions, each grown from a random vertex and refined. For small graphs.
template <class Kind> Partition grow(Workspace& ws, const Graph& g, Random& random) {
  Partition best, part;
  for (int trial = 0; trial < kTrials; trial++) {
    grow_part<Kind>(ws, g, part, random);
    refine<Kind>(ws, g, part);
    if (trial == 0 || badness(part, Kind::cost(part)) < badness(best, Kind::cost(best))) best = part;
  }
  return best;
}

// Makes the lighter of the cut's two boundaries the separator; part.boundary is exactly it then.
void cut_to_separator(Workspace& ws, const Graph& g, Partition& part) {
  off weight[2] = {0, 0};
  ws.stamp++;
  std::erase_if(part.boundary, [&](idx v) {
    if (ws.locked[v] == ws.stamp || !gain_of(g, part, v).boundary) return true;
    ws.locked[v] = ws.stamp;
    weight[(int)part.side[v]] += g.weight[v];
    return false;
  });
  const bool zero = weight[0] < weight[1] || (weight[0] == weight[1] && part.weight[0] > part.weight[1]);
  const int lighter = zero ? 0 : 1;
  std::erase_if(part.boundary, [&](idx v) { return part.side[v] != lighter; });
  for (idx v : part.boundary) part.side[v] = 2;
  part.weight[lighter] -= weight[lighter], part.weight[2] += weight[lighter];
}

// Carries the coarse partition to the finer graph and its boundary along.
Partition project(Workspace& ws, const Graph& fine, const idx* cluster, Coarse coarse, const Partition& from) {
  Partition to{RawVector<signed char>(fine.n), {from.weight[0], from.weight[1], from.weight[2]}, from.cut, {}};
  std::vector<char> at_cut(coarse == Coarse::cuts ? from.side.size() : 0);
  if (coarse == Coarse::cuts)
    for (idx v : from.boundary) at_cut[v] = 1;
  const int n_parts = std::clamp(fine.n / kProjectedRange, 1, kMostProjected);
  std::vector<std::vector<idx>> boundary(n_parts);
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    const auto [begin, end] = slice(fine.n, Team{i, n_parts});
    for (idx v = begin; v < end; v++) {
      const idx c = cluster[v];
      to.side[v] = from.side[c];
      if (coarse == Coarse::cuts ? at_cut[c] != 0 : from.side[c] == 2) boundary[i].push_back(v);
    }
  });
  to.boundary = std::move(boundary[0]);
  for (int i = 1; i < n_parts; i++) to.boundary.insert(to.boundary.end(), boundary[i].begin(), boundary[i].end());
  return to;
}

Partition partition_coarsest(Workspace& ws, const Graph& g, Coarse coarse, Random& random) {
  return coarse == Coarse::cuts ? grow<Cuts>(ws, g, random) : grow<Separators>(ws, g, random);
}

// Carries a partition of the last level to level[0].
void uncoarsen(Workspace& ws, const Hierarchy& hierarchy, Coarse coarse, Partition& part) {
  for (std::size_t l = hierarchy.level.size() - 1; l-- > 0;) {
    go_on();
    const Graph& fine = hierarchy.level[l];
    part = project(ws, fine, hierarchy.cluster[l], coarse, part);
    if (coarse == Coarse::cuts) refine<Cuts>(ws, fine, part);
    else refine<Separators>(ws, fine, part);
  }
}

// One V-cycle on g.
Partition v_cycle(Workspace& ws, const Graph& g, Coarse coarse, Random random) {
  ws.reserve(g.n);
  ArenaScope scope(ws.arena);
  Hierarchy hierarchy{{g}, {}};
  coarsen(ws, hierarchy, kCoarsest, random);
  Partition part = partition_coarsest(ws, hierarchy.level.back(), coarse, random);
  uncoarsen(ws, hierarchy, coarse, part);
  return part;
}

}  // namespace

idx coarse_target(idx n) {
  if (n <= kSingleCycle) return kCoarsest;
  return std::max({kCoarsest, std::min(kCycleSize, n / 6), n / 100});
}

Partition find_separator(Workspace& ws, const Hierarchy& hierarchy, Coarse coarse, Random& random) {
  const Graph &g = hierarchy.level[0], &last = hierarchy.level.back();
  Partition part;
  if (cycles(g.n) == 1) {
    part = partition_coarsest(ws, last, coarse, random);
  } else {
    std::vector<Partition> trials(cycles(g.n));
    std::vector<Random> seeds;
    for (std::size_t i = 0; i < trials.size(); i++) seeds.emplace_back(random.next());
    for_each(ws, (int)trials.size(), true,
             [&](int i, Workspace& own) { trials[i] = v_cycle(own, last, coarse, seeds[i]); });
    const auto cost = [&](const Partition& trial) {
      return badness(trial, coarse == Coarse::cuts ? Cuts::cost(trial) : Separators::cost(trial));
    };
    part = std::move(*std::min_element(trials.begin(), trials.end(), [&](const Partition& one, const Partition& other) {
      return cost(one) < cost(other);
    }));
  }
  uncoarsen(ws, hierarchy, coarse, part);
  if (coarse == Coarse::cuts) {
    cut_to_separator(ws, g, part);
    refine<Separators>(ws, g, part);
  }
  return part;
}

}  // namespace gs::nd
