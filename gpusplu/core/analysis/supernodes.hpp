// Which columns are factored together: fundamental supernodes, and their relaxed amalgamation.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// Constants of the merging rule; times are of one core of the CPU engine. The optimum is flat: half or twice any of
// them moves the refactorization of seven circuit and FEM matrices by 0 to 4% in geometric mean.
struct Relaxation {
  double front_seconds = 0.1e-6;    // what a front costs however small it is
  double column_seconds = 0.02e-6;  // what a pivot costs besides its arithmetic
  double flop_rate = 4e9;           // of small fronts [flop/s]
  double bandwidth = 8e9;           // of assembling fronts [byte/s]
  // A merged supernode of up to columns[k] columns may hold a fraction zero_fraction[k] of explicit zeros in L;
  // wider ones the last fraction. (The bounds of CHOLMOD: Chen, Davis, Hager, Rajamanickam, ACM TOMS 35 (2008), 3.4.)
  idx columns[3] = {4, 16, 48};
  double zero_fraction[4] = {1.0, 0.8, 0.1, 0.05};
};

// Flops of the partial factorization of a front of `width` columns and `height` rows below them [flop].
double front_flops(double width, double height, bool cholesky);

// Supernodes of columns that are renumbered by `column_order` (gather): supernode s owns the new columns
// super_ptr[s] .. super_ptr[s+1]-1, supernodes are postordered, and super_parent is their tree.
struct SupernodePartition {
  std::vector<idx> column_order, super_ptr, super_parent;
};

// First columns of the fundamental supernodes, and n: column j+1 continues the supernode of column j when j is its only
// child and both have the same structure. Source: Liu, Ng, Peyton, SIAM J. Matrix Anal. Appl. 14 (1993).
std::vector<idx> fundamental_supernodes(const std::vector<idx>& parent, const std::vector<idx>& col_count);

// Merges supernodes into their parents, bottom-up, while the modelled time of the two fronts falls and the explicit
// zeros stay bounded: any child may merge, and the columns are renumbered so that supernodes stay contiguous. Siblings
// are visited in the order that keeps the stack of contribution blocks lowest (Liu, ACM TOMS 12 (1986), theorem 3.2).
// Columns come in a postorder of `parent`. Cost: O(n log n) at worst, for sorting siblings.
SupernodePartition relaxed_supernodes(const std::vector<idx>& parent, const std::vector<idx>& col_count, bool cholesky,
                                      const Relaxation& relaxation);

}  // namespace gs
