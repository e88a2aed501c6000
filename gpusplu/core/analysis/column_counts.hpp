// Column counts of the Cholesky factor without forming it, and the cost of an ordering.
#pragma once
#include <optional>
#include <vector>

#include "base/types.hpp"

namespace gs {

// Entries of each column of the factor of graph[perm][:, perm], diagonal included. `perm` is a postorder of `parent`,
// its elimination tree.
// Source: Gilbert, Ng, Peyton, SIAM J. Matrix Anal. Appl. 15 (1994), figure 3. Cost: nearly linear in the edges.
std::vector<idx> column_counts(PatternView graph, const idx* perm, const idx* inverse_perm,
                               const std::vector<idx>& parent);

// Size of a Cholesky factor.
struct FactorSize {
  off lnz = 0;       // entries, diagonal included
  double flops = 0;  // the sum of squared column counts [flop]

  void add(idx first_count, idx columns) {  // of columns that become shorter by an entry each
    for (idx k = 0; k < columns; k++) {
      const idx count = first_count - k;
      lnz += count;
      flops += (double)count * count;
    }
  }
};

struct OrderingCost {
  off lnz = 0;       // entries of L, diagonal included
  double flops = 0;  // of a Cholesky factorization: the sum of squared column counts [flop]
  idx levels = 0;    // height of the elimination tree
  idx roots = 0;     // of it: connected components of the graph
};

// An ordering with its elimination tree and counts: sufficient for a choice among orderings and for the supernodal
// structure.
struct OrderedTree {
  std::vector<idx> perm;  // a postorder of the tree: equivalent to the ordering it was made from
  std::vector<idx> parent;
  std::vector<idx> col_count;  // empty: not counted yet
  OrderingCost cost;
};
// `perm` need not be a postorder. If `size` is given, columns are not counted.
OrderedTree ordered_tree(PatternView graph, const std::vector<idx>& perm, const std::optional<FactorSize>& size = {});
// Counts the columns if that has been left out.
void count_columns(PatternView graph, OrderedTree& tree);

}  // namespace gs
