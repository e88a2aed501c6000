// Forward and backward solves with the fronts of phases 0 to 2, one launch each.
//
// Kernels: solve_forward_NV and solve_backward_NV, for LU also solve_forward_transposed_NV and
// solve_backward_transposed_NV; NV = 1 or 4 right-hand sides a group. Grid: any number of blocks up to tickets x
// groups, best what the device holds at once; block: 256 threads. Shared memory: solve_shared_scalars(NV) scalars and
// 16 bytes. A block takes tickets until none is left (solve.cuh). Precondition: the factor is complete; backward runs
// after forward and after the backward solve of phase 3. Deterministic. Conjugate transposes are the transposed solves
// of conjugated vectors; for Cholesky A^T = conj(A) is handled so too.
#include "solve.cuh"
#include "solve_block.cuh"
#include "solve_tiny.cuh"

constexpr int SOLVE_BLOCKS = sizeof(Scalar) == 16 ? 1 : 2;  // on a multiprocessor: registers

// The next ticket, one for the block.
__device__ __forceinline__ int take_ticket(unsigned* next) {
  int* slot = (int*)shared_memory;
  __syncthreads();
  if (threadIdx.x == 0) *slot = (int)atomicAdd(next, 1u);
  __syncthreads();
  return *slot;
}

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

GPUSPLU_KERNEL(solve_forward_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { forward<1, false>(args); }
GPUSPLU_KERNEL(solve_forward_4, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { forward<4, false>(args); }
GPUSPLU_KERNEL(solve_backward_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { backward<1, false>(args); }
GPUSPLU_KERNEL(solve_backward_4, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { backward<4, false>(args); }
#if !CHOLESKY
GPUSPLU_KERNEL(solve_forward_transposed_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { forward<1, true>(args); }
GPUSPLU_KERNEL(solve_forward_transposed_4, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { forward<4, true>(args); }
GPUSPLU_KERNEL(solve_backward_transposed_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { backward<1, true>(args); }
GPUSPLU_KERNEL(solve_backward_transposed_4, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { backward<4, true>(args); }
#endif
