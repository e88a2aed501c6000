// Heavy edge matching and contraction: Karypis, Kumar, SIAM J. Sci. Comput. 20 (1998), sections 3.1 and 5.1; the
// pairing of vertices with a common neighbour is from LaSalle, Karypis et al., IPDPS 2015 (two-hop matching).
#include "analysis/nd_coarsen.hpp"

#include <algorithm>
#include <cstring>

namespace gs::nd {
namespace {

constexpr idx kWindow = 1024;  // vertices are visited in random order within windows: keeps locality of the numbering
constexpr double kHeaviest = 1.5;  // a cluster weighs at most this many average vertices of the coarsest graph
constexpr double kStalled = 0.95;  // a coarse graph larger than this part of the finer one ends coarsening

// Clusters as lists: leader -> next -> ... -> -1.
struct Clusters {
  idx* leader;  // of each vertex; -1: free
  idx* next;
  idx* weight;  // at leaders
  idx* number;  // of each vertex's cluster in the coarse graph
  idx count = 0;
};

void visiting_order(idx n, idx* order, Random& random) {
  for (idx begin = 0; begin < n; begin += kWindow) {
    const idx size = std::min(kWindow, n - begin);
    for (idx i = 0; i < size; i++) {
      const idx k = random.below(i + 1);
      order[begin + i] = order[begin + k];
      order[begin + k] = begin + i;
    }
  }
}

// The free neighbour over the heaviest edge, of those the lightest; without unpredictable branches.
idx heaviest_free(const Graph& g, const Clusters& c, idx v, idx limit) {
  idx best = -1;
  std::int64_t best_key = INT64_MIN;
  for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
    const idx u = g.adj[p], w = g.weight[u];
    const bool fits = (c.leader[u] < 0) & (w <= limit);
    const std::int64_t key = fits ? ((std::int64_t)g.edge_weight[p] << 32) - w : INT64_MIN;
    best = key > best_key ? u : best;
    best_key = key > best_key ? key : best_key;
  }
  return best;
}

// The first free neighbour from a random start.
idx any_free(const Graph& g, const Clusters& c, idx v, idx limit, Random& random) {
  const off begin = g.ptr[v], end = g.ptr[v + 1];
  if (begin == end) return -1;
  const off start = begin + random.below(end - begin);
  auto fits = [&](idx u) { return c.leader[u] < 0 && g.weight[u] <= limit; };
  for (off p = start; p < end; p++)
    if (fits(g.adj[p])) return g.adj[p];
  for (off p = begin; p < start; p++)
    if (fits(g.adj[p])) return g.adj[p];
  return -1;
}

// Pairs; the vertices that find no partner go to ws.list.
template <bool weighted> void match_pairs(Workspace& ws, const Graph& g, Clusters& c, idx heaviest, Random& random) {
  ArenaScope scope(ws.arena);
  idx* order = ws.arena.get<idx>(g.n);
  visiting_order(g.n, order, random);
  ws.list.clear();
  for (idx i = 0; i < g.n; i++) {
    const idx v = order[i];
    if (c.leader[v] >= 0) continue;
    const idx limit = heaviest - g.weight[v];
    const idx partner = weighted ? heaviest_free(g, c, v, limit) : any_free(g, c, v, limit, random);
    if (partner < 0) {
      ws.list.push_back(v);
      continue;
    }
    c.leader[v] = c.leader[partner] = v;
    c.next[v] = partner, c.next[partner] = -1;
    c.weight[v] = g.weight[v] + g.weight[partner];
  }
}

// Vertices without a partner join the neighbouring pair over the heaviest edge, or pair up over their heaviest
// neighbour (the leaves of a star would otherwise stay single at every level).
template <bool weighted> void match_leftovers(Workspace& ws, const Graph& g, Clusters& c, idx heaviest) {
  std::vector<idx>& waiting = ws.slot;  // by hub
  for (idx v : ws.list) {
    idx pair = -1, pair_edge = 0, hub = -1, hub_edge = 0;
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = g.adj[p], edge = weighted ? g.edge_weight[p] : 1, leader = c.leader[u];
      if (edge > hub_edge) hub = u, hub_edge = edge;
      if (edge > pair_edge && leader >= 0 && c.weight[leader] + g.weight[v] <= heaviest && c.next[leader] >= 0 &&
          c.next[c.next[leader]] < 0)
        pair = leader, pair_edge = edge;
    }
    idx join = pair;
    if (join < 0 && hub >= 0) {
      const idx other = waiting[hub];
      const bool fits = other >= 0 && c.next[other] < 0 && c.weight[other] + g.weight[v] <= heaviest;
      waiting[hub] = fits ? -1 : v;
      if (fits) join = other;
    }
    if (join >= 0) {
      c.leader[v] = join;
      c.next[v] = c.next[join], c.next[join] = v;
      c.weight[join] += g.weight[v];
    } else {
      c.leader[v] = v;
      c.next[v] = -1;
      c.weight[v] = g.weight[v];
    }
  }
  for (idx v : ws.list)
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) waiting[g.adj[p]] = -1;
}

