// Blocks that take tickets until none is left: the loops of fronts/solve_fronts.cu and fronts/solve_transposed.cu.
#pragma once
#include "fronts/solve_block.cuh"
#include "fronts/solve_tiny.cuh"
#include "fronts/solve_warp.cuh"

constexpr int SOLVE_BLOCKS = solve_blocks(sizeof(Scalar));

// Transposed, the whole block also solves the fronts that are a warp's otherwise: those of a ticket one after another.
// They fill its first slots and have it to themselves.
template <bool FORWARD, class Solve> DEVICE void for_whole_block(const SolveFront* slots, unsigned tag, Solve solve) {
  const int kind = load_front(slots, tag).kind, count = kind == SOLVE_BLOCK ? 1 : kind == SOLVE_WARP ? SOLVE_SLOTS : 0;
  for (int k = 0; k < count; k++) {
    const SolveTask f = load_front(slots + (FORWARD ? k : count - 1 - k), tag);
    if (f.kind == kind) solve(f);
    __syncthreads();
  }
}

template <int NV, bool TRANSPOSED> DEVICE void forward(const SolveArgs& args) {
  allow_next_kernel(), wait_for_previous_kernel();
  Scalar* memory = (Scalar*)(shared_memory + SOLVE_TICKET_BYTES);
  const int warp = threadIdx.x >> 5;
  const unsigned tag = tag_of(args, true);
  for (;;) {
    const int ticket = take_ticket(args.control + FORWARD_TICKET);
    if (ticket >= args.tickets * args.groups) return;
    if (ticket == 0 && threadIdx.x == 0) args.control[BACKWARD_TICKET] = 0;
    const int position = ticket / args.groups, group = ticket - position * args.groups;
    const SolveTask f = load_front(args.slots + position * SOLVE_SLOTS + warp, tag);
    if (f.kind == SOLVE_TINY) forward_tiny<NV, TRANSPOSED>(args, f, group, memory + warp * Gather<32, NV>::SCALARS);
    else if constexpr (TRANSPOSED) {
      for_whole_block<true>(args.slots + position * SOLVE_SLOTS, tag,
                            [&](const SolveTask& g) { forward_columns<NV>(args, g, group, memory); });
    } else if (f.kind == SOLVE_WARP) forward_warp<NV>(args, f, group, memory + warp * WARP_SCALARS<NV>);
    else if (f.kind == SOLVE_BLOCK) forward_rows<NV>(args, f, group, memory);
  }
}

template <int NV, bool TRANSPOSED> DEVICE void backward(const SolveArgs& args) {
  allow_next_kernel(), wait_for_previous_kernel();
  Scalar* memory = (Scalar*)(shared_memory + SOLVE_TICKET_BYTES);
  const int warp = threadIdx.x >> 5;
  const unsigned tag = tag_of(args, false);
  for (;;) {
    const int ticket = take_ticket(args.control + BACKWARD_TICKET);
    if (ticket == args.tickets * args.groups) count_solve(args, tag);
    if (ticket >= args.tickets * args.groups) return;
    if (ticket == 0 && threadIdx.x == 0) args.control[FORWARD_TICKET] = 0;
    const int taken = ticket / args.groups, group = ticket - taken * args.groups;
    const int position = args.tickets - 1 - taken;
    const SolveTask f = load_front(args.slots + position * SOLVE_SLOTS + warp, tag);
    if (f.kind == SOLVE_TINY) backward_tiny<NV, TRANSPOSED>(args, f, group);
    else if constexpr (TRANSPOSED) {
      for_whole_block<false>(args.slots + position * SOLVE_SLOTS, tag,
                             [&](const SolveTask& g) { backward_columns<NV>(args, g, group, memory); });
    } else if (f.kind == SOLVE_WARP) {
      Scalar* v = memory + warp * WARP_SCALARS<NV>;
      if constexpr (ONE_TRIANGLE) backward_warp_columns<NV>(args, f, group, v);
      else backward_warp_rows<NV>(args, f, group, v);
    } else if (f.kind == SOLVE_BLOCK) {
      if constexpr (ONE_TRIANGLE) backward_columns<NV>(args, f, group, memory);
      else backward_rows<NV>(args, f, group, memory);
    }
  }
}
