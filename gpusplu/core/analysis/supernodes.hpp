// Columns that are factored together: fundamental supernodes, and their relaxed amalgamation.
#pragma once
#include <cmath>
#include <vector>

#include "base/types.hpp"
#include "shared/costs.hpp"

namespace gs {

// The merging rule.
struct Relaxation {
  SupernodeCosts costs;                            // of one core of the CPU engine
  double flop_rate = std::round(1 / costs.flops);  // [flop/s]
  double bandwidth = std::round(1 / costs.bytes);  // [byte/s]
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
