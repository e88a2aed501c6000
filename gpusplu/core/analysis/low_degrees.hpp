// First steps of minimum degree that need no quotient graph: dense rows, and vertices with at most two neighbours,
// which are most vertices of circuits and power grids.
#pragma once
#include <array>
#include <vector>

#include "analysis/column_counts.hpp"

namespace gs {

struct LowDegrees {
  std::vector<idx> early;                 // vertices that are eliminated, in that order
  std::vector<std::array<idx, 2>> above;  // neighbours of each when it is, dense ones left out; -1: none
  std::vector<idx> dense;                 // those that are better ordered last
  std::vector<idx> rest;                  // all others: vertex k of `graph` is rest[k]
  Pattern graph;    // of these, with the edges that eliminating the early ones leaves; in no order
  FactorSize size;  // columns of the early ones
};

// Whether these steps are worth a copy of the graph (many such vertices) or are required (dense rows).
bool has_low_degrees(PatternView graph);

// Leaves out dense rows and the diagonal and eliminates vertices where there are many of low degree: those with no
// neighbour or one first, again and again, as they cause no fill; then those with two in rounds, in which no two have a
// common neighbour, so that trees stay low. Each is replaced by an edge between its neighbours. Minimum degree would
// take them in some such order too. Cost: O(nnz), and the searches for such vertices in the lists of their neighbours.
LowDegrees eliminate_low_degrees(PatternView graph);

}  // namespace gs
