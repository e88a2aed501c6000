#include "analysis/low_degrees.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"

namespace gs {
namespace {

constexpr idx longest = 512;  // longest list that is searched; neighbours of longer hubs stay where they are

double dense_degree(idx n) { return std::max(16.0, 10 * std::sqrt((double)n)); }

class LowDegreeElimination {
 public:
  LowDegreeElimination(PatternView graph, Leaves leaves)
      : n_(graph.n), leaves_first_(leaves == Leaves::first), vertex_(graph.n), list_(graph.nnz()) {
    over_range(n_, graph.nnz(), [&](idx begin, idx end) {
      for (idx i = begin; i < end; i++) {
        idx* const first = list_.data() + graph.ptr[i];
        const idx length =
            (idx)(std::remove_copy(graph.ind + graph.ptr[i], graph.ind + graph.ptr[i + 1], first, i) - first);
        vertex_[i] = {graph.ptr[i], length, length, 0};
      }
    });
  }

  // Of the early vertices, in the order of their elimination, the others that `order` orders, and the dense ones.
  std::vector<idx> run(const OrderOfRest& order, std::optional<FactorSize>* size) {
    leave_dense_out();
    for (idx i = 0; i < n_; i++)
      if (is_in(i)) queue(i);
    std::reverse(waiting_.begin(), waiting_.end());
    strip_leaves();
    std::vector<idx> candidates;
    for (idx round = 1; !waiting_.empty(); round++) {
      candidates.swap(waiting_);
      waiting_.clear();
      for (const idx v : candidates) eliminate(v, round);
    }
    std::vector<idx> rest;
    const Pattern graph = keep_rest(rest);
    vertex_ = {}, list_ = {};
    for (const idx k : order(graph.view(), rest, size_)) perm_.push_back(rest[k]);
    perm_.insert(perm_.end(), dense_.begin(), dense_.end());
    if (size) *size = dense_.empty() ? std::optional(size_) : std::nullopt;
    return std::move(perm_);
  }

 private:
  // Its neighbours are in the first `length` entries from `start`, among others that have left the graph.
  struct Vertex {
    off start;
    idx length;
    idx degree;   // negative: it has left the graph
    idx touched;  // round that eliminated a neighbour last
  };

  bool is_in(idx v) const { return vertex_[v].degree >= 0; }
  idx* begin(idx v) { return list_.data() + vertex_[v].start; }
  idx* end(idx v) { return begin(v) + vertex_[v].length; }

  // A graph dense throughout keeps its rows.
  void leave_dense_out() {
    for (idx i = 0; i < n_; i++)
      if (vertex_[i].degree > dense_degree(n_)) dense_.push_back(i);
    if ((idx)dense_.size() > n_ / 4) dense_.clear();
    for (const idx i : dense_)
      for (const idx* j = begin(i); j < end(i); j++) vertex_[*j].degree--;
    for (const idx i : dense_) vertex_[i].degree = -1;
  }

  void take(idx v) {
    perm_.push_back(v);
    size_.add(vertex_[v].degree + 1, 1);
    vertex_[v].degree = -1;
  }

  void queue(idx v) {
    if (vertex_[v].degree <= 2) (leaves_first_ && vertex_[v].degree < 2 ? leaves_ : waiting_).push_back(v);
  }

  // A neighbour of v has left.
  void lower(idx v) {
    vertex_[v].degree--;
    queue(v);
  }

  idx* next_neighbour(idx v, idx* from) {
    return std::find_if(from, end(v), [&](idx u) { return is_in(u); });
  }

  void strip_leaves() {
    for (std::size_t k = 0; k < leaves_.size(); k++)
      if (is_in(leaves_[k])) strip(leaves_[k], 0);
    leaves_.clear();
  }

  void strip(idx v, idx round) {
    const idx* const above = next_neighbour(v, begin(v));
    take(v);
    if (above == end(v)) return;
    vertex_[*above].touched = round;
    lower(*above);
  }

  void eliminate(idx v, idx round) {
    if (!is_in(v) || vertex_[v].degree > 2) return;
    if (vertex_[v].touched == round) return waiting_.push_back(v);
    if (vertex_[v].degree < 2) return strip(v, round);
    idx* const a = next_neighbour(v, begin(v));
    const idx one = *a, other = *next_neighbour(v, a + 1);
    if (!bypass(v, one, other)) return;
    vertex_[one].touched = vertex_[other].touched = round;
    strip_leaves();
  }

  // Removes v, which has the neighbours a and b, and connects a with b. Returns false without a change where that would
  // be expensive.
  bool bypass(idx v, idx a, idx b) {
    if (vertex_[a].length > vertex_[b].length) std::swap(a, b);
    if (vertex_[b].length > longest) return false;
    if (std::find(begin(a), end(a), b) != end(a)) {
      take(v);
      lower(a), lower(b);
      return true;
    }
    idx *const v_in_a = std::find(begin(a), end(a), v), *const v_in_b = std::find(begin(b), end(b), v);
    if (v_in_a == end(a) || v_in_b == end(b)) return false;  // the pattern is not symmetric
    *v_in_a = b, *v_in_b = a;
    take(v);
    return true;
  }

  // The graph of the remaining vertices, without the gaps that removed vertices left in their lists; its vertex k is
  // rest[k].
  Pattern keep_rest(std::vector<idx>& rest) {
    std::vector<idx> number(n_);
    Pattern graph;
    graph.ptr.push_back(0);
    for (idx i = 0; i < n_; i++)
      if (is_in(i)) {
        number[i] = (idx)rest.size();
        rest.push_back(i);
        graph.ptr.push_back(graph.ptr.back() + vertex_[i].degree);
      }
    graph.n = (idx)rest.size();
    graph.ind.resize(graph.ptr.back());
    over_range(graph.n, graph.ptr.back(), [&](idx first, idx last) {
      idx* next = graph.ind.data() + graph.ptr[first];
      for (idx k = first; k < last; k++)
        for (const idx* u = begin(rest[k]); u < end(rest[k]); u++)
          if (is_in(*u)) *next++ = number[*u];
    });
    return graph;
  }

  const idx n_;
  const bool leaves_first_;
  RawVector<Vertex> vertex_;
  RawVector<idx> list_;
  std::vector<idx> leaves_, waiting_;  // vertices of low degree that are taken immediately, and in the next round
  std::vector<idx> perm_, dense_;
  FactorSize size_;
};

}  // namespace

bool has_low_degrees(PatternView graph) {
  constexpr double few = 0.125;  // of the vertices
  const double dense = dense_degree(graph.n);
  idx low = 0;
  for (idx i = 0; i < graph.n; i++) {
    const idx* const begin = graph.ind + graph.ptr[i];
    const off length = graph.ptr[i + 1] - graph.ptr[i];
    if ((double)length > dense) return true;
    low += length <= 2 || (length == 3 && std::find(begin, begin + 3, i) != begin + 3);
  }
  return low > few * graph.n;
}

std::vector<idx> order_without_low_degrees(PatternView graph, Leaves leaves, const OrderOfRest& order,
                                           std::optional<FactorSize>* size) {
  return LowDegreeElimination(graph, leaves).run(order, size);
}

}  // namespace gs
