#include "analysis/dissection/components.hpp"

#include <algorithm>
#include <utility>

#include "base/operation.hpp"

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
  Pace pace;
  for (idx v = 0; v < g.n; v++) {
    pace.go_on(1 + g.ptr[v + 1] - g.ptr[v]);
    idx own = parent[v] = v;
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      if (g.adj[p] >= v) continue;
      const idx other = root(g.adj[p]);
      if (other < own) own = parent[own] = other;
      else if (own < other) parent[other] = own;
    }
  }
  std::vector<idx> sizes;
  for (idx v = 0; v < g.n; v++) {  // roots come before their trees: parents are components here already
    component[v] = parent[v] == v ? (idx)sizes.size() : component[parent[v]];
    if (component[v] == (idx)sizes.size()) sizes.push_back(0);
    sizes[component[v]]++;
  }
  return sizes;
}

// A copy of the vertices' rows, which name vertices of their component only.
void copy_component(const Graph& whole, const idx* vertex, idx n, std::vector<idx>& local, Arena& memory,
                    Component& part) {
  off entries = 0;
  for (idx i = 0; i < n; i++) {
    local[vertex[i]] = i;
    entries += whole.ptr[vertex[i] + 1] - whole.ptr[vertex[i]];
  }
  const std::size_t bytes =
      padded_bytes<off>((std::size_t)n + 1) + 2 * padded_bytes<idx>(n) + padded_bytes<idx>(entries);
  Carver carver(memory.get<std::byte>(bytes));
  off* ptr = carver.get<off>((std::size_t)n + 1);
  idx *weight = carver.get<idx>(n), *own = carver.get<idx>(n), *adj = carver.get<idx>(entries);
  off size = 0, total = 0;
  for (idx i = 0; i < n; i++) {
    const idx v = own[i] = vertex[i];
    ptr[i] = size;
    total += weight[i] = whole.weight[v];
    for (off p = whole.ptr[v]; p < whole.ptr[v + 1]; p++) adj[size++] = local[whole.adj[p]];
  }
  ptr[n] = size;
  part.hierarchy.level = {Graph{n, ptr, adj, weight, nullptr, total}};
  part.vertex = own;
}

}  // namespace

std::vector<Component> connected_components(const Graph& whole, const idx* all, idx leaf, std::uint64_t seed,
                                            Arena& memory) {
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
  std::vector<idx> sorted(whole.n), local(whole.n);
  std::vector<off> next(first.begin(), first.end() - 1);
  for (idx v = 0; v < whole.n; v++) sorted[next[component[v]]++] = v;

  for (std::size_t c = 0; c < sizes.size();) {
    std::size_t end = c + 1;
    while (end < sizes.size() && first[end + 1] - first[c] <= leaf) end++;
    const idx n = (idx)(first[end] - first[c]);
    Component part;
    const idx* vertex = sorted.data() + first[c];
    if (n > leaf) {
      copy_component(whole, vertex, n, local, memory, part);
    } else {
      part.vertex = std::copy(vertex, vertex + n, memory.get<idx>(n)) - n;
      part.hierarchy.level.push_back(Graph{n});
    }
    part.first = (idx)first[c];
    part.seed = mix(seed + c);
    components.push_back(std::move(part));
    c = end;
  }
  return components;
}

}  // namespace gs::nd
