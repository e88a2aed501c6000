// George, SIAM J. Numer. Anal. 10 (1973); the children reuse the coarse levels of their parents for a few generations,
// which saves most of the coarsening (half of the time otherwise).
#include "analysis/nd_recursion.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/nd_coarsen.hpp"
#include "analysis/nd_leaf.hpp"

namespace gs::nd {
namespace {

constexpr idx kDefer = 8000;      // children of pieces of this size may be ordered by another thread
constexpr int kGenerations = 3;   // a hierarchy is coarsened anew at every third depth
constexpr idx kDenseLeaf = 2048;  // pieces without a separator, up to which minimum degree is affordable
constexpr int kDeepest = 100;     // unbalanced beyond reason

void order_by_degree(const Piece& piece, idx* order) {
  const Graph& g = piece.hierarchy.level[0];
  std::vector<idx> local(g.n);
  std::iota(local.begin(), local.end(), 0);
  std::stable_sort(local.begin(), local.end(),
                   [&](idx a, idx b) { return g.ptr[a + 1] - g.ptr[a] < g.ptr[b + 1] - g.ptr[b]; });
  for (idx i = 0; i < g.n; i++) order[i] = piece.vertex[local[i]];
}

}  // namespace

void Recursion::dissect(Piece& piece) {
  const Graph g = piece.hierarchy.level[0];
  idx* order = context.order + piece.first;
  if (g.n <= kLeaf) return order_leaf(ws, context.whole, piece.vertex, g.n, place.data(), order);
  if (piece.depth > kDeepest) return order_by_degree(piece, order);

  ArenaScope scope(ws.arena);
  ws.reserve(g.n);
  Random random(mix(piece.seed));
  Partition part;
  part.side = ws.arena.get<signed char>(g.n);
  part.beside = reinterpret_cast<idx(*)[2]>(ws.arena.get<idx>(2 * (std::size_t)g.n));
  coarsen(ws, piece.hierarchy, coarse_target(g.n), random);
  find_separator(ws, piece.hierarchy, context.coarse(), part, random);
  signed char* end = part.side + g.n;
  if (std::find(part.side, end, 0) == end || std::find(part.side, end, 1) == end) {  // nearly complete
    if (g.n <= kDenseLeaf) return order_leaf(ws, context.whole, piece.vertex, g.n, place.data(), order);
    return order_by_degree(piece, order);
  }

  const bool deferred = context.defer && g.n >= kDefer;
  Piece child[2];
  split(ws, piece, part, (piece.depth + 1) % kGenerations != 0, deferred, child);
  idx* separator = context.order + child[1].first + child[1].hierarchy.level[0].n;
  for (idx v = 0; v < g.n; v++)
    if (part.side[v] == 2) *separator++ = piece.vertex[v];
  for (Piece& c : child) {
    if (deferred) context.defer(std::move(c));
    else dissect(c);
  }
}

}  // namespace gs::nd
