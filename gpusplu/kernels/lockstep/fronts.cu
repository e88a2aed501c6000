// Fronts of few rows: a warp factors a subtree below the cut for 32 systems, front after front, by itself; above the
// cut a team of warps factors a front, panel by panel, each warp some of its tiles.
//
// Kernels: factor_leaves, factor_fronts, and factor_wide_fronts with larger teams. Grid: of factor_leaves any, no more
// than `stacks` has memory for; of the others no more than is resident. Block: LANE_THREADS, of factor_fronts
// TEAM_THREADS. Shared memory: for each warp, and once more for each warp of factor_leaves or for the team, LEAF_TILE^2
// * WARP_SIZE scalars; of teams also STAGED_ITEMS * WARP_SIZE scalars a warp and 16 bytes. A ticket is a task and a
// group, all groups of a task one after another, and waits for earlier tickets only. A tile is summed in shared memory,
// subtracts in registers the products with pivots to the left, is finished and is stored once. Deterministic, with any
// team.
#include "lockstep/factor.cuh"

namespace {

constexpr int S = LEAF_TILE;
using LeafTile = Scalar[S][S];

// Pointers of items, 31 tiles at a time.
struct Slots {
  const int* ptr;
  int first = -WARP_SIZE, mine = 0;
  DEVICE void find(int slot, int& begin, int& end) {
    if (slot < first || slot > first + WARP_SIZE - 2) first = slot, mine = __ldg(ptr + slot + lane_of());
    begin = shuffle(mine, slot - first), end = shuffle(mine, slot - first + 1);
  }
};

// Sums of tiles of a single warp.
struct SumSingle {
  const Items& items;
  const Scalar *values, *blocks;
  Scalar *scratch, *stage;
  Slots slots;

  DEVICE void begin(int slot, int end) {}
  DEVICE void sum(int slot, int, int, LaneStatus& status) {
    int begin, end;
    slots.find(slot, begin, end);
    assemble<S * S, false>(items, begin, end, {}, values, blocks, scratch, status);
  }
};

// Sums of tiles of a warp of a team, every `step`-th slot: entries of the next tile are on their way to shared memory
// while the warp works on this one, and the entries of the tile after that are already determined.
struct SumAhead {
  const Items& items;
  const Scalar *values, *blocks;
  Scalar *scratch, *stage;
  Slots slots;
  int staged_end = 0, staged = 0, next_begin = 0, next_end = 0;  // items
  ItemsInLanes lanes, next;

