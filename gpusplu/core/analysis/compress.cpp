#include "analysis/compress.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/dissection/graph.hpp"
#include "base/operation.hpp"
#include "base/parallel.hpp"

namespace gs {
namespace {

constexpr double kWorthwhile = 0.9;  // classes per vertex above which twins are not merged
constexpr idx kEarlyDegree = 2;
constexpr idx kLongRow = 1000;

enum class State : char { in, early, late };

// The graph of classes during the removal of vertices. Row c is the first length[c] entries from ptr[c] and may still
// name removed vertices; degree[c] counts the remaining ones.
struct Quotient {
  std::vector<off> ptr;
  std::vector<idx> ind, length, degree, weight;
  std::vector<State> state;

  idx n() const { return (idx)length.size(); }
  idx* begin(idx c) { return ind.data() + ptr[c]; }
  idx* end(idx c) { return begin(c) + length[c]; }
  bool is_in(idx c) const { return state[c] == State::in; }
};

// Calls visit(v) for the vertices, on several threads.
template <class F> void for_vertices(PatternView g, idx n, F&& visit) {
  over_range(n, g.nnz(), [&](idx begin, idx end) {
    for (idx v = begin; v < end; v++) visit(v);
  });
}

// representative[v]: the smallest member of v's class. Twins are adjacent, so comparing sums of hashed neighbourhoods
// along the edges finds them; a collision costs quality, never correctness. Returns the number of classes.
idx find_twins(PatternView g, std::vector<idx>& representative) {
  std::vector<std::uint64_t> key(g.n);
  representative.resize(g.n);
  for_vertices(g, g.n, [&](idx v) {
    std::uint64_t sum = nd::mix((std::uint64_t)v);
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) sum += g.ind[p] == v ? 0 : nd::mix((std::uint64_t)g.ind[p]);
    key[v] = sum;
  });
  for_vertices(g, g.n, [&](idx v) {
    representative[v] = v;
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = g.ind[p];
      if (u >= v || key[u] != key[v]) continue;
      representative[v] = u;
      break;
    }
  });
  idx classes = 0;
  for (idx v = 0; v < g.n; v++) {
    if (representative[v] == v) classes++;
    else representative[v] = representative[representative[v]];
  }
  return classes;
}

// Lists of the classes' members, classes numbered by their representatives. Returns every vertex's class.
std::vector<idx> list_members(const std::vector<idx>& representative, idx classes, CompressedGraph& out) {
  const idx n = (idx)representative.size();
  std::vector<idx> number(n), last(classes);
  out.first_member.resize(classes);
  out.next_member.assign(n, -1);
  idx c = 0;
  for (idx v = 0; v < n; v++) {
    if (representative[v] == v) {
      number[v] = c;
      out.first_member[c] = last[c] = v;
      c++;
    } else {
      const idx k = number[v] = number[representative[v]];
      out.next_member[last[k]] = v;
      last[k] = v;
    }
  }
  return number;
}

// The graph of classes, or a copy without diagonal when twins are not worthwhile.
Quotient quotient_graph(PatternView g, CompressedGraph& out) {
  std::vector<idx> representative, number;
  idx n = find_twins(g, representative);
  const bool twins = n < kWorthwhile * g.n;
  if (twins) number = list_members(representative, n, out);
  else n = g.n;

  Quotient q;
  q.ptr.resize((std::size_t)n + 1);
  q.length.resize(n), q.weight.assign(n, 1), q.state.assign(n, State::in);
  const auto for_neighbours = [&](idx c, auto&& visit) {
    const idx v = twins ? out.first_member[c] : c;
    for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
      const idx u = g.ind[p];
      if (u != v && (!twins || representative[u] == u)) visit(twins ? number[u] : u);
    }
  };
  for_vertices(g, n, [&](idx c) {
    for_neighbours(c, [&](idx) { q.length[c]++; });
    if (twins)
      for (idx u = out.next_member[out.first_member[c]]; u >= 0; u = out.next_member[u]) q.weight[c]++;
  });
  for (idx c = 0; c < n; c++) q.ptr[c + 1] = q.ptr[c] + q.length[c];
  q.ind.resize((std::size_t)q.ptr[n]);
  for_vertices(g, n, [&](idx c) {
    idx* next = q.ind.data() + q.ptr[c];
    for_neighbours(c, [&](idx u) { *next++ = u; });
  });
  q.degree = q.length;
  return q;
}

void postpone_dense(Quotient& q, std::vector<idx>& late) {
  const idx limit = (idx)std::max(16.0, 10 * std::sqrt((double)q.n()));
  for (idx c = 0; c < q.n(); c++)
    if (q.degree[c] > limit) late.push_back(c);
  if ((idx)late.size() > q.n() / 20 + 1) late.clear();  // dense throughout: these are no outliers
  for (idx c : late) q.state[c] = State::late;
  for (idx c : late)
    for (const idx* u = q.begin(c); u < q.end(c); u++) q.degree[*u]--;
}

