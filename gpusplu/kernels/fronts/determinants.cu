// Determinants of the inverted diagonal blocks of a factor of fronts: log |det| and the sign, a number of modulus 1.
//
// Kernel: block_determinants. Grid: any; block: DIAGONAL_THREADS, a warp that takes every gridDim.x-th of the blocks.
// Shared memory: the largest of these, without gaps. Each is eliminated there with partial pivoting. Deterministic.
#include "common/reduce.cuh"
#include "shared/diagonal.hpp"

struct DeterminantArgs {
  const Scalar* factor;
  const DiagonalBlock* blocks;
  int count;
  double* logs;  // of this block
  Wide* signs;
};

namespace {

// The row of the largest entry among a[k .. m - 1], of equals the first; in all lanes.
DEVICE int pivot_row(const Scalar* a, int k, int m) {
  Real size(-1);
  int row = k;
  for (int i = k + (int)threadIdx.x; i < m; i += WARP_SIZE)
    if (size1(a[i]) > size) size = size1(a[i]), row = i;
#pragma unroll
  for (int mask = WARP_SIZE / 2; mask; mask >>= 1) {
    const Real other = shuffle_xor(size, mask);
    const int other_row = shuffle_xor(row, mask);
    if (other > size || (other == size && other_row < row)) size = other, row = other_row;
  }
  return row;
}

struct Determinant {
  double log_size;
  Wide sign;
};

// Of an m x m matrix without gaps, which is lost.
DEVICE Determinant determinant(Scalar* a, int m) {
  Determinant found{0, Wide(1)};
  for (int k = 0; k < m; k++) {
    const int row = pivot_row(a + k * m, k, m), left = m - k - 1;
    const Scalar pivot = a[row + k * m];
    const Wide wide = widen(pivot);
    found.log_size += log(modulus(wide));
    found.sign = found.sign * phase(wide);
    __syncwarp();
    if (row != k) {
      found.sign = -found.sign;
      for (int j = k + (int)threadIdx.x; j < m; j += WARP_SIZE) {
        const Scalar v = a[k + j * m];
        a[k + j * m] = a[row + j * m], a[row + j * m] = v;
      }
      __syncwarp();
    }
    const Scalar r = reciprocal(pivot);
    for (int e = threadIdx.x; e < left * left; e += WARP_SIZE) {
      const int i = k + 1 + e % left, j = k + 1 + e / left;
      a[i + j * m] = mul_sub(a[i + k * m] * r, a[k + j * m], a[i + j * m]);
    }
    __syncwarp();
  }
  return found;
}

}  // namespace

GPUSPLU_KERNEL(block_determinants, DeterminantArgs, DIAGONAL_THREADS, 1) {
  Scalar* a = (Scalar*)shared_memory;
  for (int k = blockIdx.x; k < args.count; k += gridDim.x) {
    const DiagonalBlock block = args.blocks[k];
    const int m = block.order;
    for (int e = threadIdx.x; e < m * m; e += WARP_SIZE)
      a[e] = args.factor[block.at + e % m + (long long)(e / m) * block.ld];
    __syncwarp();
    const Determinant found = determinant(a, m);
    if (threadIdx.x == 0) args.logs[k] = found.log_size, args.signs[k] = found.sign;
    __syncwarp();
  }
}
