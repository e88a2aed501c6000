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

template <bool FORWARD, int NV, bool TRANSPOSED> DEVICE void walk(const SolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + SOLVE_TICKET_BYTES);
  const int warp = threadIdx.x >> 5;
  for_tickets<FORWARD>(args, FORWARD_TICKET, args.tickets, [&](int position, int group, unsigned tag) {
    const SolveFront* slots = args.slots + (FORWARD ? position : args.tickets - 1 - position) * SOLVE_SLOTS;
    const SolveTask f = load_front(slots + warp, tag);
    if (f.kind == SOLVE_TINY) {
      if constexpr (FORWARD) forward_tiny<NV, TRANSPOSED>(args, f, group, memory + warp * Gather<32, NV>::SCALARS);
      else backward_tiny<NV, TRANSPOSED>(args, f, group);
    } else if constexpr (TRANSPOSED) {
      for_whole_block<FORWARD>(slots, tag, [&](const SolveTask& g) {
        if constexpr (FORWARD) forward_columns<NV>(args, g, group, memory);
        else backward_columns<NV>(args, g, group, memory);
      });
    } else if (f.kind == SOLVE_WARP) {
      if constexpr (FORWARD) forward_warp<NV>(args, f, group, memory + warp * WARP_SCALARS<NV>);
      else if constexpr (ONE_TRIANGLE) backward_warp_columns<NV>(args, f, group, memory + warp * WARP_SCALARS<NV>);
      else backward_warp_rows<NV>(args, f, group, memory + warp * WARP_SCALARS<NV>);
    } else if (f.kind == SOLVE_BLOCK) {
      if constexpr (FORWARD) forward_rows<NV>(args, f, group, memory);
      else if constexpr (ONE_TRIANGLE) backward_columns<NV>(args, f, group, memory);
      else backward_rows<NV>(args, f, group, memory);
    }
  });
}
