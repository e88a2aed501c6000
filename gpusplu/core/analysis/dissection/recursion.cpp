// George, SIAM J. Numer. Anal. 10 (1973); the children reuse the coarse levels of their parents for a few generations,
// which saves most of the coarsening (half of the time otherwise).
#include "analysis/dissection/recursion.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/dissection/coarsen.hpp"
#include "analysis/dissection/leaf.hpp"
#include "analysis/dissection/tasks.hpp"
#include "base/operation.hpp"

namespace gs::nd {
namespace {

constexpr idx kFork = 1000;       // one child of a component of this size may be ordered by another thread
constexpr idx kParallel = 4000;   // from this size on, both children are cut out at the same time
constexpr int kGenerations = 3;   // a hierarchy is coarsened again at every third depth
constexpr idx kDenseLeaf = 2048;  // largest component without a separator that minimum degree can order
constexpr int kDeepest = 100;     // unbalanced beyond reason

void order_by_degree(const Component& component, idx* order) {
  const Graph& g = component.hierarchy.level[0];
  std::vector<idx> local(g.n);
  std::iota(local.begin(), local.end(), 0);
  std::stable_sort(local.begin(), local.end(),
                   [&](idx a, idx b) { return g.ptr[a + 1] - g.ptr[a] < g.ptr[b + 1] - g.ptr[b]; });
  for (idx i = 0; i < g.n; i++) order[i] = component.vertex[local[i]];
}

void order_small(const Context& context, Workspace& ws, const Component& component) {
  order_leaf(ws, context.whole, component.vertex, component.hierarchy.level[0].n, context.order + component.first);
}

// Cuts a component in two and orders its separator. Returns false if there is none.
bool divide(const Context& context, Workspace& ws, Component& component, Component child[2]) {
  const Graph g = component.hierarchy.level[0];
  ArenaScope scope(ws.arena);
  ws.reserve(g.n);
  Random random(mix(component.seed));
  Partition part{ws.arena.get<signed char>(g.n)};
  coarsen(ws, component.hierarchy, coarse_target(g.n), random);
  find_separator(ws, component.hierarchy, context.coarse(), part, random);
  if (part.weight[0] == 0 || part.weight[1] == 0) return false;
  split(ws, component, part, (component.depth + 1) % kGenerations != 0, g.n >= kParallel, child);
  idx* separator = context.order + child[1].first + child[1].hierarchy.level[0].n;
  for (idx v = 0; v < g.n; v++)
    if (part.side[v] == 2) *separator++ = component.vertex[v];
  return true;
}

// Whether the component is at the top of this thread's memory. It is not if the thread cut out another component later,
// which another thread is ordering in place, and processes this one while it waits.
bool on_top(const Workspace& ws, const Component& component) {
  return component.owner == &ws.kept && component.end == ws.kept.mark();
}

// Moves the children down to the place of the component, if that was the top of this thread's memory. Returns the upper
// one.
int slide(Workspace& ws, const Component& component, bool was_on_top, Component child[2]) {
  const Arena::Mark a = child[0].mark, b = child[1].mark;
  const int upper = a.block < b.block || (a.block == b.block && a.top < b.top) ? 1 : 0;
  if (!was_on_top) return upper;
  ws.kept.release(component.mark);
  for (int which : {1 - upper, upper}) {
    child[which].mark = ws.kept.mark();
    child[which].move_to(ws.kept.get<std::byte>(child[which].bytes));
    child[which].end = ws.kept.mark();
  }
  return upper;
}

}  // namespace

void dissect(const Context& context, Workspace& ws, Component& component) {
  go_on();
  const idx n = component.hierarchy.level[0].n;
  if (n <= kLeaf) return order_small(context, ws, component);
  const bool can_slide = on_top(ws, component);
  ArenaScope kept(ws.kept);
  Component child[2];
  if (component.depth > kDeepest || !divide(context, ws, component, child)) {
    if (n <= kDenseLeaf) return order_small(context, ws, component);
    return order_by_degree(component, context.order + component.first);
  }
  const int upper = slide(ws, component, can_slide, child);
  Component &upper_child = child[upper], &later = child[1 - upper];
  Fork fork(n < kFork ? nullptr : ws.tasks, ws, later.hierarchy.level[0].n,
            [&](Workspace& other) { dissect(context, other, later); });
  dissect(context, ws, upper_child);
  ws.kept.release(upper_child.mark);
  fork.join(true);
}

}  // namespace gs::nd
