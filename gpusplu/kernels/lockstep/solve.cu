// op(A) x = b with the factors of many systems in lockstep, or a step of refinement.
//
// Kernel: solve_lanes. First warps go forward, each through a subtree below the cut or a front of few rows for 32
// systems; then blocks do the fronts above these, one each: all forward, then all backward; then warps go backward.
// Tickets are in the order of the fronts, all groups of a front one after another, and whoever waits does so for
// earlier tickets. Rows are worked on in tiles of SOLVE_ROWS, a warp each. Grid: no more than is resident; block:
// LANE_THREADS. Shared memory: LANE_WARPS * SOLVE_ROWS * WARP_SIZE scalars and 16 bytes. With `active` groups that need
// nothing are passed over. Deterministic, and no bit depends on the cut.
//
// y holds the pivots' rows in the plan's order, `sums` what rows below pivots pass on to the parent. Of a factor M of a
// front, L or the transpose of U, e(i, p) is what row i > p of column p holds.
#include "lockstep/lanes.cuh"

struct LaneSolveArgs {
  const LockstepFront* fronts;
  const int* below;  // rows of the fronts
  const int* slot;   // of every front: where its tiles of rows begin in item_ptr
  const int* item_ptr;
  const int2* item;  // of b and of sums
  const double* item_scale;
  const LockstepTask* warp_tasks;  // subtrees below the cut and fronts of few rows above, children first
  const int* block_fronts;         // the others, children first
  const int* above;                // of every front: its number among those above the cut and roots, -1 for others
  const unsigned* pending;         // by that number: children's tasks
  const int* perm_out;
  const double* scale_out;
  int warp_count, block_count, above_count;
  int n, groups;
  int sums_size;
  int upper_forward, scaled_forward, upper_backward, scaled_backward, conjugate_forward, conjugate_backward;
  long long factor_size;
  const Scalar *factor, *b;
  Scalar *y, *sums;
  const Scalar* base;  // null: x is the solution, else this and the solution, of systems that are active
  Scalar* x;
  const LaneErrors* errors;
  const unsigned* active;              // a word a group, and whether any is; null: all are
  unsigned *tickets, *arrived, *done;  // zero before; a word a group and front above the cut
};

namespace {

constexpr int S = SOLVE_ROWS, TOGETHER = 4;  // pivots whose entries are loaded together
using Rows = Scalar[S];

struct Alone {
  static constexpr int rank = 0, size = 1;
  DEVICE void sync() const {}
};
struct Team {
  int rank;
  static constexpr int size = LANE_WARPS;
  DEVICE void sync() const { __syncthreads(); }
};

// A factor of a front: e(i, p), i < W, at pivots[(i * pivot_i + p * pivot_p) * WARP_SIZE], and others behind.
struct FrontFactor {
  int W, H, R;
  bool conjugate;
  const Scalar *pivots, *beyond;
  int pivot_i, pivot_p, beyond_i, beyond_p;

