// Determinants of many systems in lockstep, of their factors: log |det| and the sign, a number of modulus 1.
//
// Kernel: lane_determinants. Grid: groups; block: LANE_THREADS. Shared memory: LANE_THREADS times a double and a sign.
// Every warp takes a range of the pivots, and ranges are joined in their order. Deterministic.
#include "common/reduce.cuh"
#include "lockstep/lanes.cuh"

struct LaneDeterminantArgs {
  const Scalar* factor;
  const long long* diagonal;  // where the reciprocals of the pivots are
  long long factor_size;
  int n;
  double* logs;  // of this factor: for Cholesky twice that of L
  Wide* signs;
};

GPUSPLU_KERNEL(lane_determinants, LaneDeterminantArgs, LANE_THREADS, 1) {
  const int part = (args.n + LANE_WARPS - 1) / LANE_WARPS, begin = warp_of() * part, end = min(args.n, begin + part);
  const Scalar* factor = lane_entries(args.factor, blockIdx.x, args.factor_size);
  double log_size = 0;
  Wide sign(1);
  for (int k = begin; k < end; k++) {
    const Wide r = widen(factor[args.diagonal[k] * WARP_SIZE]);
    log_size -= log(modulus(r));
    sign = sign * phase(conj(r));  // that of the pivot
  }
  Determinant* shared = (Determinant*)shared_memory;
  shared[threadIdx.x] = {log_size, sign};
  __syncthreads();
  if (warp_of() > 0) return;
  for (int w = 1; w < LANE_WARPS; w++) {
    log_size += shared[w * WARP_SIZE + lane_of()].log_size;
    sign = sign * shared[w * WARP_SIZE + lane_of()].sign;
  }
  const int system = blockIdx.x * WARP_SIZE + lane_of();
  args.logs[system] = CHOLESKY ? 2 * log_size : log_size;
  args.signs[system] = CHOLESKY ? Wide(1) : phase(sign);  // rounding has moved it a little
}
