// Arguments of the kernels that factor batches, and the parts of a front for one lane.
#pragma once
#include "lockstep/register_tile.cuh"

struct LaneFactorArgs {
  const LockstepFront* fronts;
  const int* slot;  // of every front: where its tiles begin in item_ptr; of large tiles LANE_WARPS slots each
  const int* item_ptr;
  const int2* item;
  const double* item_scale;  // null: ones
  const LockstepTask* leaves;
  const int *team_fronts, *wide_fronts;  // those above the cut that teams factor, children first
  const FrontTile* tiles;                // of the others, as they can be computed
  const int* above;                      // of every front: its number among those above the cut
  const int* tile_begin;                 // by that number: where its large tiles begin in `flags`
  const unsigned* pending;               // by that number: arrivals of its children in `arrived`
  int leaf_count, team_count, wide_count, tile_count;
  int above_count;  // fronts above the cut; `arrived` has as many words a group, `flags` tile_count
  int n, groups;
  int nnz;
  long long factor_size, shared_size, task_size;
  const Scalar* values;
  Scalar *factor, *shared, *stacks;     // stacks: task_size entries of every warp that is launched
  unsigned *tickets, *arrived, *flags;  // zero before
  LaneReport* reports;
  double tiny, singular;
};

struct LaneFront {
  int W, H, R;
  Scalar *lower, *upper, *block;

  DEVICE LaneFront(const LaneFactorArgs& args, const LockstepFront& front, int group, Scalar* stack)
      : W(front.width), H(front.rows - front.width), R(front.rows) {
    lower = lane_entries(args.factor, group, args.factor_size) + front.factor * WARP_SIZE;
    upper = lower + (long long)R * W * WARP_SIZE;
    block = (front.block_shared ? lane_entries(args.shared, group, args.shared_size) : stack) + front.block * WARP_SIZE;
  }
  // Rows from i on of L, and columns from j on of U, as products need them.
  DEVICE Operand rows_of_l(int i) const { return {lower + i * WARP_SIZE, 1, R}; }
  DEVICE Operand columns_of_u(int j) const {
    if (CHOLESKY) return rows_of_l(j);
    if (j < W) return {lower + j * R * WARP_SIZE, R, 1};
    return {upper + (j - W) * WARP_SIZE, 1, H};
  }
};