  DEVICE FrontFactor(const LaneSolveArgs& args, const LockstepFront& f, int group, bool upper, bool conjugate_)
      : W(f.width), H(f.rows - f.width), R(f.rows), conjugate(conjugate_) {
    const Scalar* lower = lane_entries(args.factor, group, args.factor_size) + f.factor * WARP_SIZE;
    pivots = lower;
    pivot_i = upper ? R : 1, pivot_p = upper ? 1 : R;
    beyond = lower + (upper ? (long long)R * W : W) * WARP_SIZE;
    beyond_i = 1, beyond_p = upper ? H : R;
  }
  DEVICE Scalar turned(Scalar e) const {
    if constexpr (is_complex) return conjugate ? conj(e) : e;
    return e;
  }
  DEVICE Scalar inside(int i, int p) const { return turned(pivots[(i * pivot_i + p * pivot_p) * WARP_SIZE]); }
  DEVICE Scalar outside(int i, int p) const { return turned(beyond[(i * beyond_i + p * beyond_p) * WARP_SIZE]); }
  DEVICE int tiles() const { return (W + S - 1) / S; }
};

// Where the rows of a front are, of this lane: pivots in y, those below in sums.
struct FrontRows {
  Scalar *pivot, *below;
  DEVICE FrontRows(const LaneSolveArgs& args, const LockstepFront& f, int group)
      : pivot(lane_entries(args.y, group, args.n) + (long long)f.first * WARP_SIZE),
        below(lane_entries(args.sums, group, args.sums_size) + (long long)f.below * WARP_SIZE) {}
};

DEVICE void load_rows(Rows& rows, const Scalar* from, int count) {
#pragma unroll
  for (int r = 0; r < S; r++) rows[r] = r < count ? from[r * WARP_SIZE] : Scalar(0);
}
DEVICE void store_rows(const Rows& rows, Scalar* to, int count) {
#pragma unroll
  for (int r = 0; r < S; r++)
    if (r < count) to[r * WARP_SIZE] = rows[r];
}

// What b and the children's sums make of the tiles of rows of this member of the team.
template <class Member> DEVICE void sum_rows(const LaneSolveArgs& args, const Member& team, int f,
                                             const FrontFactor& front, const FrontRows& rows, int group,
                                             Scalar* scratch) {
  const Scalar *b = lane_entries(args.b, group, args.n), *sums = lane_entries(args.sums, group, args.sums_size);
  const int tiles = front.tiles(), all = tiles + (front.H + S - 1) / S;
  LaneStatus unused;
  for (int t = team.rank; t < all; t += team.size) {
    const int slot = args.slot[f] + t;
    assemble<S>({args.item_ptr, args.item, args.item_scale}, args.item_ptr[slot], args.item_ptr[slot + 1], b, sums,
                scratch, unused);
    Rows tile;
    load_rows(tile, scratch, S);
    if (t < tiles) store_rows(tile, rows.pivot + t * S * WARP_SIZE, front.W - t * S);
    else store_rows(tile, rows.below + (t - tiles) * S * WARP_SIZE, front.H - (t - tiles) * S);
  }
}

// The pivots of one tile, from the first on.
DEVICE void solve_forward(const FrontFactor& front, Rows& x, int p0, bool scaled) {
  const int count = front.W - p0;
#pragma unroll
  for (int p = 0; p < S; p++) {
    if (p >= count) break;
    if (scaled) x[p] = x[p] * front.inside(p0 + p, p0 + p);
#pragma unroll
    for (int i = p + 1; i < S; i++)
      if (i < count) x[i] = mul_sub(front.inside(p0 + i, p0 + p), x[p], x[i]);
  }
}

// The rows of a tile lose what the pivots from p0 on have, which are in y.
template <bool INSIDE>
DEVICE void subtract_pivots(const FrontFactor& front, const Scalar* y, Scalar* rows, int i0, int p0) {
  const int count = (INSIDE ? front.W : front.H) - i0, end = min(front.W, p0 + S);
  Rows tile;
  load_rows(tile, rows + i0 * WARP_SIZE, count);
#pragma unroll 1
  for (int p = p0; p < end; p += TOGETHER) {
    Scalar e[TOGETHER][S], x[TOGETHER];
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      x[q] = p + q < end ? y[(p + q) * WARP_SIZE] : Scalar(0);
#pragma unroll
      for (int i = 0; i < S; i++)
        e[q][i] = p + q < end && i < count ? (INSIDE ? front.inside(i0 + i, p + q) : front.outside(i0 + i, p + q))
                                           : Scalar(0);
    }
#pragma unroll
    for (int q = 0; q < TOGETHER; q++)
#pragma unroll
      for (int i = 0; i < S; i++) tile[i] = mul_sub(e[q][i], x[q], tile[i]);
  }
  store_rows(tile, rows + i0 * WARP_SIZE, count);
}

template <class Member>
DEVICE void forward(const LaneSolveArgs& args, const Member& team, int f, int group, Scalar* scratch) {
  const LockstepFront record = args.fronts[f];
  const FrontFactor front(args, record, group, args.upper_forward, args.conjugate_forward);
  const FrontRows rows(args, record, group);
  const int tiles = front.tiles(), all = tiles + (front.H + S - 1) / S;
  sum_rows(args, team, f, front, rows, group, scratch);
  const auto solve = [&](int t) {
    Rows x;
    load_rows(x, rows.pivot + t * S * WARP_SIZE, front.W - t * S);
    solve_forward(front, x, t * S, args.scaled_forward);
    store_rows(x, rows.pivot + t * S * WARP_SIZE, front.W - t * S);
  };
  if (team.rank == 0) solve(0);
  team.sync();
#pragma unroll 1
  for (int t = 0; t < tiles; t++) {
#pragma unroll 1
    for (int s = t + 1 + (team.rank + team.size - (t + 1) % team.size) % team.size; s < all; s += team.size) {
      if (s < tiles) subtract_pivots<true>(front, rows.pivot, rows.pivot, s * S, t * S);
      else subtract_pivots<false>(front, rows.pivot, rows.below, (s - tiles) * S, t * S);
      if (s == t + 1 && s < tiles) solve(s);  // others need it next
    }
    team.sync();
  }
}

