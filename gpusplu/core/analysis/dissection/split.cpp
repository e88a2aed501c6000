#include "analysis/dissection/split.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "analysis/dissection/separator.hpp"
#include "analysis/dissection/tasks.hpp"

namespace gs::nd {
namespace {

constexpr idx kRange = 8000;  // vertices of a level that are worth a task
constexpr idx kMostRanges = 16;

// A range of a level's vertices: those that the child takes over are its vertices from `first` on, their entries lie
// from `at` on.
struct Range {
  idx begin, end, first = 0;
  off at = 0;
};

std::vector<Range> ranges(idx n, bool parallel) {
  std::vector<Range> out(parallel ? std::clamp(n / kRange, 1, kMostRanges) : 1);
  const off count = (off)out.size();
  for (off i = 0; i < count; i++) out[i].begin = (idx)(n * i / count), out[i].end = (idx)(n * (i + 1) / count);
  return out;
}

// Turns counts into places; returns their sum.
template <class Int> Int accumulate(std::vector<Range>& parts, Int Range::*place) {
  Int sum = 0;
  for (Range& range : parts) sum += std::exchange(range.*place, sum);
  return sum;
}

// The vertices of one level that a child takes over.
struct Selection {
  idx* local;         // of the level's vertices, their numbers in the child; -1: not in it
  const idx* weight;  // by the level's numbers
  std::vector<Range> parts;
  idx count = 0;
  off entries = 0;  // of their rows, an upper bound of the child's
};

// Those vertices for which in(v).
template <class In> Selection select(Workspace& ws, const Graph& g, const idx* weight, bool parallel, const In& in) {
  Selection s{ws.arena.get<idx>(g.n), weight, ranges(g.n, parallel)};
  const int n_parts = (int)s.parts.size();
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    Range& range = s.parts[i];
    for (idx v = range.begin; v < range.end; v++) {
      const bool selected = in(v);
      range.first += selected;
      range.at += selected ? g.ptr[v + 1] - g.ptr[v] : 0;
    }
  });
  s.count = accumulate(s.parts, &Range::first);
  s.entries = accumulate(s.parts, &Range::at);
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    idx next = s.parts[i].first;
    for (idx v = s.parts[i].begin; v < s.parts[i].end; v++) {
      const bool selected = in(v);
      s.local[v] = selected ? next : -1;
      next += selected;
    }
  });
  return s;
}

// The clusters with members in the finer level's selection.
Selection select_clusters(Workspace& ws, const Selection& members, const idx* cluster, const Graph& g, bool parallel) {
  idx* weight = ws.arena.get<idx>(g.n);
  std::fill_n(weight, g.n, 0);
  const bool shared = members.parts.size() > 1;  // a cluster may have members in several ranges
  for_each(ws, (int)members.parts.size(), shared, [&](int i, Workspace&) {
    for (idx v = members.parts[i].begin; v < members.parts[i].end; v++) {
      if (members.local[v] < 0) continue;
      if (shared) std::atomic_ref<idx>(weight[cluster[v]]).fetch_add(members.weight[v], std::memory_order_relaxed);
      else weight[cluster[v]] += members.weight[v];
    }
  });
  return select(ws, g, weight, parallel, [&](idx c) { return weight[c] > 0; });
}

std::size_t bytes_of(const Selection& s, bool edge_weights, bool labels) {
  const std::size_t n = s.count, m = (std::size_t)s.entries + 1;  // one entry is written after the last and not kept
  return padded_bytes<off>(n + 1) + padded_bytes<idx>(n) * (labels ? 2 : 1) +
         padded_bytes<idx>(m) * (edge_weights ? 2 : 1);
}

