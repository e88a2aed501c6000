// Blocks that take tickets until none is left: the loops of fronts/solve_fronts.cu and fronts/solve_transposed.cu.
#pragma once
#include "fronts/solve_block.cuh"
#include "fronts/solve_tiny.cuh"
#include "fronts/solve_warp.cuh"

constexpr int SOLVE_BLOCKS = solve_blocks(sizeof(Scalar));

// Transposed, the whole block also solves the fronts that are a warp's otherwise: those of a ticket one after another.
// They fill its first slots and have it to themselves.
template <bool FORWARD, class Solve> DEVICE void for_whole_block(const SolveFront* slots, Solve solve) {
  const int kind = load_record(slots).kind, count = kind == SOLVE_BLOCK ? 1 : kind == SOLVE_WARP ? SOLVE_SLOTS : 0;
  for (int k = 0; k < count; k++) {
    const SolveFront f = load_record(slots + (FORWARD ? k : count - 1 - k));
    if (f.kind == kind) solve(f);
    __syncthreads();
  }
}

template <bool FORWARD, int NV, bool TRANSPOSED> DEVICE void walk(const SolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + SOLVE_TICKET_BYTES);
  const int warp = threadIdx.x >> 5;
  for_tickets<FORWARD, NV>(args, FORWARD_TICKET, args.tickets, [&](int position, const Group<NV>& group) {
    const SolveFront* slots = args.slots + (FORWARD ? position : args.tickets - 1 - position) * SOLVE_SLOTS;
    const SolveFront f = load_record(slots + warp);
    if (f.kind == SOLVE_TINY) {
      if constexpr (FORWARD) forward_tiny<TRANSPOSED>(group, f, memory + warp * Gather<32, NV>::SCALARS);
      else backward_tiny<TRANSPOSED>(group, f);
    } else if constexpr (TRANSPOSED) {
      for_whole_block<FORWARD>(slots, [&](const SolveFront& g) {
        if constexpr (FORWARD) forward_columns(group, g, memory);
        else backward_columns(group, g, memory);
      });
    } else if (f.kind == SOLVE_WARP) {
      Scalar* own = memory + warp * WARP_SCALARS<NV>;
      if constexpr (FORWARD) forward_warp(group, f, own);
      else if constexpr (ONE_TRIANGLE) backward_warp_columns(group, f, own);
      else backward_warp_rows(group, f, own);
    } else if (f.kind == SOLVE_BLOCK) {
      if constexpr (FORWARD) forward_rows(group, f, memory);
      else if constexpr (ONE_TRIANGLE) backward_columns(group, f, memory);
      else backward_rows(group, f, memory);
    }
  });
}
