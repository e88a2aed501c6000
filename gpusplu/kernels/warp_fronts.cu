// Phase 0: fronts of up to 16 rows, one warp each.
//
// Grid: 4 warps a block; warp i starts with front start[i] and climbs. The front is assembled in shared memory and
// eliminated in registers. Shared bytes: 4 * 16 * 20 scalars. Nobody waits. Bitwise repeatable: sums are taken in the
// plan's order, whoever takes them.
#include "assembly.cuh"
#include "elimination.cuh"

constexpr int WARPS = 4, WARP_ROWS = 16, WARP_LD = 20;

GPUSPLU_KERNEL(factor_warps, FactorArgs, 32 * WARPS, 8) {
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, row = lane >> 2, col = lane & 3,
            id = blockIdx.x * WARPS + warp;
  if (id >= args.count) return;
  Scalar* F = (Scalar*)shared_memory + warp * WARP_ROWS * WARP_LD;
  for (int s = args.start[id]; s >= 0;) {
    const Front f = args.fronts[s];
    const int R = f.rows, W = f.width, H = R - W;
    for (int i = lane; i < WARP_ROWS * WARP_LD; i += 32) F[i] = Scalar(0);
    __syncwarp();
    add_entries<32>(args, f, F, WARP_LD, lane);
    __syncwarp();
    if (f.children) {
      add_children<4>(args, f, F, WARP_LD, lane >> 3);
      __syncwarp();
    }
    Block16 a;
    auto load = [&](int i, int j) { return CHOLESKY && i < j ? conj(F[j + i * WARP_LD]) : F[i + j * WARP_LD]; };
#pragma unroll
    for (int q = 0; q < 4; q++) a[0][q] = load(row, col + 4 * q), a[1][q] = load(row + 8, col + 4 * q);
    unsigned long long order;
    int pivot[2];
    const int replaced = eliminate16(a, W, args.tiny, order, pivot[0], pivot[1]);
    Scalar* lower = args.factor + f.factor;
    Scalar* upper = lower + R * W;
    Scalar* block = args.blocks + f.block;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int from = row + 8 * i, to = CHOLESKY ? from : pivot[i];
#pragma unroll
      for (int q = 0; q < 4; q++) {
        const int j = col + 4 * q;
        const Scalar x = a[i][q];
        if (from >= R || j >= R) continue;
        if (j < W) store_shared_level(lower + to + (CHOLESKY ? j : row_of(order, j)) * R, from < W ? x : -x);
        else if (from < W) {
          if (!CHOLESKY) store_shared_level(upper + to + (j - W) * W, x);
        } else if (!CHOLESKY || from >= j) store_shared_level(block + (from - W) + (j - W) * H, x);
      }
    }
    if (replaced && lane == 0) atomicAdd(&args.status->n_perturbed, replaced);
    s = climb<32>(args, f, nullptr);
  }
}
