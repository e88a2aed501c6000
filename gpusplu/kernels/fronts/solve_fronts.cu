// Forward and backward solves with the fronts of phases 0 to 2, one launch each.
//
// Kernels: solve_forward_ and solve_backward_, 1 or several right-hand sides a group; the transposed ones are in
// fronts/solve_transposed.cu. Grid: any number of blocks up to tickets x groups, best as many as the device holds at
// once; block: SOLVE_THREADS. Shared memory: SOLVE_TICKET_BYTES and solve_scalars(NV). A block takes tickets until none
// is left (fronts/solve.cuh). Precondition: the factor is complete; the backward solve of phase 3 runs between the two.
// Deterministic. Hermitian A: A^T = conj(A) is A for conjugated vectors; complex symmetric A: A^H is. Fronts of
// Cholesky and of Hermitian LDL^T are solved by the same kernels (cuda/nvrtc.py).
#include "fronts/solve_walk.cuh"

GPUSPLU_KERNEL(solve_forward_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { walk<true, 1, false>(args); }
GPUSPLU_KERNEL(solve_forward_several, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { walk<true, SEVERAL, false>(args); }
GPUSPLU_KERNEL(solve_backward_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { walk<false, 1, false>(args); }
GPUSPLU_KERNEL(solve_backward_several, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { walk<false, SEVERAL, false>(args); }
