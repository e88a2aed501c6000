#include "analysis/nd_split.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "analysis/nd_separator.hpp"
#include "analysis/nd_tasks.hpp"

namespace gs::nd {
namespace {

// The vertices of one level that a child takes over.
struct Selection {
  idx* local;         // of the level's vertices, their numbers in the child; -1: not in it
  const idx* weight;  // by the level's numbers
  idx count = 0;
  off entries = 0;  // of their rows, an upper bound of the child's
};

Selection select_side(Workspace& ws, const Graph& g, const Partition& part, int side) {
  Selection s{ws.arena.get<idx>(g.n), g.weight};
  for (idx v = 0; v < g.n; v++) {
    const bool in = part.side[v] == side;
    s.local[v] = in ? s.count : -1;
    s.count += in;
    s.entries += in ? g.ptr[v + 1] - g.ptr[v] : 0;
  }
  return s;
}

// The clusters with members in the finer level's selection.
Selection select_clusters(Workspace& ws, const Graph& fine, const Selection& members, const idx* cluster,
                          const Graph& g) {
  idx* weight = ws.arena.get<idx>(g.n);
  std::fill_n(weight, g.n, 0);
  for (idx v = 0; v < fine.n; v++)
    if (members.local[v] >= 0) weight[cluster[v]] += members.weight[v];
  Selection s{ws.arena.get<idx>(g.n), weight};
  for (idx c = 0; c < g.n; c++) {
    const bool in = weight[c] > 0;
    s.local[c] = in ? s.count : -1;
    s.count += in;
    s.entries += in ? g.ptr[c + 1] - g.ptr[c] : 0;
  }
  return s;
}

std::size_t bytes_of(const Selection& s, bool edge_weights, bool labels) {
  const std::size_t n = s.count, m = (std::size_t)s.entries + 1;  // one entry is written behind the last and not kept
  return padded_bytes<off>(n + 1) + padded_bytes<idx>(n) * (labels ? 2 : 1) +
         padded_bytes<idx>(m) * (edge_weights ? 2 : 1);
}

Graph take(Carver& carver, const Graph& g, const Selection& s) {
  off* ptr = carver.get<off>((std::size_t)s.count + 1);
  idx* weight = carver.get<idx>(s.count);
  idx* adj = carver.get<idx>((std::size_t)s.entries + 1);
  idx* edge_weight = g.edge_weight ? carver.get<idx>((std::size_t)s.entries + 1) : nullptr;
  off size = 0, total = 0;
  idx row = 0;
  for (idx v = 0; v < g.n; v++) {
    if (s.local[v] < 0) continue;
    ptr[row] = size;
    total += weight[row++] = s.weight[v];
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = s.local[g.adj[p]];
      adj[size] = u;
      if (edge_weight) edge_weight[size] = g.edge_weight[p];
      size += u >= 0;
    }
  }
  ptr[row] = size;
  return Graph{s.count, ptr, adj, weight, edge_weight, total};
}

// levels[l]: the child's part of level l.
void build(const Piece& piece, const std::vector<Selection>& levels, std::byte* memory, Piece& child) {
  Carver carver(memory);
  for (std::size_t l = 0; l < levels.size(); l++) {
    const Graph& g = piece.hierarchy.level[l];
    const Selection& s = levels[l];
    child.hierarchy.level.push_back(take(carver, g, s));
    if (l == 0) {
      idx* vertex = carver.get<idx>(s.count);
      for (idx v = 0; v < g.n; v++)
        if (s.local[v] >= 0) vertex[s.local[v]] = piece.vertex[v];
      child.vertex = vertex;
    }
    if (l + 1 < levels.size()) {
      idx* cluster = carver.get<idx>(s.count);
      for (idx v = 0; v < g.n; v++)
        if (s.local[v] >= 0) cluster[s.local[v]] = levels[l + 1].local[piece.hierarchy.cluster[l][v]];
      child.hierarchy.cluster.push_back(cluster);
    }
  }
}

template <class T> void shift(const T*& p, std::ptrdiff_t by) {
  if (p) p = reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(p) + by);
}

}  // namespace

void Piece::move_to(std::byte* to) {
  if (to == memory) return;
  const std::ptrdiff_t by = to - memory;
  std::memmove(to, memory, bytes);
  memory = to;
  for (Graph& g : hierarchy.level) shift(g.ptr, by), shift(g.adj, by), shift(g.weight, by), shift(g.edge_weight, by);
  for (const idx*& cluster : hierarchy.cluster) shift(cluster, by);
  shift(vertex, by);
}

void split(Workspace& ws, const Piece& piece, const Partition& part, bool inherit, bool parallel, Piece child[2]) {
  const std::vector<Graph>& level = piece.hierarchy.level;
  std::mutex allocation;
  for_each(ws, 2, parallel, [&](int side, Workspace& own) {
    ArenaScope scope(own.arena);
    std::vector<Selection> levels{select_side(own, level[0], part, side)};
    const idx target = coarse_target(levels[0].count);
    for (std::size_t l = 1; inherit && l < level.size() && levels.back().count > target; l++) {
      const idx* cluster = piece.hierarchy.cluster[l - 1];
      const Selection next = select_clusters(own, level[l - 1], levels.back(), cluster, level[l]);
      if (next.count < target / 2) break;
      levels.push_back(next);
    }
    std::size_t bytes = padded_bytes<idx>(levels[0].count);
    for (std::size_t l = 0; l < levels.size(); l++)
      bytes += bytes_of(levels[l], level[l].edge_weight, l + 1 < levels.size());
    {
      std::lock_guard<std::mutex> lock(allocation);
      child[side].home = &ws.kept;
      child[side].mark = ws.kept.mark();
      child[side].memory = ws.kept.get<std::byte>(bytes);
      child[side].bytes = bytes;
    }
    build(piece, levels, child[side].memory, child[side]);
    child[side].depth = piece.depth + 1;
    child[side].seed = mix(piece.seed * 2 + 1 + side);
  });
  child[0].first = piece.first;
  child[1].first = piece.first + child[0].hierarchy.level[0].n;
}

}  // namespace gs::nd