DEVICE void solve_backward(const FrontFactor& front, Rows& x, int p0, bool scaled) {
  const int count = front.W - p0;
#pragma unroll
  for (int p = S - 1; p >= 0; p--) {
    if (p >= count) continue;
#pragma unroll
    for (int i = S - 1; i > p; i--)
      if (i < count) x[p] = mul_sub(front.inside(p0 + i, p0 + p), x[i], x[p]);
    if (scaled) x[p] = x[p] * front.inside(p0 + p, p0 + p);
  }
}

// The pivots of a tile lose what the rows below have, whose solutions are in y.
DEVICE void subtract_below(const LaneSolveArgs& args, const LockstepFront& record, const FrontFactor& front,
                           const Scalar* y, Scalar* pivots, int p0) {
  const int count = front.W - p0;
  Rows tile;
  load_rows(tile, pivots + p0 * WARP_SIZE, count);
  for (int first = 0; first < front.H; first += WARP_SIZE) {
    const int mine = __ldg(args.below + record.below + min(first + lane_of(), front.H - 1)),
              some = min(WARP_SIZE, front.H - first);
#pragma unroll 4
    for (int k = 0; k < some; k++) {
      const Scalar x = y[(long long)shuffle(mine, k) * WARP_SIZE];
#pragma unroll
      for (int p = 0; p < S; p++)
        if (p < count) tile[p] = mul_sub(front.outside(first + k, p0 + p), x, tile[p]);
    }
  }
  store_rows(tile, pivots + p0 * WARP_SIZE, count);
}

// The pivots of a tile lose what those of a later tile have.
DEVICE void subtract_later(const FrontFactor& front, Scalar* pivots, int p0, int i0) {
  Rows tile;
  load_rows(tile, pivots + p0 * WARP_SIZE, S);
#pragma unroll 1
  for (int end = min(front.W, i0 + S); end > i0; end -= TOGETHER) {
    Scalar e[TOGETHER][S], x[TOGETHER];
#pragma unroll
    for (int q = 0; q < TOGETHER; q++) {
      const int i = end - 1 - q;
      x[q] = i >= i0 ? pivots[i * WARP_SIZE] : Scalar(0);
#pragma unroll
      for (int p = 0; p < S; p++) e[q][p] = i >= i0 ? front.inside(i, p0 + p) : Scalar(0);
    }
#pragma unroll
    for (int q = 0; q < TOGETHER; q++)
#pragma unroll
      for (int p = 0; p < S; p++) tile[p] = mul_sub(e[q][p], x[q], tile[p]);
  }
  store_rows(tile, pivots + p0 * WARP_SIZE, S);
}

// Solutions of the pivots of a tile to where the caller wants them.
DEVICE void put_solution(const LaneSolveArgs& args, const Rows& x, int position, int count, int group) {
  const bool writes = !args.base || args.errors[group * WARP_SIZE + lane_of()].active;
#pragma unroll
  for (int r = 0; r < S; r++) {
    if (r >= count) break;
    const int row = __ldg(args.perm_out + position + r);
    const Real scale = args.scale_out ? (Real)__ldg(args.scale_out + row) : (Real)1;
    const long long at = (long long)row * WARP_SIZE;
    Scalar value = scale * x[r];
    if (args.base) value += lane_entries(args.base, group, args.n)[at];
    if (writes) lane_entries(args.x, group, args.n)[at] = value;
  }
}

template <class Member> DEVICE void backward(const LaneSolveArgs& args, const Member& team, int f, int group) {
  const LockstepFront record = args.fronts[f];
  const FrontFactor front(args, record, group, args.upper_backward, args.conjugate_backward);
  const FrontRows rows(args, record, group);
  const Scalar* y = lane_entries(args.y, group, args.n);
  const int tiles = front.tiles();
  const auto solve = [&](int t) {
    Rows x;
    load_rows(x, rows.pivot + t * S * WARP_SIZE, front.W - t * S);
    solve_backward(front, x, t * S, args.scaled_backward);
    store_rows(x, rows.pivot + t * S * WARP_SIZE, front.W - t * S);
    put_solution(args, x, record.first + t * S, front.W - t * S, group);
  };
  for (int t = team.rank; t < tiles; t += team.size) subtract_below(args, record, front, y, rows.pivot, t * S);
  if (team.rank == (tiles - 1) % team.size) solve(tiles - 1);
  team.sync();
#pragma unroll 1
  for (int t = tiles - 1; t > 0; t--) {
#pragma unroll 1
    for (int s = t - 1 - (t - 1 + team.size - team.rank) % team.size; s >= 0; s -= team.size) {
      subtract_later(front, rows.pivot, s * S, t * S);
      if (s == t - 1) solve(s);
    }
    team.sync();
  }
}