  DEVICE void prefetch(int slot, int last) {
    next_begin = next_end = 0;
    if (slot >= last) return;
    slots.find(slot, next_begin, next_end);
    if (next_begin < next_end) next.load(items, next_begin, next_end);
  }
  DEVICE void copy() {
    const int some = min(STAGED_ITEMS, staged_end - staged);
    for (int k = 0; k < some; k++)
      copy_async<sizeof(Scalar)>(stage + k * WARP_SIZE, lanes.at(k, values, blocks), sizeof(Scalar));
    copy_commit();
  }
  DEVICE void advance() {
    staged = next_begin, staged_end = next_end, lanes = next;
    copy();
  }
  DEVICE void begin(int slot, int last) {
    prefetch(slot, last);
    advance();
  }
  // The tile of `slot`, which is staged; `ahead`: the next one of this warp.
  DEVICE void sum(int slot, int ahead, int last, LaneStatus& status) {
    prefetch(ahead, last);
    clear_tile<S * S>(scratch);
    RunningSum sum{scratch};
    for (;;) {
      copy_wait<0>();
      const int some = min(STAGED_ITEMS, staged_end - staged);
      for (int k = 0; k < some; k++) sum.add(items, lanes, k, stage[k * WARP_SIZE], status);
      staged += STAGED_ITEMS;
      if (staged >= staged_end) break;
      lanes.load(items, staged, staged_end);
      copy();
    }
    sum.put();
    advance();
  }
};

template <class Member, class Sums> struct SmallFront {
  const Member team;
  const LaneFront& front;
  Scalar *scratch, *diagonal;  // a tile of this warp, and one of the team
  int slot, last;              // of the front's tiles
  Sums sums;

  DEVICE bool is_mine(int number) const { return number % team.size == team.rank; }
  // Tile `number`, rows from i on and columns from j on, less the products of the first `before` pivots.
  DEVICE void load(LeafTile& a, int number, int i, int j, int m, int n, int before, LaneStatus& status) {
    sums.sum(slot + number, slot + number + team.size, last, status);
    load_tile(a, scratch, S);
    subtract_products(a, front.rows_of_l(i), front.columns_of_u(j), m, n, 0, before);
  }
  // First row of the t-th tile after pivot k + n - 1.
  DEVICE int row_of(int t, int first) const {
    const int inside = (front.W - first + S - 1) / S;
    return t < inside ? first + t * S : front.W + (t - inside) * S;
  }
  DEVICE int size_from(int i) const { return min(S, (i < front.W ? front.W : front.R) - i); }

  // Pivots k .. k + n - 1; `number`: of the diagonal tile. Returns the number of the tile after the panel.
  DEVICE int panel(int k, int n, int position, int number, const LanePivots& pivots, LaneStatus& status) {
    const int R = front.R, row_tiles = (front.W - k - n + S - 1) / S + (front.H + S - 1) / S,
              end = number + 1 + (CHOLESKY ? row_tiles : 2 * row_tiles);
    if (is_mine(number)) {
      LeafTile d;
      load(d, number, k, k, n, n, k, status);
      eliminate_diagonal(d, n, position, pivots, status);
      store_tile(d, front.lower + (k + k * R) * WARP_SIZE, R, n, n);
      store_tile(d, diagonal, S, S, S);
    }
    team.sync();
#pragma unroll 1
    for (int t = first_from(team, number + 1); t < end; t += team.size) {
      LeafTile a, d;
      const bool below = t - number <= row_tiles;
      const int i = row_of(t - number - (below ? 1 : 1 + row_tiles), k + n), m = size_from(i);
      if (below) {
        load(a, t, i, k, m, n, k, status);
        load_tile(d, diagonal, S);
        eliminate_below(a, d, m, n, status);
        store_tile(a, front.lower + (i + k * R) * WARP_SIZE, R, m, n);
      } else {
        load(a, t, k, i, n, m, k, status);
        load_tile(d, diagonal, S);
        eliminate_right(a, d, n, m, status);
        store_rows(a, k, i, n, m);
      }
    }
    team.sync();
    return end;
  }
  // Rows k .. k + m - 1 of U from column j on.
  DEVICE void store_rows(const LeafTile& a, int k, int j, int m, int n) {
    const Operand to = front.columns_of_u(j);
    Scalar* u = (Scalar*)to.from;
    for_all<S, S>([&](int i, int c) {
      if (i < m && c < n) u[(c * to.step + (k + i) * to.pivot) * WARP_SIZE] = a[i][c];
    });
  }
  // Tiles of the contribution block, column by column.
  DEVICE void block(int number, LaneStatus& status) {
    const int H = front.H, Q = (H + S - 1) / S, count = CHOLESKY ? Q * (Q + 1) / 2 : Q * Q;
    int column = 0, begin = 0, length = Q;  // of the column of tiles
#pragma unroll 1
    for (int t = first_from(team, number) - number; t < count; t += team.size) {
      while (t >= begin + length) {
        begin += length, column++;
        if (CHOLESKY) length--;
      }
      const int i = (t - begin + Q - length) * S, j = column * S, m = min(S, H - i), n = min(S, H - j);
      LeafTile a;
      load(a, number + t, front.W + i, front.W + j, m, n, front.W, status);
      store_tile(a, front.block + (i + j * H) * WARP_SIZE, H, m, n);
    }
  }
  DEVICE void run(int position, const LanePivots& pivots, LaneStatus& status) {
    sums.begin(slot + team.rank, last);
    int number = 0;
#pragma unroll 1
    for (int k = 0; k < front.W; k += S) number = panel(k, min(S, front.W - k), position + k, number, pivots, status);
    block(number, status);
  }
};

template <class Sums, class Member> DEVICE void factor_front(const LaneFactorArgs& args, const Member& team, int f,
                                                             int group, Scalar* stack, Scalar* scratch,
                                                             Scalar* diagonal, Scalar* stage, LaneStatus& status) {
  const LockstepFront record = args.fronts[f];
  const LaneFront front(args, record, group, stack);
  const LanePivots pivots(args.n, args.tiny, args.singular);
  const Items items{args.item_ptr, args.item, args.item_scale};
  const Scalar* blocks = stack ? stack : lane_entries(args.shared, group, args.shared_size);
  const Scalar* values = lane_entries(args.values, group, args.nnz);
  SmallFront<Member, Sums>{team,
                           front,
                           scratch,
                           diagonal,
                           __ldg(args.slot + f),
                           __ldg(args.slot + f + 1),
                           {items, values, blocks, scratch, stage, {args.item_ptr}}}
      .run(record.first, pivots, status);
}

// Fronts above the cut, by blocks of WARPS warps.
template <int WARPS>
DEVICE void factor_by_teams(const LaneFactorArgs& args, const int* fronts, int count, unsigned* tickets) {
  Scalar* diagonal = (Scalar*)(shared_memory + LANE_CONTROL_BYTES) + lane_of();
  Scalar* scratch = diagonal + (S * S + warp_of() * (S * S + STAGED_ITEMS)) * WARP_SIZE;
  for (;;) {
    const int ticket = block_ticket(tickets);
    if (ticket >= count * args.groups) break;
    const int group = ticket % args.groups, f = fronts[ticket / args.groups], above = args.above[f];
    unsigned* arrived = args.arrived + group * args.above_count;
    if (threadIdx.x == 0) wait_for_count(arrived + above, args.pending[above]);
    __syncthreads();
    LaneStatus status;
    factor_front<SumAhead>(args, Team<WARPS>{warp_of()}, f, group, (Scalar*)nullptr, scratch, diagonal,
                           scratch + S * S * WARP_SIZE, status);
    status.publish(args.reports + group * WARP_SIZE + lane_of());
    const int parent = args.fronts[f].parent;
    __syncthreads();
    if (threadIdx.x == 0 && parent >= 0) add_acquire_release(arrived + args.above[parent], 1u);
  }
}

}  // namespace

