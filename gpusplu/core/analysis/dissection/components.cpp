#include "analysis/dissection/components.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "analysis/dissection/tasks.hpp"
#include "base/operation.hpp"
#include "base/parallel.hpp"

namespace gs::nd {
namespace {

// component[v], numbered by first vertices; returns their sizes. Union-find: one pass in the order of memory, where a
// breadth-first search would jump about.
std::vector<idx> label(const Graph& g, std::vector<idx>& component) {
  std::vector<idx>& parent = component;
  parent.resize(g.n);
  auto root = [&](idx v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  const auto unite = [&](idx& own, idx neighbour) {
    const idx other = root(neighbour);
    if (other < own) own = parent[own] = other;
    else if (own < other) parent[other] = own;
  };
  // Threads unite the vertices of runs; the edges between runs come last.
  const int n_runs = threads_for(g.entries());
  std::vector<std::vector<std::pair<idx, idx>>> between(n_runs);
  share_out(n_runs, n_runs, [&](std::size_t r, int) {
    const auto [begin, end] = slice(g.n, Team{(int)r, n_runs});
    Pace pace;
    for (idx v = begin; v < end; v++) {
      pace.go_on(1 + g.ptr[v + 1] - g.ptr[v]);
      idx own = parent[v] = v;
      for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
        if (g.adj[p] >= v) continue;
        if (g.adj[p] >= begin) unite(own, g.adj[p]);
        else between[r].emplace_back(v, g.adj[p]);
      }
    }
  });
  for (const auto& edges : between)
    for (const auto& [v, neighbour] : edges) {
      idx own = root(v);
      unite(own, neighbour);
    }
  std::vector<idx> sizes;
  for (idx v = 0; v < g.n; v++) {  // roots come before their trees: parents are components here already
    component[v] = parent[v] == v ? (idx)sizes.size() : component[parent[v]];
    if (component[v] == (idx)sizes.size()) sizes.push_back(0);
    sizes[component[v]]++;
  }
  return sizes;
}

constexpr idx kLevelPart = 8000;  // vertices of a level that are worth a task
constexpr idx kMostLevelParts = 16;

// A range of a level's vertices: those that the child takes over are its vertices from `first` on, their entries lie
// from `at` on.
struct LevelPart {
  idx begin, end, first = 0;
  off at = 0;
};

std::vector<LevelPart> level_parts(idx n, bool parallel) {
  std::vector<LevelPart> out(parallel ? std::clamp(n / kLevelPart, 1, kMostLevelParts) : 1);
  const off count = (off)out.size();
  for (off i = 0; i < count; i++) out[i].begin = (idx)(n * i / count), out[i].end = (idx)(n * (i + 1) / count);
  return out;
}

// Turns counts into places; returns their sum.
template <class Int> Int accumulate(std::vector<LevelPart>& parts, Int LevelPart::*place) {
  Int sum = 0;
  for (LevelPart& range : parts) sum += std::exchange(range.*place, sum);
  return sum;
}

// The vertices of one level that a child takes over.
struct Selection {
  idx* local;         // of the level's vertices, their numbers in the child; -1: not in it
  const idx* weight;  // by the level's numbers
  std::vector<LevelPart> parts;
  idx count = 0;
  off entries = 0;  // of their rows, an upper bound of the child's
};

// Those vertices for which in(v).
template <class In> Selection select(Workspace& ws, const Graph& g, const idx* weight, bool parallel, const In& in) {
  Selection s{ws.arena.get<idx>(g.n), weight, level_parts(g.n, parallel)};
  const int n_parts = (int)s.parts.size();
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    LevelPart& range = s.parts[i];
    for (idx v = range.begin; v < range.end; v++) {
      const bool selected = in(v);
      range.first += selected;
      range.at += selected ? g.ptr[v + 1] - g.ptr[v] : 0;
    }
  });
  s.count = accumulate(s.parts, &LevelPart::first);
  s.entries = accumulate(s.parts, &LevelPart::at);
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

Graph take(Workspace& ws, Component& child, const Graph& g, Selection& s) {
  off* ptr = child.get<off>((std::size_t)s.count + 1);
  idx *weight = child.get<idx>(s.count), *adj = child.get<idx>(s.entries);
  idx* edge_weight = g.edge_weight ? child.get<idx>(s.entries) : nullptr;
  const int n_parts = (int)s.parts.size();
  if (n_parts > 1) {  // exact places, so that the ranges' entries follow each other
    for_each(ws, n_parts, true, [&](int i, Workspace&) {
      LevelPart& range = s.parts[i];
      range.at = 0;
      for (idx v = range.begin; v < range.end; v++)
        if (s.local[v] >= 0)
          for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) range.at += s.local[g.adj[p]] >= 0;
    });
    accumulate(s.parts, &LevelPart::at);
  }
  std::vector<off> total(n_parts), end(n_parts);
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    const LevelPart& range = s.parts[i];
    off size = range.at;
    idx row = range.first;
    for (idx v = range.begin; v < range.end; v++) {
      if (s.local[v] < 0) continue;
      ptr[row] = size;
      total[i] += weight[row++] = s.weight[v];
      for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
        const idx u = s.local[g.adj[p]];
        if (u < 0) continue;
        adj[size] = u;
        if (edge_weight) edge_weight[size] = g.edge_weight[p];
        size++;
      }
    }
    end[i] = size;
  });
  ptr[s.count] = end.back();
  return Graph{s.count, ptr, adj, weight, edge_weight, std::accumulate(total.begin(), total.end(), off(0))};
}