void number_clusters(const Graph& g, Clusters& c) {
  c.count = 0;
  for (idx v = 0; v < g.n; v++) {
    if (c.leader[v] != v) continue;
    for (idx u = v; u >= 0; u = c.next[u]) c.number[u] = c.count;
    c.count++;
  }
}

// Parallel edges are merged through a table from coarse vertices to places in the row being built. The first place of
// each row collects the edges inside the cluster; the row's last entry is moved there in the end.
template <bool weighted> Graph contract(Workspace& ws, const Graph& g, const Clusters& c) {
  off* ptr = ws.arena.get<off>((std::size_t)c.count + 1);
  idx* weight = ws.arena.get<idx>(c.count);
  const std::size_t bound = padded_bytes<idx>((std::size_t)g.entries() + 1) / sizeof(idx);
  idx* edge_weight = ws.arena.get<idx>(2 * bound);
  idx* adj = edge_weight + bound;
  std::vector<idx>& place = ws.slot;  // minus `base`; of an earlier row if negative or below this row's beginning
  off size = 0, base = 0;
  idx row = 0;
  for (idx v = 0; v < g.n; v++) {
    if (c.leader[v] != v) continue;
    if (size - base > INT32_MAX - g.n - 1) {  // a row has at most n entries
      std::fill_n(place.begin(), c.count, -1);
      base = size;
    }
    const idx start = (idx)(size - base);
    idx *row_adj = adj + base, *row_weight = edge_weight + base, k = start, total = 0;
    ptr[row] = size;
    place[row] = k, row_adj[k] = row, row_weight[k++] = 0;
    for (idx u = v; u >= 0; u = c.next[u]) {
      total += g.weight[u];
      for (off p = g.ptr[u]; p < g.ptr[u + 1]; p++) {
        const idx to = c.number[g.adj[p]], known = place[to], edge = weighted ? g.edge_weight[p] : 1;
        const bool fresh = known < start;
        const idx at = fresh ? k : known;
        place[to] = at;
        row_adj[at] = to;
        row_weight[at] = edge + (fresh ? 0 : row_weight[at]);
        k += fresh;
      }
    }
    k--;
    row_adj[start] = row_adj[k], row_weight[start] = row_weight[k];
    place[row_adj[k]] = start, place[row] = -1;
    weight[row++] = total;
    size = base + k;
  }
  ptr[row] = size;
  std::fill_n(place.begin(), c.count, -1);
  const std::size_t used = padded_bytes<idx>((std::size_t)size) / sizeof(idx);
  std::memmove(edge_weight + used, adj, (std::size_t)size * sizeof(idx));
  ws.arena.shrink(edge_weight, used + (std::size_t)size);
  return Graph{c.count, ptr, edge_weight + used, weight, edge_weight, g.total_weight};
}

template <bool weighted> bool coarsen_once(Workspace& ws, Hierarchy& hierarchy, Random& random) {
  const Graph g = hierarchy.level.back();
  const idx heaviest = (idx)std::max(1.0, kHeaviest * (double)g.total_weight / kCoarsest);
  const Arena::Mark start = ws.arena.mark();
  Clusters c;
  c.number = ws.arena.get<idx>(g.n);
  c.leader = ws.arena.get<idx>(g.n);
  c.next = ws.arena.get<idx>(g.n);
  c.weight = ws.arena.get<idx>(g.n);
  std::fill_n(c.leader, g.n, -1);
  match_pairs<weighted>(ws, g, c, heaviest, random);
  match_leftovers<weighted>(ws, g, c, heaviest);
  number_clusters(g, c);
  if (c.count > kStalled * g.n) {
    ws.arena.release(start);
    return false;
  }
  hierarchy.level.push_back(contract<weighted>(ws, g, c));
  hierarchy.cluster.push_back(c.number);
  return true;
}

}  // namespace

void coarsen(Workspace& ws, Hierarchy& hierarchy, idx target, Random& random) {
  bool smaller = true;
  while (smaller && hierarchy.level.back().n > target)
    smaller = hierarchy.level.back().edge_weight ? coarsen_once<true>(ws, hierarchy, random)
                                                 : coarsen_once<false>(ws, hierarchy, random);
}

}  // namespace gs::nd