GPUSPLU_KERNEL(factor_leaves, LaneFactorArgs, LANE_THREADS, RESIDENT) {
  Scalar* scratch = (Scalar*)shared_memory + warp_of() * S * S * WARP_SIZE + lane_of();
  Scalar* diagonal = scratch + LANE_WARPS * S * S * WARP_SIZE;
  Scalar* stack = lane_entries(args.stacks, blockIdx.x * LANE_WARPS + warp_of(), args.task_size);
  for (;;) {
    const int ticket = warp_ticket(args.tickets);
    if (ticket >= args.leaf_count * args.groups) break;
    const int group = ticket % args.groups;
    const LockstepTask* task = args.leaves + ticket / args.groups;
    LaneStatus status;
    for (int f = task->first; f <= task->last; f++)
      factor_front<SumSingle>(args, Single{}, f, group, stack, scratch, diagonal, (Scalar*)nullptr, status);
    status.publish(args.reports + group * WARP_SIZE + lane_of());
    const int parent = args.fronts[task->last].parent;
    __syncwarp();
    if (lane_of() == 0 && parent >= 0)
      add_acquire_release(args.arrived + group * args.above_count + args.above[parent], 1u);
  }
}

GPUSPLU_KERNEL(factor_fronts, LaneFactorArgs, TEAM_THREADS, 2 * RESIDENT) {
  factor_by_teams<TEAM_WARPS>(args, args.team_fronts, args.team_count, args.tickets + 2);
}

GPUSPLU_KERNEL(factor_wide_fronts, LaneFactorArgs, LANE_THREADS, RESIDENT) {
  factor_by_teams<LANE_WARPS>(args, args.wide_fronts, args.wide_count, args.tickets + 3);
}
