// Computes the structure of a multifrontal factorization from a graph and an ordering.
#pragma once
#include <vector>

#include "analysis/column_counts.hpp"
#include "analysis/supernodes.hpp"
#include "analysis/symbolic.hpp"

namespace gs {

// Fills the symmetrized structure of `out` (parent .. rel_ind, lnz, flops, levels, critical_path) for the graph in the
// order `perm` (or as `tree`), for a Cholesky factorization when out.cholesky is set. Returns the gather permutation of
// the graph's vertices that all of it refers to: `perm` reordered, at equal fill, so that supernodes are contiguous and
// postordered.
//
// The rows of a supernode are found row by row (row i of the factor is the subtree below i that its entries reach), so
// they come out ascending without sorting. Source: Liu, SIAM J. Matrix Anal. Appl. 11 (1990), section 5, on supernodes.
// Cost: O(edges + row_ind) and small constants; the last two steps on the threads of the pool.
std::vector<idx> supernodal_structure(PatternView graph, OrderedTree tree, const Relaxation& relaxation, Symbolic& out);
std::vector<idx> supernodal_structure(PatternView graph, std::vector<idx> perm, const Relaxation& relaxation,
                                      Symbolic& out);

// Fills rel_ind.
void find_relative_indices(Symbolic& out);

// Fills lnz, flops, levels and critical_path, for the eliminated columns.
void measure_structure(Symbolic& out);

// The analysis of a dense matrix for fronts: one, of all columns in their order. n > 0.
Symbolic one_supernode(idx n);

// The analysis with the columns `columns`, in A's numbering, eliminated after those of the parent of their front,
// together with the columns that they may need for pivots; those of roots stay. Other solvers delay pivots while they
// factor; here delays are part of the analysis, which the next values reuse. Cost: that of a structure, without an
// ordering.
Symbolic delay_columns(const Symbolic& symbolic, const std::vector<idx>& columns);

}  // namespace gs
