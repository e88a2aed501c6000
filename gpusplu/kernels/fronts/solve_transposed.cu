// Solves with the transposed factor of LU: as fronts/solve_fronts.cu. Conjugate transposes are these for conjugated
// vectors.
#include "fronts/solve_walk.cuh"

GPUSPLU_KERNEL(solve_forward_transposed_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { forward<1, true>(args); }
GPUSPLU_KERNEL(solve_forward_transposed_several, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) {
  forward<SEVERAL, true>(args);
}
GPUSPLU_KERNEL(solve_backward_transposed_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { backward<1, true>(args); }
GPUSPLU_KERNEL(solve_backward_transposed_several, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) {
  backward<SEVERAL, true>(args);
}
