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
  DEVICE void wait_for_children() const {
    if (pending > 0) wait_for_count(own, pending);
  }
  DEVICE void tell_parent() const { add_acquire_release(parent, 1u); }
  DEVICE void wait_for_parent() const {
    if (is_root) wait_for_count(own, pending + 1);
    else wait_for_count(parent_done, 1);
  }
  DEVICE void tell_children() const {
    if (own_done) store_release(own_done, 1u);
  }
};

// Shared memory of this lane: S rows, and after those of all warps the prefetched lines.
DEVICE Scalar* scratch_of_warp() {
  return (Scalar*)(shared_memory + LANE_CONTROL_BYTES) + warp_of() * S * WARP_SIZE + lane_of();
}
DEVICE Scalar* ring_of_warp() {
  Scalar* behind = (Scalar*)(shared_memory + LANE_CONTROL_BYTES) + LANE_WARPS * S * WARP_SIZE;
  return behind + warp_of() * LINES_AHEAD * S * WARP_SIZE + lane_of();
}

DEVICE void forward_single(const LaneSolveArgs& args, int f, int group) {
  const LockstepFront record = args.fronts[f];
  const FrontFactor front(args, record, group, args.upper_forward, args.conjugate_forward);
  RowSums sums(args, Single{}, front, f, group);
  EntriesNow entries;
  forward(Single{}, front, entries, sums, FrontRows(args, record, group), args.scaled_forward, scratch_of_warp());
}
DEVICE void backward_single(const LaneSolveArgs& args, int f, int group) {
  const LockstepFront record = args.fronts[f];
  const FrontFactor front(args, record, group, args.upper_backward, args.conjugate_backward);
  EntriesNow entries;
  backward(Single{}, front, entries, FrontRows(args, record, group), args.below + record.below,
           lane_entries(args.y, group, args.n), args.scaled_backward,
           [&](const Rows& x, int t) { put_solution(args, x, record.first + t * S, front.count(t), group); });
}

DEVICE void forward_together(const LaneSolveArgs& args, const Block& team, int f, int group) {
  const LockstepFront record = args.fronts[f];
  const FrontFactor front(args, record, group, args.upper_forward, args.conjugate_forward);
  EntriesAhead<ForwardLines> entries({front, team}, ring_of_warp());
  RowSums sums(args, team, front, f, group);
  const Counters counters(args, f, group);
  if (threadIdx.x == 0) counters.wait_for_children();
  __syncthreads();
  forward(team, front, entries, sums, FrontRows(args, record, group), args.scaled_forward, scratch_of_warp());
  if (threadIdx.x == 0) counters.tell_parent();
}
// Children do not wait until solutions are in the caller's array.
DEVICE void backward_together(const LaneSolveArgs& args, const Block& team, int f, int group) {
  const LockstepFront record = args.fronts[f];
  const FrontFactor front(args, record, group, args.upper_backward, args.conjugate_backward);
  const FrontRows rows(args, record, group);
  EntriesAhead<BackwardLines> entries({front, team}, ring_of_warp());
  const Counters counters(args, f, group);
  if (threadIdx.x == 0) counters.wait_for_parent();
  __syncthreads();
  backward(team, front, entries, rows, args.below + record.below, lane_entries(args.y, group, args.n),
           args.scaled_backward, [](const Rows&, int) {});
  if (threadIdx.x == 0) counters.tell_children();
  put_solutions(args, team, record, front, rows, group);
}

// Subtrees and fronts of few rows forward, by warps.
DEVICE void forward_warps(const LaneSolveArgs& args) {
  over_tasks(args, args.tickets, false, [&](int first, int last, int group) {
    const Counters counters(args, last, group);
    if (lane_of() == 0) counters.wait_for_children();
    __syncwarp();
    for (int f = first; f <= last; f++) forward_single(args, f, group);
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
    for (int f = last; f >= first; f--) backward_single(args, f, group);
    __syncwarp();
    if (lane_of() == 0) counters.tell_children();
  });
}

// The other fronts, by blocks.
DEVICE void solve_blocks(const LaneSolveArgs& args) {
  int& shared_ticket = *(int*)shared_memory;
  const int count = args.block_count * args.groups;
  const Block team{warp_of()};
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
    if (is_forward) forward_together(args, team, f, group);
    else backward_together(args, team, f, group);
  }
}

}  // namespace

GPUSPLU_KERNEL(solve_lanes, LaneSolveArgs, LANE_THREADS, RESIDENT) {
  if (args.active && !args.active[args.groups]) return;
  forward_warps(args);
  solve_blocks(args);
  backward_warps(args);
}
