// Solves with the transposed factor of LU: as fronts/solve_fronts.cu. Conjugate transposes are these for conjugated
// vectors.
#include "fronts/solve_walk.cuh"

GPUSPLU_KERNEL(solve_forward_transposed_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { walk<true, 1, true>(args); }
GPUSPLU_KERNEL(solve_forward_transposed_several, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) {
  walk<true, SEVERAL, true>(args);
}
GPUSPLU_KERNEL(solve_backward_transposed_1, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) { walk<false, 1, true>(args); }
GPUSPLU_KERNEL(solve_backward_transposed_several, SolveArgs, SOLVE_THREADS, SOLVE_BLOCKS) {
  walk<false, SEVERAL, true>(args);
}