// levels[l]: the child's part of level l.
void build(Workspace& ws, const Component& component, std::vector<Selection>& levels, Component& child) {
  const auto for_taken = [&](const Selection& s, const auto& visit) {
    for_each(ws, (int)s.parts.size(), s.parts.size() > 1, [&](int i, Workspace&) {
      for (idx v = s.parts[i].begin; v < s.parts[i].end; v++)
        if (s.local[v] >= 0) visit(v);
    });
  };
  for (std::size_t l = 0; l < levels.size(); l++) {
    Selection& s = levels[l];
    child.hierarchy.level.push_back(take(ws, child, component.hierarchy.level[l], s));
    if (l == 0) {
      idx* vertex = child.get<idx>(s.count);
      for_taken(s, [&](idx v) { vertex[s.local[v]] = component.vertex[v]; });
      child.vertex = vertex;
    }
    if (l + 1 < levels.size()) {
      idx* cluster = child.get<idx>(s.count);
      for_taken(s, [&](idx v) { cluster[s.local[v]] = levels[l + 1].local[component.hierarchy.cluster[l][v]]; });
      child.hierarchy.cluster.push_back(cluster);
    }
  }
}

}  // namespace

Component extract(const Graph& whole, const idx* vertex, idx n, std::vector<idx>& local) {
  off entries = 0;
  for (idx i = 0; i < n; i++) {
    local[vertex[i]] = i;
    entries += whole.ptr[vertex[i] + 1] - whole.ptr[vertex[i]];
  }
  Component part;
  off* ptr = part.get<off>((std::size_t)n + 1);
  idx *weight = part.get<idx>(n), *own = part.get<idx>(n), *adj = part.get<idx>(entries);
  off size = 0, total = 0;
  for (idx i = 0; i < n; i++) {
    const idx v = own[i] = vertex[i];
    ptr[i] = size;
    total += weight[i] = whole.weight[v];
    for (off p = whole.ptr[v]; p < whole.ptr[v + 1]; p++)
      if (const idx u = local[whole.adj[p]]; u >= 0) adj[size++] = u;
  }
  ptr[n] = size;
  for (idx i = 0; i < n; i++) local[vertex[i]] = -1;
  part.hierarchy.level = {Graph{n, ptr, adj, weight, nullptr, total}};
  part.vertex = own;
  return part;
}

std::vector<Component> connected_components(const Graph& whole, const idx* all, idx leaf, std::uint64_t seed) {
  std::vector<Component> components;
  std::vector<idx> component;
  const std::vector<idx> sizes = label(whole, component);
  if (sizes.size() <= 1) {
    if (whole.n == 0) return components;
    components.resize(1);
    components[0].hierarchy.level = {whole};
    components[0].vertex = all;
    components[0].seed = seed;
    return components;
  }

  std::vector<off> first(sizes.size() + 1, 0);
  for (std::size_t c = 0; c < sizes.size(); c++) first[c + 1] = first[c] + sizes[c];
  std::vector<idx> sorted(whole.n), local(whole.n, -1);
  std::vector<off> next(first.begin(), first.end() - 1);
  for (idx v = 0; v < whole.n; v++) sorted[next[component[v]]++] = v;

  for (std::size_t c = 0; c < sizes.size();) {
    std::size_t end = c + 1;
    while (end < sizes.size() && first[end + 1] - first[c] <= leaf) end++;
    const idx n = (idx)(first[end] - first[c]);
    const idx* vertex = sorted.data() + first[c];
    Component part;
    if (n > leaf) {
      part = extract(whole, vertex, n, local);
    } else {
      part.vertex = std::copy(vertex, vertex + n, part.get<idx>(n)) - n;
      part.hierarchy.level.push_back(Graph{n});
    }
    part.first = (idx)first[c];
    part.seed = mix(seed + c);
    components.push_back(std::move(part));
    c = end;
  }
  return components;
}

void split(Workspace& ws, const Component& component, const Partition& part, bool inherit, bool parallel,
           Component child[2]) {
  const std::vector<Graph>& level = component.hierarchy.level;
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
    build(own, component, levels, child[side]);
    child[side].depth = component.depth + 1;
    child[side].seed = mix(component.seed * 2 + 1 + side);
  });
  child[0].first = component.first;
  child[1].first = component.first + child[0].n();
}

}  // namespace gs::nd
