// Blocks that take tickets until none is left: the loops of solve_fronts.cu and solve_transposed.cu.
#pragma once
#include "solve_block.cuh"
#include "solve_tiny.cuh"

constexpr int SOLVE_BLOCKS = sizeof(Scalar) == 16 ? 1 : 2;  // on a multiprocessor: registers

template <int NV, bool TRANSPOSED> __device__ __forceinline__ void forward(const SolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + 16);
  const int warp = threadIdx.x >> 5;
  for (;;) {
    const int ticket = take_ticket(args.counters + FORWARD_TICKET);
    if (ticket >= args.tickets * args.groups) return;
    if (ticket == 0 && threadIdx.x == 0) args.counters[BACKWARD_TICKET] = 0;
    const int position = ticket / args.groups, group = ticket - position * args.groups;
    const SolveFront f = load_front(args.slots + position * SLOTS + warp);
    if (f.kind == TINY) forward_tiny<NV, TRANSPOSED>(args, f, group, memory + warp * Gather<32, NV>::SCALARS);
    else if (f.kind == BLOCK) {
      if constexpr (TRANSPOSED) forward_columns<NV>(args, f, group, memory);
      else forward_rows<NV>(args, f, group, memory);
    }
  }
}

template <int NV, bool TRANSPOSED> __device__ __forceinline__ void backward(const SolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + 16);
  const int warp = threadIdx.x >> 5;
  for (;;) {
    const int ticket = take_ticket(args.counters + BACKWARD_TICKET);
    if (ticket >= args.tickets * args.groups) return;
    if (ticket == 0 && threadIdx.x == 0) args.counters[FORWARD_TICKET] = 0;
    const int taken = ticket / args.groups, group = ticket - taken * args.groups;
    const SolveFront f = load_front(args.slots + (args.tickets - 1 - taken) * SLOTS + warp);
    if (f.kind == TINY) backward_tiny<NV, TRANSPOSED>(args, f, group);
    else if (f.kind == BLOCK) {
      if constexpr (CHOLESKY || TRANSPOSED) backward_columns<NV>(args, f, group, memory);
      else backward_rows<NV>(args, f, group, memory);
    }
  }
}
