// Vertex separators of one graph: growing them and refining them.
#pragma once
#include "analysis/dissection/graph.hpp"

namespace gs::nd {

inline constexpr int kTrials = 2;     // initial partitions of the coarsest graph
inline constexpr int kPasses = 8;     // of refinement at most
inline constexpr idx kPatience = 20;  // moves without a gain that end a pass; 40 took 12 % longer for 0.4 % less fill

// Vertices on side 0 and 1, and 2: in the separator.
struct Partition {
  signed char* side;
  off weight[3] = {0, 0, 0};  // of the sides and the separator
  off cut = 0;                // while it is an edge bisection: weight of the edges between the sides
};

// Number of moves without a gain that end a pass, for a boundary of `size` vertices.
inline idx patience(idx size) { return kPatience + size / 16 < 2 * size + 15 ? kPatience + size / 16 : 2 * size + 15; }

// Fiduccia-Mattheyses refinement of a vertex separator. ws.boundary: a superset of it, on entry and on exit.
void refine_separator(Workspace& ws, const Graph& g, Partition& part);

// The best of kTrials separators, each grown from a random vertex and refined. For small graphs.
void grow_separator(Workspace& ws, const Graph& g, Partition& part, Random& random);

// The best partition met so far. Its memory lies in the arena.
class BestPartition {
 public:
  BestPartition(Workspace& ws, idx n) : n_(n), side_(ws.arena.get<signed char>(n)) {}
  void offer(const Workspace& ws, const Partition& part, double cost);
  void restore(Workspace& ws, Partition& part) const;

 private:
  idx n_;
  signed char* side_;
  Partition rest_{};
  std::vector<idx> boundary_;
  double cost_ = 1e300;
};

// The best of kTrials partitions, each made by grow(), which returns its cost.
template <class Grow> void best_of_trials(Workspace& ws, const Graph& g, Partition& part, Grow&& grow) {
  ArenaScope scope(ws.arena);
  BestPartition best(ws, g.n);
  for (int trial = 0; trial < kTrials; trial++) {
    const double cost = grow();
    best.offer(ws, part, cost);
  }
  best.restore(ws, part);
}

}  // namespace gs::nd
