// Maximum product matching with row and column scaling.
#pragma once
#include <optional>
#include <vector>

#include "base/types.hpp"

namespace gs {

struct Matching {
  idx structural_rank = 0;
  std::vector<idx> row_of_col;               // row matched to column j, -1 if none
  std::vector<double> row_scale, col_scale;  // powers of two
};

// Permutation that maximizes the product of the moduli of the matched entries, and the scaling that comes with it:
// matched entries get a modulus in [0.5, 2] (on matrices that are hard to match, [0.25, 2]: a product that is merely
// large), all others at most 2. Stored zeros do not count as entries. Structurally singular: a matching of maximum
// cardinality, and no scaling (all ones). Deterministic.
// Cost: O(nnz) if the diagonal is the answer, O(n nnz log n) in the worst case.
template <class T> Matching max_product_matching(PatternView A, const T* values);

// ---- Symmetric matrices before they are ordered for LDL^T: scales that are the same for rows and columns, and pairs

// Of a symmetric or Hermitian matrix.
struct SymmetricMatching {
  idx structural_rank = 0;
  std::vector<double> scale;  // powers of two
  std::vector<idx> partner;   // of each column, itself where it has none; empty: none has one
};

// Where the diagonal is good enough to be pivots, its scales, which make it about 1, and no pairs. Else those of the
// maximum product matching: geometric means of the scales of rows and columns, and its cycles cut into pairs, with a
// column left over in those of odd length (Duff & Pralet, Strategies for scaling and pivoting for sparse symmetric
// indefinite problems, SIAM J. Matrix Anal. Appl. 27 (2005), sections 2 and 3). Columns with a good diagonal are not
// paired with each other. Cost: that of the matching, which is left in `found` where it was made.
template <class T>
SymmetricMatching match_symmetric(PatternView A, const T* values, std::optional<Matching>* found = nullptr);

// The graph with pairs and single columns as vertices, in the order of their first columns.
struct PairedGraph {
  std::vector<idx> first;  // column of each vertex
  Pattern graph;
};
PairedGraph merge_pairs(PatternView graph, const std::vector<idx>& partner);

// The graph of the columns again, where both columns of a pair have the neighbours of either, so that pairs that are
// ordered one after the other are in one supernode.
Pattern split_pairs(const PairedGraph& paired, const std::vector<idx>& partner);
// The same of an order of its vertices, gather.
std::vector<idx> split_order(const PairedGraph& paired, const std::vector<idx>& partner, const std::vector<idx>& order);

}  // namespace gs