Graph take(Workspace& ws, Carver& carver, const Graph& g, Selection& s) {
  off* ptr = carver.get<off>((std::size_t)s.count + 1);
  idx* weight = carver.get<idx>(s.count);
  idx* adj = carver.get<idx>((std::size_t)s.entries + 1);
  idx* edge_weight = g.edge_weight ? carver.get<idx>((std::size_t)s.entries + 1) : nullptr;
  const int n_parts = (int)s.parts.size();
  if (n_parts > 1) {  // exact places, so that the ranges' entries follow each other
    for_each(ws, n_parts, true, [&](int i, Workspace&) {
      Range& range = s.parts[i];
      range.at = 0;
      for (idx v = range.begin; v < range.end; v++)
        if (s.local[v] >= 0)
          for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) range.at += s.local[g.adj[p]] >= 0;
    });
    accumulate(s.parts, &Range::at);
  }
  std::vector<off> total(n_parts), end(n_parts);
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    const Range& range = s.parts[i];
    const off last = i + 1 < n_parts ? s.parts[i + 1].at : s.entries + 1;
    off size = range.at;
    idx row = range.first;
    for (idx v = range.begin; v < range.end; v++) {
      if (s.local[v] < 0) continue;
      ptr[row] = size;
      total[i] += weight[row++] = s.weight[v];
      for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
        const idx u = s.local[g.adj[p]];
        if (size == last) continue;  // the next range's place; nothing remains to take here
        adj[size] = u;
        if (edge_weight) edge_weight[size] = g.edge_weight[p];
        size += u >= 0;
      }
    }
    end[i] = size;
  });
  ptr[s.count] = end.back();
  return Graph{s.count, ptr, adj, weight, edge_weight, std::accumulate(total.begin(), total.end(), off(0))};
}

// levels[l]: the child's part of level l.
void build(Workspace& ws, const Component& component, std::vector<Selection>& levels, std::byte* memory,
           Component& child) {
  Carver carver(memory);
  const auto for_taken = [&](const Selection& s, const auto& visit) {
    for_each(ws, (int)s.parts.size(), s.parts.size() > 1, [&](int i, Workspace&) {
      for (idx v = s.parts[i].begin; v < s.parts[i].end; v++)
        if (s.local[v] >= 0) visit(v);
    });
  };
  for (std::size_t l = 0; l < levels.size(); l++) {
    Selection& s = levels[l];
    child.hierarchy.level.push_back(take(ws, carver, component.hierarchy.level[l], s));
    if (l == 0) {
      idx* vertex = carver.get<idx>(s.count);
      for_taken(s, [&](idx v) { vertex[s.local[v]] = component.vertex[v]; });
      child.vertex = vertex;
    }
    if (l + 1 < levels.size()) {
      idx* cluster = carver.get<idx>(s.count);
      for_taken(s, [&](idx v) { cluster[s.local[v]] = levels[l + 1].local[component.hierarchy.cluster[l][v]]; });
      child.hierarchy.cluster.push_back(cluster);
    }
  }
}

template <class T> void shift(const T*& p, std::ptrdiff_t by) {
  if (p) p = reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(p) + by);
}

}  // namespace

void Component::move_to(std::byte* to) {
  if (to == memory) return;
  const std::ptrdiff_t by = to - memory;
  std::memmove(to, memory, bytes);
  memory = to;
  for (Graph& g : hierarchy.level) shift(g.ptr, by), shift(g.adj, by), shift(g.weight, by), shift(g.edge_weight, by);
  for (const idx*& cluster : hierarchy.cluster) shift(cluster, by);
  shift(vertex, by);
}

void split(Workspace& ws, const Component& component, const Partition& part, bool inherit, bool parallel,
           Component child[2]) {
  const std::vector<Graph>& level = component.hierarchy.level;
  std::mutex allocation;
  for_each(ws, 2, parallel, [&](int side, Workspace& own) {
    ArenaScope scope(own.arena);
    std::vector<Selection> levels{
        select(own, level[0], level[0].weight, parallel, [&](idx v) { return part.side[v] == side; })};
    const idx target = coarse_target(levels[0].count);
    for (std::size_t l = 1; inherit && l < level.size() && levels.back().count > target; l++) {
      const idx* cluster = component.hierarchy.cluster[l - 1];
      Selection next = select_clusters(own, levels.back(), cluster, level[l], parallel);
      if (next.count < target / 2) break;
      levels.push_back(std::move(next));
    }
    std::size_t bytes = padded_bytes<idx>(levels[0].count);
    for (std::size_t l = 0; l < levels.size(); l++)
      bytes += bytes_of(levels[l], level[l].edge_weight, l + 1 < levels.size());
    {
      std::lock_guard<std::mutex> lock(allocation);
      child[side].owner = &ws.kept;
      child[side].mark = ws.kept.mark();
      child[side].memory = ws.kept.get<std::byte>(bytes);
      child[side].bytes = bytes;
      child[side].end = ws.kept.mark();
    }
    build(own, component, levels, child[side].memory, child[side]);
    child[side].depth = component.depth + 1;
    child[side].seed = mix(component.seed * 2 + 1 + side);
  });
  child[0].first = component.first;
  child[1].first = component.first + child[0].hierarchy.level[0].n;
}

}  // namespace gs::nd
