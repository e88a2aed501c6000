// Elimination graph as bit rows; George, Liu, SIAM Review 31 (1989): external degree, mass elimination. Halo:
// Pellegrini, Roman, Amestoy, Concurrency 12 (2000).
#include "analysis/dissection/leaf.hpp"

#include <algorithm>
#include <bit>

namespace gs::nd {
namespace {

constexpr idx kEliminated = INT32_MAX;

struct BitRows {
  idx n, words;  // rows; words of a row: columns are the n vertices, then the halo
  std::uint64_t* bits;
  std::uint64_t* row(idx v) const { return bits + (std::size_t)v * words; }
  idx count(idx v) const {
    idx total = 0;
    for (idx w = 0; w < words; w++) total += std::popcount(row(v)[w]);
    return total;
  }
  static void set(std::uint64_t* row, idx u) { row[u >> 6] |= std::uint64_t(1) << (u & 63); }
  static void reset(std::uint64_t* row, idx u) { row[u >> 6] &= ~(std::uint64_t(1) << (u & 63)); }
  // Calls f for the vertices of a row, not for its halo; f may change the row at the vertex it was called for.
  template <class F> void each(const std::uint64_t* row, F&& f) const {
    for (idx w = 0; w < (n + 63) >> 6; w++) {
      std::uint64_t rest = row[w];
      if (n - 64 * w < 64) rest &= (std::uint64_t(1) << (n - 64 * w)) - 1;
      for (; rest; rest &= rest - 1) f(64 * w + std::countr_zero(rest));
    }
  }
};

BitRows load(Workspace& ws, const Graph& whole, const idx* vertex, idx n) {
  ws.place.reserve(whole.n);
  idx* place = ws.place.data();  // columns plus one
  const idx halo_limit = std::max<idx>(64, 2 * n);
  idx columns = n;
  ws.list.clear();
  for (idx i = 0; i < n; i++) place[vertex[i]] = i + 1;
  for (idx i = 0; i < n; i++) {
    for (off p = whole.ptr[vertex[i]]; p < whole.ptr[vertex[i] + 1]; p++) {
      const idx u = whole.adj[p];
      if (place[u] != 0 || columns - n == halo_limit) continue;
      place[u] = ++columns;
      ws.list.push_back(u);
    }
  }
  const idx words = (columns + 63) >> 6;
  ws.bit_rows.assign((std::size_t)n * words, 0);
  const BitRows rows{n, words, ws.bit_rows.data()};
  for (idx i = 0; i < n; i++)
    for (off p = whole.ptr[vertex[i]]; p < whole.ptr[vertex[i] + 1]; p++)
      if (const idx column = place[whole.adj[p]]) BitRows::set(rows.row(i), column - 1);
  for (idx i = 0; i < n; i++) place[vertex[i]] = 0;
  for (idx u : ws.list) place[u] = 0;
  return rows;
}

// Eliminates v: its neighbours become a clique. ws.list: those that are indistinguishable from v.
void eliminate(Workspace& ws, const BitRows& rows, idx v) {
  const idx degree = ws.degree[v];
  const std::uint64_t* pivot = rows.row(v);
  ws.degree[v] = kEliminated;
  ws.list.clear();
  rows.each(pivot, [&](idx u) {
    std::uint64_t* row = rows.row(u);
    for (idx w = 0; w < rows.words; w++) row[w] |= pivot[w];
    BitRows::reset(row, v), BitRows::reset(row, u);
    ws.degree[u] = rows.count(u);
    if (ws.degree[u] == degree - 1) ws.list.push_back(u);
  });
}

// Eliminates ws.list, all neighbours of v, with it.
void eliminate_twins(Workspace& ws, const BitRows& rows, idx v) {
  for (idx u : ws.list) {
    ws.degree[u] = kEliminated;
    BitRows::reset(rows.row(v), u);
  }
  rows.each(rows.row(v), [&](idx y) {
    for (idx u : ws.list) BitRows::reset(rows.row(y), u);
    ws.degree[y] -= (idx)ws.list.size();
  });
}

}  // namespace

void order_leaf(Workspace& ws, const Graph& whole, const idx* vertex, idx n, idx* order) {
  const BitRows rows = load(ws, whole, vertex, n);
  ws.degree.resize(n);
  for (idx i = 0; i < n; i++) ws.degree[i] = rows.count(i);
  for (idx done = 0; done < n;) {
    const idx v = (idx)(std::min_element(ws.degree.begin(), ws.degree.end()) - ws.degree.begin());
    order[done++] = vertex[v];
    eliminate(ws, rows, v);
    if (ws.list.empty()) continue;
    for (idx u : ws.list) order[done++] = vertex[u];
    eliminate_twins(ws, rows, v);
  }
}

}  // namespace gs::nd
