// Fiduccia, Mattheyses, DAC 1982, on the boundary only, as in Karypis, Kumar, SIAM J. Sci. Comput. 20 (1998), sec. 5.3.
#include "analysis/dissection/edge.hpp"

#include <algorithm>
#include <cstring>

namespace gs::nd {
namespace {

constexpr double kBalance = 1.25;  // a side weighs at most this many halves

inline idx edge_weight(const Graph& g, off p) { return g.edge_weight ? g.edge_weight[p] : 1; }

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

void set_side(const Graph& g, Partition& part, idx v, int to) {
  part.side[v] = (signed char)to;
  part.weight[to] += g.weight[v], part.weight[1 - to] -= g.weight[v];
}

// v changes sides. heap[s] holds the gains of vertices of side s; neighbours that come to the boundary are queued
// (while side 0 is grown: only those of side 1).
void flip(Workspace& ws, const Graph& g, Partition& part, idx v, bool growing) {
  const int from = part.side[v], to = 1 - from;
  set_side(g, part, v, to);
  for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
    const idx u = g.adj[p], change = 2 * edge_weight(g, p);
    const int side = part.side[u];
    GainHeap& heap = ws.heap[side];
    if (heap.contains(u)) {
      heap.update(u, side == to ? heap.gain(u) - change : heap.gain(u) + change);
    } else if (side == from && ws.locked[u] != ws.stamp && (!growing || from == 1)) {
      heap.insert(u, gain_of(g, part, u).gain);
      ws.boundary.push_back(u);
    }
  }
}

// The side that gives a vertex: the larger gain, then the heavier side; -1 when no move is allowed.
int choose_side(const Workspace& ws, const Graph& g, const Partition& part, off heaviest) {
  int best = -1;
  for (int side = 0; side < 2; side++) {
    const GainHeap& heap = ws.heap[side];
    if (heap.empty()) continue;
    const off after = part.weight[1 - side] + g.weight[heap.top_vertex()];
    if (after > heaviest && after > part.weight[side]) continue;
    if (best >= 0) {
      const idx gain = heap.top_gain(), best_gain = ws.heap[best].top_gain();
      if (gain < best_gain || (gain == best_gain && part.weight[side] <= part.weight[best])) continue;
    }
    best = side;
  }
  return best;
}

void queue_boundary(Workspace& ws, const Graph& g, const Partition& part) {
  std::size_t kept = 0;
  for (idx v : ws.boundary) {
    GainHeap& heap = ws.heap[(int)part.side[v]];
    if (heap.contains(v)) continue;
    const Gain gain = gain_of(g, part, v);
    if (!gain.boundary) continue;
    heap.insert(v, gain.gain);
    ws.boundary[kept++] = v;
  }
  ws.boundary.resize(kept);
}

// One pass; whether it made the cut lighter.
bool refine_pass(Workspace& ws, const Graph& g, Partition& part, off heaviest) {
  ws.stamp++;
  ws.moves.clear();
  queue_boundary(ws, g, part);
  auto overweight = [&] { return std::max(part.weight[0], part.weight[1]) > heaviest; };
  const idx limit = patience((idx)ws.boundary.size());
  off cut = part.cut, best = cut, best_difference = std::abs(part.weight[0] - part.weight[1]);
  bool best_over = overweight();
  std::size_t keep = 0;
  for (std::size_t n_moves = 1;; n_moves++) {
    const int from = choose_side(ws, g, part, heaviest);
    if (from < 0) break;
    const idx v = ws.heap[from].top_vertex();
    cut -= ws.heap[from].top_gain();
    ws.heap[from].remove(v);
    ws.locked[v] = ws.stamp;
    ws.moves.push_back(v);
    flip(ws, g, part, v, false);
    const off difference = std::abs(part.weight[0] - part.weight[1]);
    const bool over = overweight();
    if (over < best_over || (over == best_over && (cut < best || (cut == best && difference < best_difference)))) {
      best = cut, best_difference = difference, best_over = over, keep = n_moves;
    } else if (n_moves - keep > (std::size_t)limit) {
      break;
    }
  }
  for (std::size_t i = ws.moves.size(); i-- > 0;) {
    const idx v = ws.moves[i];
    if (i >= keep) set_side(g, part, v, 1 - part.side[v]);
    ws.boundary.push_back(v);
  }
  ws.heap[0].clear(), ws.heap[1].clear();
  const bool better = best < part.cut;
  part.cut = best;
  return better;
}

// Side 0 grows from a random vertex by the best moves to half of the weight.
void grow_part(Workspace& ws, const Graph& g, Partition& part, Random& random) {
  std::memset(part.side, 1, g.n);
  part.weight[0] = part.weight[2] = 0, part.weight[1] = g.total_weight;
  ws.boundary.clear();
  ws.stamp++;
  GainHeap& heap = ws.heap[1];
  idx start = random.below(g.n), left = g.n;
  while (part.weight[0] < part.weight[1]) {
    if (heap.empty()) {
      for (; left > 0 && part.side[start] != 1; left--) start = start + 1 == g.n ? 0 : start + 1;
      if (left == 0) break;
      ws.boundary.push_back(start);
      flip(ws, g, part, start, true);
      continue;
    }
    const idx v = heap.top_vertex();
    if (part.weight[0] + g.weight[v] > part.weight[1] - g.weight[v] + g.total_weight / 8) break;
    heap.remove(v);
    flip(ws, g, part, v, true);
  }
  heap.clear();
  part.cut = 0;
  for (idx v = 0; v < g.n; v++)
    for (off p = g.ptr[v]; part.side[v] == 0 && p < g.ptr[v + 1]; p++)
      if (part.side[g.adj[p]] == 1) part.cut += edge_weight(g, p);
}

}  // namespace

void refine_cut(Workspace& ws, const Graph& g, Partition& part) {
  const off heaviest = (off)(kBalance / 2 * (double)(part.weight[0] + part.weight[1]));
  for (int pass = 0; pass < kPasses && refine_pass(ws, g, part, heaviest); pass++) {
  }
}

void grow_cut(Workspace& ws, const Graph& g, Partition& part, Random& random) {
  best_of_trials(ws, g, part, [&] {
    grow_part(ws, g, part, random);
    refine_cut(ws, g, part);
    return (double)part.cut;
  });
}

void cut_to_separator(Workspace& ws, const Graph& g, Partition& part) {
  off weight[2] = {0, 0};
  std::size_t kept = 0;
  ws.stamp++;
  for (idx v : ws.boundary) {
    if (ws.locked[v] == ws.stamp || !gain_of(g, part, v).boundary) continue;
    ws.locked[v] = ws.stamp;
    ws.boundary[kept++] = v;
    weight[(int)part.side[v]] += g.weight[v];
  }
  ws.boundary.resize(kept);
  const bool zero = weight[0] < weight[1] || (weight[0] == weight[1] && part.weight[0] > part.weight[1]);
  const int lighter = zero ? 0 : 1;
  std::erase_if(ws.boundary, [&](idx v) { return part.side[v] != lighter; });
  for (idx v : ws.boundary) part.side[v] = 2;
  part.weight[lighter] -= weight[lighter], part.weight[2] += weight[lighter];
}

}  // namespace gs::nd
