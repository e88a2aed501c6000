// op(A) x = b with the factors of many systems in lockstep, or a step of refinement.
//
// Kernel: solve_lanes. First warps go forward, each through a subtree below the cut or a front of few rows for 32
// systems; then blocks do the fronts above these, one each: all forward, then all backward; then warps go backward.
// Tickets are in the order of the fronts, all groups of a front one after another, and a task waits only for earlier
// tickets. Grid: no more than is resident; block: LANE_THREADS. Shared memory: LANE_CONTROL_BYTES, and for each warp (1
// + LINES_AHEAD) * SOLVE_ROWS * WARP_SIZE scalars. With `active`, groups without work are skipped. Deterministic, and
// no bit depends on the cut.
#include "lockstep/solve_ahead.cuh"

namespace {

// How tasks of a group wait for each other; by one thread. A root signals itself when its forward solve is done.
struct Counters {
  unsigned *own, *parent;            // children's tasks that are done forward
  unsigned *own_done, *parent_done;  // set when the backward solve is done
  unsigned pending;
  bool is_root;

  DEVICE Counters(const LaneSolveArgs& args, int f, int group) {
    const int above = args.above[f], up = args.fronts[f].parent, next = up < 0 ? above : args.above[up];
    unsigned *arrived = args.arrived + group * args.above_count, *done = args.done + group * args.above_count;
    is_root = up < 0, pending = above < 0 ? 0 : args.pending[above];
    own = arrived + above, parent = arrived + next;
    own_done = above < 0 ? nullptr : done + above, parent_done = done + next;
  }
  // For the children, or backward for the parent.
  template <bool FORWARD> DEVICE void wait() const {
    if (!FORWARD && !is_root) wait_for_count(parent_done, 1);
    else if (!FORWARD || pending > 0) wait_for_count(own, pending + (FORWARD ? 0 : 1));
  }
  // The parent, or backward the children.
  template <bool FORWARD> DEVICE void tell() const {
    if (FORWARD) add_acquire_release(parent, 1u);
    else if (own_done) store_release(own_done, 1u);
  }
};

// Lines of this lane in shared memory, `count` a warp, after the first `before` lines of a lane.
DEVICE Scalar* shared_lines(int before, int count) {
  return (Scalar*)(shared_memory + LANE_CONTROL_BYTES) + (before + warp_of() * count) * S * WARP_SIZE + lane_of();
}
DEVICE Scalar* scratch_of_warp() { return shared_lines(0, 1); }
DEVICE Scalar* ring_of_warp() { return shared_lines(LANE_WARPS, LINES_AHEAD); }

template <bool FORWARD> DEVICE void solve_single(const LaneSolveArgs& args, int f, int group) {
  const SolvedFront front(args, f, group, FORWARD ? args.forward : args.backward);
  EntriesNow entries;
  if constexpr (FORWARD) {
    RowSums sums(Single{}, front);
    forward(Single{}, front, entries, sums, scratch_of_warp());
  } else {
    backward(Single{}, front, entries, [&](const Rows& x, int t) { put_solution(front, x, t); });
  }
}

DEVICE void forward_together(const LaneSolveArgs& args, const Block& team, int f, int group) {
  const SolvedFront front(args, f, group, args.forward);
  EntriesAhead<ForwardLines> entries({front, team}, ring_of_warp());
  RowSums sums(team, front);
  const Counters counters(args, f, group);
  if (threadIdx.x == 0) counters.wait<true>();
  __syncthreads();
  forward(team, front, entries, sums, scratch_of_warp());
  if (threadIdx.x == 0) counters.tell<true>();
}
// Children do not wait until solutions are in the caller's array.
DEVICE void backward_together(const LaneSolveArgs& args, const Block& team, int f, int group) {
  const SolvedFront front(args, f, group, args.backward);
  EntriesAhead<BackwardLines> entries({front, team}, ring_of_warp());
  const Counters counters(args, f, group);
  if (threadIdx.x == 0) counters.wait<false>();
  __syncthreads();
  backward(team, front, entries, [](const Rows&, int) {});
  if (threadIdx.x == 0) counters.tell<false>();
  for (int t = team.rank; t < front.tiles(); t += team.size) {
    Rows x;
    load_rows(x, front.rows(t), front.count(t));
    put_solution(front, x, t);
  }
}

// Subtrees and fronts of few rows, by warps; backward in the other order.
template <bool FORWARD> DEVICE void solve_warps(const LaneSolveArgs& args) {
  const int count = args.warp_count * args.groups;
  for (;;) {
    const int ticket = warp_ticket(args.tickets + (FORWARD ? 0 : 1)), number = FORWARD ? ticket : count - 1 - ticket;
    if (ticket >= count) break;
    const int group = number % args.groups;
    if (args.active && !args.active[group]) continue;
    const LockstepTask* task = args.warp_tasks + number / args.groups;
    const int first = task->first, last = task->last;
    const Counters counters(args, last, group);
    if (lane_of() == 0) counters.wait<FORWARD>();
    __syncwarp();
    for (int k = 0; k <= last - first; k++) solve_single<FORWARD>(args, FORWARD ? first + k : last - k, group);
    __syncwarp();
    if (lane_of() == 0) counters.tell<FORWARD>();
  }
}

// The other fronts, by blocks.
DEVICE void solve_blocks(const LaneSolveArgs& args) {
  const int count = args.block_count * args.groups;
  const Block team{warp_of()};
  for (;;) {
    const int ticket = block_ticket(args.tickets + 2);
    if (ticket >= 2 * count) break;
    const bool is_forward = ticket < count;
    const int k = ticket % count / args.groups, group = ticket % args.groups,
              f = args.block_fronts[is_forward ? k : args.block_count - 1 - k];
    if (args.active && !args.active[group]) continue;
    if (is_forward) forward_together(args, team, f, group);
    else backward_together(args, team, f, group);
  }
}

}  // namespace

GPUSPLU_KERNEL(solve_lanes, LaneSolveArgs, LANE_THREADS, RESIDENT) {
  if (args.active && !args.active[args.groups]) return;
  solve_warps<true>(args);
  solve_blocks(args);
  solve_warps<false>(args);
}
