#include "analysis/low_degrees.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/raw_vector.hpp"

namespace gs {
namespace {

constexpr idx longest = 512;   // longest list that is searched; neighbours of longer hubs stay where they are
constexpr double few = 0.125;  // of the vertices

bool are_many(std::size_t low, idx n) { return (double)low > few * n; }

// Rows with more neighbours would make every degree large and every update slow (the paper on AMD, sec. 6).
double dense_degree(idx n) { return std::max(16.0, 10 * std::sqrt((double)n)); }

class LowDegreeElimination {
 public:
  explicit LowDegreeElimination(PatternView graph) : n_(graph.n), vertex_(graph.n), list_(graph.nnz()) {
    idx* next = list_.data();
    for (idx i = 0; i < n_; i++) {
      idx* const first = next;
      for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; p++) {
        *next = graph.ind[p];
        next += graph.ind[p] != i;
      }
      vertex_[i] = {first - list_.data(), (idx)(next - first), (idx)(next - first), 0};
    }
  }

  LowDegrees run() {
    leave_dense_out();
    for (idx i = 0; i < n_; i++)
      if (is_in(i) && vertex_[i].degree <= 1) leaves_.push_back(i);
    for (idx i = n_; i-- > 0;)
      if (vertex_[i].degree == 2) pairs_.push_back(i);
    if (!are_many(leaves_.size() + pairs_.size(), n_)) leaves_.clear(), pairs_.clear();
    strip_leaves();
    std::vector<idx> candidates;
    for (idx round = 1; !pairs_.empty(); round++) {
      candidates.swap(pairs_);
      pairs_.clear();
      eliminate_pairs(round, candidates, pairs_);
    }
    keep_rest();
    return std::move(out_);
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
      if (vertex_[i].degree > dense_degree(n_)) out_.dense.push_back(i);
    if ((idx)out_.dense.size() > n_ / 4) out_.dense.clear();
    for (const idx i : out_.dense)
      for (const idx* j = begin(i); j < end(i); j++) vertex_[*j].degree--;
    for (const idx i : out_.dense) vertex_[i].degree = -1;
  }

  // Its neighbours are a and b; -1: none.
  void take(idx v, idx a, idx b) {
    out_.early.push_back(v), out_.above.push_back({a, b});
    out_.size.add(vertex_[v].degree + 1, 1);
    vertex_[v].degree = -1;
  }

  // A neighbour of v has left.
  void lower(idx v) {
    const idx degree = --vertex_[v].degree;
    if (degree == 1) leaves_.push_back(v);
    if (degree == 2) pairs_.push_back(v);
  }

  void strip_leaves() {
    for (std::size_t k = 0; k < leaves_.size(); k++) {
      const idx v = leaves_[k];
      if (!is_in(v)) continue;
      const idx above = vertex_[v].degree > 0 ? *std::find_if(begin(v), end(v), [&](idx u) { return is_in(u); }) : -1;
      take(v, above, -1);
      if (above >= 0) lower(above);
    }
    leaves_.clear();
  }

  void eliminate_pairs(idx round, const std::vector<idx>& candidates, std::vector<idx>& next) {
    for (const idx v : candidates) {
      if (vertex_[v].degree != 2) continue;
      if (vertex_[v].touched == round) {
        next.push_back(v);
        continue;
      }
      const auto is_neighbour = [&](idx u) { return is_in(u); };
      const idx* const a = std::find_if(begin(v), end(v), is_neighbour);
      const idx* const b = std::find_if(a + 1, const_cast<const idx*>(end(v)), is_neighbour);
      const idx one = *a, other = *b;
      if (!bypass(v, one, other)) continue;
      vertex_[one].touched = vertex_[other].touched = round;
      strip_leaves();
    }
  }

  // Removes v, which has the neighbours a and b, and connects a with b. Returns false without a change where that would
  // be expensive.
  bool bypass(idx v, idx a, idx b) {
    if (vertex_[a].length > vertex_[b].length) std::swap(a, b);
    if (vertex_[b].length > longest) return false;
    if (std::find(begin(a), end(a), b) != end(a)) {
      take(v, a, b);
      lower(a), lower(b);
      return true;
    }
    idx *const v_in_a = std::find(begin(a), end(a), v), *const v_in_b = std::find(begin(b), end(b), v);
    if (v_in_a == end(a) || v_in_b == end(b)) return false;  // the pattern is not symmetric
    *v_in_a = b, *v_in_b = a;
    take(v, a, b);
    return true;
  }

  // Numbers the remaining vertices and closes the gaps that removed vertices left in their lists.
  void keep_rest() {
    std::vector<idx> number(n_);
    out_.rest.reserve(n_ - out_.early.size() - out_.dense.size());
    for (idx i = 0; i < n_; i++)
      if (is_in(i)) number[i] = (idx)out_.rest.size(), out_.rest.push_back(i);
    Pattern& graph = out_.graph;
    graph.n = (idx)out_.rest.size();
    graph.ptr.resize((std::size_t)graph.n + 1);
    off size = 0;
    for (idx k = 0; k < graph.n; k++) graph.ptr[k] = size, size += vertex_[out_.rest[k]].degree;
    graph.ptr[graph.n] = size;
    graph.ind.resize(size);
    for (idx k = 0; k < graph.n; k++) {
      idx* next = graph.ind.data() + graph.ptr[k];
      for (const idx* u = begin(out_.rest[k]); u < end(out_.rest[k]); u++)
        if (is_in(*u)) *next++ = number[*u];
    }
  }

  const idx n_;
  RawVector<Vertex> vertex_;
  RawVector<idx> list_;
  std::vector<idx> leaves_, pairs_;  // vertices that have come down to at most one neighbour, to two
  LowDegrees out_;
};

}  // namespace

bool has_low_degrees(PatternView graph) {
  const double dense = dense_degree(graph.n);
  std::size_t low = 0;
  for (idx i = 0; i < graph.n; i++) {
    const idx* const begin = graph.ind + graph.ptr[i];
    const off length = graph.ptr[i + 1] - graph.ptr[i];
    if ((double)length > dense) return true;
    low += length <= 2 || (length == 3 && std::find(begin, begin + 3, i) != begin + 3);
  }
  return are_many(low, graph.n);
}

LowDegrees eliminate_low_degrees(PatternView graph) { return LowDegreeElimination(graph).run(); }

}  // namespace gs
