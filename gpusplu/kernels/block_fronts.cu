// Phases 1 and 2: fronts that fit into the shared memory of a block.
//
// Grid: one block for every front of the start list, which climbs. Threads: 128 (phase 1) or 512 (phase 2). Shared
// bytes: the inverted diagonal block (320 scalars), 16 bytes, and the largest front of the launch. Panels of 16
// columns: D = A11^-1, X = A21 D, A22 -= X A12; the next diagonal block is brought up to date and inverted by warp 0
// while the others update. Nobody waits. Bitwise repeatable: sums are taken in the plan's order.
#include "assembly.cuh"
#include "elimination.cuh"

constexpr int DIAGONAL = PANEL * DIAGONAL_LD;

template <int THREADS>
__device__ __forceinline__ void eliminate_panels(const FactorArgs& args, const Front& f, Scalar* F, int ld, Scalar* D) {
  constexpr int WARPS = THREADS / 32;
  const int warp = threadIdx.x >> 5, R = f.rows, W = f.width;
  if (warp == 0) invert_diagonal(F, ld, min(PANEL, W), args.tiny, D, args.status);
  __syncthreads();
  for (int k0 = 0; k0 < W; k0 += PANEL) {
    const int w = min(PANEL, W - k0), n0 = k0 + w, m = R - n0;
    Scalar *A = F + k0 * ld, *B = F + k0;
    for (int t = warp; 16 * t < m; t += WARPS) apply_diagonal(A, B, ld, n0 + 16 * t, R, w, D);
    __syncthreads();
    const bool more = n0 < W;
    const int tile_rows = (m + 31) / 32, tiles = tile_rows * ((m + 15) / 16);
    // With a panel to come warp 0 does its diagonal block (t = -1), and the other warps of its scheduler stay out of
    // its way.
    const int first = !more ? warp : warp == 0 ? -1 : warp & 3 ? warp - (warp >> 2) - 1 : tiles;
    for (int t = first; t < tiles; t += more ? WARPS - WARPS / 4 : WARPS) {
      const int r0 = n0 + 32 * (t % tile_rows), c0 = n0 + 16 * (t / tile_rows);
      if (CHOLESKY && t > 0 && r0 + 31 < c0) continue;
      if (more && t <= 0) {
        if (t < 0 || m > 16) update_tile<1, 2>(F, A, B, ld, t < 0 ? n0 : n0 + 16, R, n0, w);
        if (t < 0) break;
      } else update_tile<2, 2>(F, A, B, ld, r0, R, c0, w);
    }
    if (more && warp == 0) {
      __syncwarp();
      invert_diagonal(F + n0 + n0 * ld, ld, min(PANEL, W - n0), args.tiny, D, args.status);
    }
    __syncthreads();
  }
}

template <int THREADS>
__device__ __forceinline__ void store_front(const FactorArgs& args, const Front& f, const Scalar* F, int ld) {
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, R = f.rows, W = f.width, H = R - W;
  Scalar* lower = args.factor + f.factor;
  Scalar* upper = lower + (long long)R * W;
  Scalar* block = args.blocks + f.block;
  for (int j = warp; j < R; j += THREADS / 32)
    for (int i = lane + (CHOLESKY ? (j < W ? j & ~(PANEL - 1) : j) : 0); i < R; i += 32) {
      const Scalar x = F[i + j * ld];
      if (j < W) lower[i + (long long)j * R] = x;
      else if (i < W) upper[i + (j - W) * W] = x;
      else store_shared_level(block + (i - W) + (j - W) * H, x);
    }
}

template <int THREADS> __device__ __forceinline__ void factor_block(const FactorArgs& args) {
  Scalar* D = (Scalar*)shared_memory;
  int* next = (int*)(D + DIAGONAL);
  Scalar* F = (Scalar*)(next + 4);
  for (int s = args.start[blockIdx.x]; s >= 0;) {
    const Front f = args.fronts[s];
    const int ld = front_ld(f.rows);
    assemble<THREADS>(args, f, F, ld, threadIdx.x);
    eliminate_panels<THREADS>(args, f, F, ld, D);
    store_front<THREADS>(args, f, F, ld);
    s = climb<THREADS>(args, f, next);
  }
}

GPUSPLU_KERNEL(factor_small, FactorArgs, 128, 4) { factor_block<128>(args); }
GPUSPLU_KERNEL(factor_blocks, FactorArgs, 512, 1) { factor_block<512>(args); }