// Removes v, which has the neighbours a and b, and connects a with b. Returns false without a change where that would
// be expensive.
bool bypass(Quotient& q, idx v, idx a, idx b) {
  if (q.length[a] > kLongRow || q.length[b] > kLongRow) return false;
  idx *v_in_a = std::find(q.begin(a), q.end(a), v), *v_in_b = std::find(q.begin(b), q.end(b), v);
  if (v_in_a == q.end(a) || v_in_b == q.end(b)) return false;  // the pattern is not symmetric
  if (std::find(q.begin(a), q.end(a), b) == q.end(a)) {
    *v_in_a = b, *v_in_b = a;
  } else {
    *v_in_a = *(q.end(a) - 1), q.length[a]--, q.degree[a]--;
    *v_in_b = *(q.end(b) - 1), q.length[b]--, q.degree[b]--;
  }
  return true;
}

void eliminate_low_degrees(Quotient& q, std::vector<idx>& early) {
  std::vector<idx> candidates, next, touched;
  Pace pace;
  for (idx c = 0; c < q.n(); c++)
    if (q.is_in(c) && q.degree[c] <= kEarlyDegree) candidates.push_back(c);
  if (!candidates.empty()) touched.assign(q.n(), 0);  // the last round in which a neighbour was eliminated
  for (idx round = 1; !candidates.empty(); round++, candidates.swap(next)) {
    next.clear();
    for (idx v : candidates) {
      pace.go_on(4);
      if (!q.is_in(v) || q.degree[v] > kEarlyDegree) continue;
      if (touched[v] == round) {
        next.push_back(v);
        continue;
      }
      idx* end = std::remove_if(q.begin(v), q.end(v), [&](idx u) { return !q.is_in(u); });
      q.length[v] = (idx)(end - q.begin(v));
      if (q.length[v] == 2) {
        if (!bypass(q, v, q.begin(v)[0], q.begin(v)[1])) continue;
      } else if (q.length[v] == 1) {
        q.degree[*q.begin(v)]--;
      }
      q.state[v] = State::early;
      early.push_back(v);
      for (const idx* u = q.begin(v); u < end; u++) {
        touched[*u] = round;
        if (q.degree[*u] <= kEarlyDegree) next.push_back(*u);
      }
    }
  }
}

// Moves the remaining quotient graph, renumbered, to the result.
void keep_rest(Quotient& q, CompressedGraph& out) {
  std::vector<idx> number(q.n(), -1);
  for (idx c = 0; c < q.n(); c++) {
    if (!q.is_in(c)) continue;
    number[c] = (idx)out.class_of.size();
    out.class_of.push_back(c);
  }
  const idx n = (idx)out.class_of.size();
  Pace pace;
  if (n == q.n()) {
    out.ptr = std::move(q.ptr), out.ind = std::move(q.ind), out.weight = std::move(q.weight);
  } else {  // rows move towards the beginning only
    off size = 0;
    for (idx i = 0; i < n; i++) {
      const idx c = out.class_of[i];
      pace.go_on(q.length[c]);
      const idx *begin = q.begin(c), *end = q.end(c);
      q.ptr[i] = size;
      q.weight[i] = q.weight[c];
      for (const idx* u = begin; u < end; u++)
        if (q.is_in(*u)) q.ind[size++] = number[*u];
    }
    q.ptr[n] = size;
    out.ptr = std::move(q.ptr), out.ind = std::move(q.ind), out.weight = std::move(q.weight);
    out.ptr.resize((std::size_t)n + 1);
    out.weight.resize(n);
  }
  out.ind.resize((std::size_t)out.ptr[n]);
}

}  // namespace

CompressedGraph compress(PatternView graph) {
  CompressedGraph out;
  Quotient q = quotient_graph(graph, out);
  postpone_dense(q, out.late);
  eliminate_low_degrees(q, out.early);
  keep_rest(q, out);
  return out;
}

std::vector<idx> CompressedGraph::expand(const std::vector<idx>& order) const {
  std::vector<idx> perm;
  perm.reserve(next_member.empty() ? early.size() + order.size() + late.size() : next_member.size());
  auto emit = [&](idx c) {
    if (next_member.empty()) perm.push_back(c);
    else
      for (idx v = first_member[c]; v >= 0; v = next_member[v]) perm.push_back(v);
  };
  for (idx c : early) emit(c);
  for (idx v : order) emit(class_of[v]);
  for (idx c : late) emit(c);
  return perm;
}

}  // namespace gs
