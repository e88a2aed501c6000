// Subtrees below the cut: a warp factors one of them for 32 systems, front after front, alone.
//
// Kernel: factor_leaves. Grid: any, no more than `stacks` has memory for; block: LANE_THREADS. Shared memory:
// LANE_WARPS * LEAF_TILE^2 * LANES scalars. A ticket is a subtree and a group, all groups of a subtree one after
// another. Nobody waits for anybody. A tile of a front is summed in shared memory, loses in registers what earlier pivots
// contribute, is finished, and is stored once; contribution blocks stay in the warp's stack but for that of the last
// front. Deterministic.
#include "lockstep/factor.cuh"

constexpr int S = LEAF_TILE;
using LeafTile = Scalar[S][S];

struct Leaf {
  const LaneFactorArgs& args;
  const LaneFront& front;
  const LanePivots& pivots;
  const Scalar *values, *stack;
  Scalar* scratch;  // a tile
  int slot;         // of the next tile

  // The next tile, rows from i on and columns from j on, less the products of the first `before` pivots.
  DEVICE void load(LeafTile& a, int i, int j, int m, int n, int before, LaneStatus& status) {
    const int begin = __ldg(args.item_ptr + slot), end = __ldg(args.item_ptr + slot + 1);
    slot++;
    if (begin < end) {
      assemble<S * S>({args.item_ptr, args.item, args.item_scale}, begin, end, values, stack, scratch, status);
      load_tile(a, scratch, S);
    } else {
#pragma unroll
      for (int k = 0; k < S * S; k++) a[k % S][k / S] = Scalar(0);
    }
    subtract_products(a, front.rows_of_l(i), front.columns_of_u(j), m, n, 0, before);
  }

  DEVICE void panel(int k, int n, int position, LaneStatus& status) {
    const int W = front.W, R = front.R;
    LeafTile d;
    load(d, k, k, n, n, k, status);
    eliminate_diagonal(d, n, position, pivots, status);
    store_tile(d, front.lower + (k + k * R) * LANES, R, n, n);
#pragma unroll 1
    for (int i = k + n, m; i < R; i += m) {
      m = min(S, (i < W ? W : R) - i);
      LeafTile a;
      load(a, i, k, m, n, k, status);
      eliminate_below(a, d, m, n, status);
      store_tile(a, front.lower + (i + k * R) * LANES, R, m, n);
    }
    if constexpr (!CHOLESKY)
#pragma unroll 1
      for (int j = k + n, m; j < R; j += m) {
        m = min(S, (j < W ? W : R) - j);
        LeafTile a;
        load(a, k, j, n, m, k, status);
        eliminate_right(a, d, n, m, status);
        store_columns(a, k, j, n, m);
      }
  }
  // Rows k .. k + m - 1 of U from column j on.
  DEVICE void store_columns(const LeafTile& a, int k, int j, int m, int n) {
    const Operand to = front.columns_of_u(j);
    Scalar* u = (Scalar*)to.from;
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
      for (int c = 0; c < S; c++)
        if (i < m && c < n) u[(c * to.step + (k + i) * to.pivot) * LANES] = a[i][c];
  }
  DEVICE void block(LaneStatus& status) {
    const int W = front.W, H = front.H;
#pragma unroll 1
    for (int j = 0; j < H; j += S)
#pragma unroll 1
      for (int i = CHOLESKY ? j : 0; i < H; i += S) {
        const int m = min(S, H - i), n = min(S, H - j);
        LeafTile a;
        load(a, W + i, W + j, m, n, W, status);
        store_tile(a, front.block + (i + j * H) * LANES, H, m, n);
      }
  }
  DEVICE void run(int position, LaneStatus& status) {
#pragma unroll 1
    for (int k = 0; k < front.W; k += S) panel(k, min(S, front.W - k), position + k, status);
    block(status);
  }
};

GPUSPLU_KERNEL(factor_leaves, LaneFactorArgs, LANE_THREADS, sizeof(Scalar) == 16 ? 1 : 2) {
  Scalar* scratch = (Scalar*)shared_memory + warp_of() * S * S * LANES + lane_of();
  Scalar* stack = lane_entries(args.stacks, blockIdx.x * LANE_WARPS + warp_of(), args.task_size);
  const LanePivots pivots(args.n, args.tiny, args.singular);
  for (;;) {
    int ticket = 0;
    if (lane_of() == 0) ticket = (int)atomicAdd(args.tickets, 1u);
    ticket = shuffle(ticket, 0);
    if (ticket >= args.leaf_count * args.groups) break;
    const int group = ticket % args.groups;
    const LockstepTask* task = args.leaves + ticket / args.groups;
    const Scalar* values = lane_entries(args.values, group, args.nnz);
    LaneStatus status;
    for (int f = task->first; f <= task->last; f++) {
      const LockstepFront record = args.fronts[f];
      const LaneFront front(args, record, group, stack);
      Leaf{args, front, pivots, values, stack, scratch, __ldg(args.slot + f)}.run(record.first, status);
    }
    status.publish(args.reports + group * LANES + lane_of());
    const int parent = args.fronts[task->last].parent;
    __syncwarp();
    if (lane_of() == 0 && parent >= 0) add_acquire_release(args.arrived + group * args.above_count + args.above[parent], 1u);
  }
}