// Calls work(first, last, group), fronts of a task, for task after task, by a warp; `last_first`: in the other order.
template <class Work>
DEVICE void over_tasks(const LaneSolveArgs& args, unsigned* tickets, bool last_first, Work&& work) {
  const int count = args.warp_count * args.groups;
  for (;;) {
    int ticket = 0;
    if (lane_of() == 0) ticket = (int)atomicAdd(tickets, 1u);
    ticket = shuffle(ticket, 0);
    if (ticket >= count) break;
    if (last_first) ticket = count - 1 - ticket;
    const int group = ticket % args.groups;
    if (args.active && !args.active[group]) continue;
    const LockstepTask* task = args.warp_tasks + ticket / args.groups;
    work(task->first, task->last, group);
  }
}

// How tasks of a group wait for each other; by one thread. A root tells itself that it has gone forward.
struct Counters {
  unsigned *own, *parent;            // children's tasks that have gone forward
  unsigned *own_done, *parent_done;  // that it has gone backward
  unsigned pending;
  bool is_root;

  DEVICE Counters(const LaneSolveArgs& args, int f, int group) {
    const int above = args.above[f], up = args.fronts[f].parent, next = up < 0 ? above : args.above[up];
    unsigned *arrived = args.arrived + group * args.above_count, *done = args.done + group * args.above_count;
    is_root = up < 0, pending = above < 0 ? 0 : args.pending[above];
    own = arrived + above, parent = arrived + next;
    own_done = above < 0 ? nullptr : done + above, parent_done = done + next;
  }
  DEVICE static void wait(const unsigned* counter, unsigned value) {
    while (load_acquire(counter) < value) __nanosleep(32);
  }
  DEVICE void wait_for_children() const {
    if (pending > 0) wait(own, pending);
  }
  DEVICE void tell_parent() const { add_acquire_release(parent, 1u); }
  DEVICE void wait_for_parent() const {
    if (is_root) wait(own, pending + 1);
    else wait(parent_done, 1);
  }
  DEVICE void tell_children() const {
    if (own_done) store_release(own_done, 1u);
  }
};

DEVICE Scalar* scratch_of_warp() {
  return (Scalar*)(shared_memory + LANE_CONTROL_BYTES) + warp_of() * S * WARP_SIZE + lane_of();
}

// Subtrees and fronts of few rows forward, by warps.
DEVICE void forward_warps(const LaneSolveArgs& args) {
  over_tasks(args, args.tickets, false, [&](int first, int last, int group) {
    const Counters counters(args, last, group);
    if (lane_of() == 0) counters.wait_for_children();
    __syncwarp();
    for (int f = first; f <= last; f++) forward(args, Alone{}, f, group, scratch_of_warp());
    __syncwarp();
    if (lane_of() == 0) counters.tell_parent();
  });
}

// And backward.
DEVICE void backward_warps(const LaneSolveArgs& args) {
  over_tasks(args, args.tickets + 1, true, [&](int first, int last, int group) {
    const Counters counters(args, last, group);
    if (lane_of() == 0) counters.wait_for_parent();
    __syncwarp();
    for (int f = last; f >= first; f--) backward(args, Alone{}, f, group);
    __syncwarp();
    if (lane_of() == 0) counters.tell_children();
  });
}

// The other fronts, by blocks.
DEVICE void solve_blocks(const LaneSolveArgs& args) {
  int& shared_ticket = *(int*)shared_memory;
  const int count = args.block_count * args.groups;
  const Team team{warp_of()};
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) shared_ticket = (int)atomicAdd(args.tickets + 2, 1u);
    __syncthreads();
    const int ticket = shared_ticket;
    if (ticket >= 2 * count) break;
    const bool is_forward = ticket < count;
    const int k = ticket % count / args.groups, group = ticket % args.groups,
              f = args.block_fronts[is_forward ? k : args.block_count - 1 - k];
    if (args.active && !args.active[group]) continue;
    const Counters counters(args, f, group);
    if (threadIdx.x == 0) is_forward ? counters.wait_for_children() : counters.wait_for_parent();
    __syncthreads();
    if (is_forward) forward(args, team, f, group, scratch_of_warp());
    else backward(args, team, f, group);
    __syncthreads();
    if (threadIdx.x == 0) is_forward ? counters.tell_parent() : counters.tell_children();
  }
}

}  // namespace

GPUSPLU_KERNEL(solve_lanes, LaneSolveArgs, LANE_THREADS, RESIDENT) {
  if (args.active && !args.active[args.groups]) return;
  forward_warps(args);
  solve_blocks(args);
  backward_warps(args);
}
