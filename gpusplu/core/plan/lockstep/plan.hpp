// The plan of engines that factor many systems of one pattern in lockstep, independent of values. A lane is a system;
// an entry of this plan stands for one number of every lane, contiguous in memory, so that all offsets count entries.
//
// Fronts are formed again from the analysis' ordering, because merging supernodes has other benefits where all lanes
// process a front together. They are numbered in postorder, own the plan positions first .. first + width - 1, and
// their rows below are plan positions, ascending. Row k below is local row place[k] of the parent; places ascend, so
// that the first `above_pivots` of them are pivots there. No front has more than MOST_LOCKSTEP_ROWS rows.
//
// The factor of a front begins at `factor`: lower, R x W by columns, entry (i, k) at k R + i, then, for LU, upper, W x
// H by rows, entry (k, j) at R W + k H + j for column W + j of the front. Lower holds the multipliers of L below the
// diagonal and U above it, for LU; L for Cholesky, where entries above the diagonal are never accessed. The diagonal
// holds reciprocals of pivots (Cholesky: of L's diagonal). Pivots are taken in the plan's order.
//
// Contribution blocks are H x H by columns (Cholesky: the lower triangle of that). Those that another task reads lie in
// an arena of shared_size entries, at places of their own; all others in memory of the task, task_size entries at most,
// at places that are used again as soon as the parent has added them. Blocks that are live at the same time never
// overlap.
//
// Entry k of A that a front has: canonical entry entry_source[k] times entry_scale[k] (empty: ones) goes to entry
// entry_target[k] of its factor, to which only children add further terms. Ascending entry_source in a front. Cholesky:
// the lower triangle of the plan's order, taken as it is.
//
// Tasks: a subtree of at most `grain` of modelled work is one, a front above those is a task of its own. Tasks are in
// the order of their fronts, so children before parents. Grain 0 stands for no cut: one task for all.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/raw_vector.hpp"
#include "shared/costs.hpp"
#include "shared/lockstep.hpp"

namespace gs::gpu {

struct LockstepParameters {
  SupernodeCosts merging{};  // of all lanes together; only ratios matter
  double grain = 0;          // largest work of a subtree that is one task
};

struct LockstepPlan {
  idx n = 0, nf = 0;
  off nnz = 0;  // of A
  bool cholesky = false;

  std::vector<idx> row_perm, col_perm;       // gather: B = (Dr A Dc)[row_perm][:, col_perm]
  std::vector<double> row_scale, col_scale;  // by A's rows and columns; empty: ones

  RawVector<LockstepFront> fronts;
  RawVector<idx> below;
  RawVector<std::uint16_t> place;
  std::vector<idx> child;
  RawVector<idx> entry_source;
  RawVector<std::uint32_t> entry_target;
  RawVector<double> entry_scale;
  std::vector<LockstepTask> tasks;

  off factor_size = 0, shared_size = 0, task_size = 0;
  idx tallest = 0;     // rows of a front, at most
  double flops = 0;    // of a factorization of one system, explicit zeros included [flop]
  double work = 0;     // of all fronts
  double seconds = 0;  // duration of making the plan
};

// Throws std::invalid_argument for an analysis by columns or of a structurally singular matrix, and std::length_error
// where fronts are too large.
LockstepPlan make_lockstep_plan(const Symbolic& symbolic, PatternView A, const LockstepParameters& parameters);

}  // namespace gs::gpu
