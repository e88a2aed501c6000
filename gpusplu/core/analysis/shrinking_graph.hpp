// A graph from which vertices are removed before the rest is ordered.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/types.hpp"

namespace gs {

// What is left, and the others. The order of the whole graph is: `early`, then the rest in any order, then `late`.
struct ReducedGraph {
  std::vector<idx> early, late;
  std::vector<idx> rest;  // the vertices of `graph`
  Pattern graph;          // in no order

  std::vector<idx> expand(const std::vector<idx>& order) const {
    std::vector<idx> whole(early);
    whole.reserve(early.size() + order.size() + late.size());
    for (const idx k : order) whole.push_back(rest[k]);
    whole.insert(whole.end(), late.begin(), late.end());
    return whole;
  }
};

// Rows with more neighbours would make every degree large and every update slow (the paper on AMD, sec. 6).
inline double dense_degree(idx n) { return std::max(16.0, 10 * std::sqrt((double)n)); }

struct ShrinkingGraph {
  struct Vertex {
    off start;
    idx length;       // of its list, which may still name vertices that have left the graph
    idx degree;       // neighbours in the graph; negative: it has left
    idx touched = 0;  // round of eliminations that a neighbour was in last
  };
  idx n;
  RawVector<Vertex> vertex;
  RawVector<idx> list;
  ReducedGraph reduced;

  // Vertex v has the neighbours of vertex first(v) of `g`, by their numbers here; number(u): negative if u has none. A
  // diagonal is left out.
  template <class First, class Number> ShrinkingGraph(PatternView g, idx n_vertices, First&& first, Number&& number)
      : n(n_vertices), vertex(n), list(g.nnz()) {
    over_range(n, g.nnz(), [&](idx from, idx to) {
      for (idx v = from; v < to; v++) {
        const idx own = first(v);
        idx* next = list.data() + g.ptr[own];
        for (off p = g.ptr[own]; p < g.ptr[own + 1]; p++) {
          const idx u = number(g.ind[p]);
          *next = u;
          next += (g.ind[p] != own) & (u >= 0);
        }
        const idx length = (idx)(next - list.data() - g.ptr[own]);
        vertex[v] = {g.ptr[own], length, length};
      }
    });
  }

  bool is_in(idx v) const { return vertex[v].degree >= 0; }
  idx* begin(idx v) { return list.data() + vertex[v].start; }
  idx* end(idx v) { return begin(v) + vertex[v].length; }

  // Removes the dense vertices, unless there are more than `most`: then the graph is dense throughout.
  void postpone_dense(idx most) {
    std::vector<idx>& dense = reduced.late;
    const double limit = dense_degree(n);
    dense = indices_where(n, [&](idx v) { return vertex[v].degree > limit; });
    if ((idx)dense.size() > most) dense.clear();
    for (const idx v : dense)
      for (const idx* u = begin(v); u < end(v); u++) vertex[*u].degree--;
    for (const idx v : dense) vertex[v].degree = -1;
  }

  void take(idx v) {
    reduced.early.push_back(v);
    vertex[v].degree = -1;
  }

  // Numbers the vertices that are left.
  ReducedGraph reduce() {
    std::vector<idx>& rest = reduced.rest;
    Pattern& graph = reduced.graph;
    rest = indices_where(n, [&](idx v) { return is_in(v); });
    graph.n = (idx)rest.size();
    RawVector<idx> number(n);
    over_range(graph.n, graph.n, [&](idx from, idx to) {
      for (idx k = from; k < to; k++) number[rest[k]] = k;
    });
    graph.ptr.resize((std::size_t)graph.n + 1);
    for (idx k = 0; k < graph.n; k++) graph.ptr[k + 1] = graph.ptr[k] + vertex[rest[k]].degree;
    graph.ind.resize(graph.ptr.back());
    over_range(graph.n, graph.ptr.back(), [&](idx from, idx to) {
      for (idx k = from; k < to; k++) {
        idx* next = graph.ind.data() + graph.ptr[k];
        for (const idx *u = begin(rest[k]), *stop = end(rest[k]); u < stop; u++)
          if (is_in(*u)) *next++ = number[*u];
      }
    });
    return std::move(reduced);
  }
};

}  // namespace gs
