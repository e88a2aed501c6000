// The multilevel scheme: Hendrickson, Leland, Supercomputing 1995; Karypis, Kumar, SIAM J. Sci. Comput. 20 (1998).
// Large graphs take the best of several V-cycles from a coarse graph of a sixth of their size or less, which costs less
// than repeating the whole and beats many trials at the bottom (by 10-24 % fill).
#include "analysis/dissection/separator.hpp"

#include <algorithm>
#include <cstring>

#include "analysis/dissection/coarsen.hpp"
#include "analysis/dissection/edge.hpp"
#include "analysis/dissection/tasks.hpp"
#include "base/operation.hpp"

namespace gs::nd {
namespace {

constexpr idx kSingleCycle = 2000;  // up to this size one V-cycle is enough
constexpr idx kCycleSize = 3000;    // V-cycles begin at this size at most, or at a hundredth of a larger graph

constexpr idx kProjectedRange = 50000;  // vertices that are worth a task of projection
constexpr int kMostProjected = 16;

int cycles(idx n) { return n <= kSingleCycle ? 1 : n / 100 > kCycleSize ? 5 : 2; }

Partition allocate(Workspace& ws, idx n) { return {ws.arena.get<signed char>(n)}; }

// Carries the coarse partition to the finer graph and its boundary along.
void project(Workspace& ws, const Graph& fine, const idx* cluster, idx coarse_n, Coarse coarse, const Partition& from,
             Partition& to) {
  std::copy(from.weight, from.weight + 3, to.weight);
  to.cut = from.cut;
  ArenaScope scope(ws.arena);
  char* at_cut = nullptr;
  if (coarse == Coarse::cuts) {
    at_cut = ws.arena.get<char>(coarse_n);
    std::memset(at_cut, 0, coarse_n);
    for (idx v : ws.boundary) at_cut[v] = 1;
  }
  ws.boundary.clear();
  const int n_parts = std::clamp(fine.n / kProjectedRange, 1, kMostProjected);
  std::vector<std::vector<idx>> boundary(n_parts);
  for_each(ws, n_parts, n_parts > 1, [&](int i, Workspace&) {
    std::vector<idx>& own = n_parts > 1 ? boundary[i] : ws.boundary;
    const idx end = (idx)((off)fine.n * (i + 1) / n_parts);
    for (idx v = (idx)((off)fine.n * i / n_parts); v < end; v++) {
      const idx c = cluster[v];
      to.side[v] = from.side[c];
      if (at_cut ? at_cut[c] != 0 : from.side[c] == 2) own.push_back(v);
    }
  });
  for (const std::vector<idx>& part : boundary) ws.boundary.insert(ws.boundary.end(), part.begin(), part.end());
}

void partition_coarsest(Workspace& ws, const Graph& g, Coarse coarse, Partition& part, Random& random) {
  if (coarse == Coarse::cuts) grow_cut(ws, g, part, random);
  else grow_separator(ws, g, part, random);
}

// Partitions level[0] from a partition `part` of the last level, upwards.
void uncoarsen(Workspace& ws, const Hierarchy& hierarchy, Coarse coarse, Partition coarsest, Partition& part) {
  ArenaScope scope(ws.arena);
  Partition from = coarsest;
  for (std::size_t l = hierarchy.level.size() - 1; l-- > 0;) {
    go_on();
    const Graph& fine = hierarchy.level[l];
    Partition to = l > 0 ? allocate(ws, fine.n) : part;
    project(ws, fine, hierarchy.cluster[l], hierarchy.level[l + 1].n, coarse, from, to);
    if (coarse == Coarse::cuts) refine_cut(ws, fine, to);
    else refine_separator(ws, fine, to);
    from = to;
  }
  part = from;
}

struct Trial {
  std::uint64_t seed = 0;
  Partition part{};
  std::vector<idx> boundary;
};

// One V-cycle on g.
void v_cycle(Workspace& ws, const Graph& g, Coarse coarse, Partition& part, Random& random) {
  ArenaScope scope(ws.arena);
  Hierarchy hierarchy{{g}, {}};
  coarsen(ws, hierarchy, kCoarsest, random);
  Partition coarsest = hierarchy.level.size() > 1 ? allocate(ws, hierarchy.level.back().n) : part;
  partition_coarsest(ws, hierarchy.level.back(), coarse, coarsest, random);
  uncoarsen(ws, hierarchy, coarse, coarsest, part);
}

}  // namespace

idx coarse_target(idx n) {
  if (n <= kSingleCycle) return kCoarsest;
  return std::max({kCoarsest, std::min(kCycleSize, n / 6), n / 100});
}

void find_separator(Workspace& ws, const Hierarchy& hierarchy, Coarse coarse, Partition& part, Random& random) {
  ArenaScope scope(ws.arena);
  const Graph &g = hierarchy.level[0], &last = hierarchy.level.back();
  Partition coarsest = hierarchy.level.size() > 1 ? allocate(ws, last.n) : part;
  if (cycles(g.n) == 1) {
    partition_coarsest(ws, last, coarse, coarsest, random);
  } else {
    std::vector<Trial> trials(cycles(g.n));
    for (Trial& trial : trials) trial.part = allocate(ws, last.n), trial.seed = random.next();
    for_each(ws, (int)trials.size(), true, [&](int i, Workspace& own) {
      own.reserve(last.n);
      Random its(trials[i].seed);
      v_cycle(own, last, coarse, trials[i].part, its);
      trials[i].boundary = own.boundary;
    });
    BestPartition best(ws, last.n);
    for (Trial& trial : trials) {
      ws.boundary.swap(trial.boundary);
      best.offer(ws, trial.part, (double)(coarse == Coarse::cuts ? trial.part.cut : trial.part.weight[2]));
    }
    best.restore(ws, coarsest);
  }
  uncoarsen(ws, hierarchy, coarse, coarsest, part);
  if (coarse == Coarse::cuts) {
    cut_to_separator(ws, g, part);
    refine_separator(ws, g, part);
  }
}

}  // namespace gs::nd
