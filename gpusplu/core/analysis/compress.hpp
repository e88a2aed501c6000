// Reduction of a symmetric graph before it is ordered.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// The order of the whole graph is: `early`, then the reduced graph's vertices in any order, then `late`; each of them
// stands for its class of twins.
struct CompressedGraph {
  std::vector<off> ptr;  // the reduced graph: symmetric, no diagonal
  std::vector<idx> ind;
  std::vector<idx> weight;                     // of its vertices: members of the class
  std::vector<idx> class_of;                   // of its vertices
  std::vector<idx> early, late;                // classes
  std::vector<idx> first_member, next_member;  // lists of the classes' members, -1 at the end; empty: class c is {c}

  idx n() const { return (idx)weight.size(); }
  std::vector<idx> expand(const std::vector<idx>& order) const;  // order of the reduced graph -> gather permutation
};

// 1. Twins, vertices with equal closed neighbourhoods, become one (Ashcraft, SIAM J. Sci. Comput. 16 (1995)): finite
//    elements with several unknowns a node shrink by that factor. Not done when it saves less than a tenth.
// 2. Vertices of degree above max(16, 10 sqrt(n)) go last, unless there are many (the rule of AMD: Amestoy, Davis,
//    Duff, ACM TOMS 30 (2004)).
// 3. Vertices of degree <= 2 are eliminated first, in rounds of independent vertices, so that chains of branches give
//    shallow elimination trees. No fill but one edge in place of two.
// A diagonal is tolerated. Cost: O(nnz), the scans of rows in 3 are limited to 1000 entries.
CompressedGraph compress(PatternView graph);

}  // namespace gs
