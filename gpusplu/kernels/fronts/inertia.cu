// How many eigenvalues of the inverted diagonal blocks D of LDL^T are positive and negative.
//
// Kernel: count_signs. Grid: any number of blocks, best as many as the device holds at once; block: DIAGONAL_THREADS, a
// warp that takes every gridDim.x-th of the diagonal blocks. Shared memory: the largest of these, without gaps. Each is
// factored in shared memory by L D L^H with complete pivoting of order 1 and 2 (Bunch and Parlett, Direct methods for
// solving symmetric indefinite systems of linear equations, SIAM J. Numer. Anal. 8 (1971)): a pivot of order 2 has one
// eigenvalue of each sign, because its diagonal is smaller than its off-diagonal entries. Where all remaining entries
// are below `least` times the largest entry of the block, rounding may determine their signs: they are counted as too
// small. Both triangles are updated. Adds to counts; independent of order, so repeatable.
#include "common/device.cuh"
#include "shared/diagonal.hpp"

constexpr int INERTIA_COUNTS = 3;  // eigenvalues that are positive, negative, and too small to decide

struct InertiaArgs {
  const Scalar* factor;
  const DiagonalBlock* blocks;
  int count;
  double least;
  unsigned* counts;  // INERTIA_COUNTS
};

namespace {

// Entry (i, j) of the largest modulus among some.
struct Largest {
  Real size;
  int i, j;
  DEVICE void see(Real other, int row, int column) {
    if (other > size) size = other, i = row, j = column;
  }
  // Of the warp, in all lanes.
  DEVICE void gather() {
#pragma unroll
    for (int mask = 16; mask; mask >>= 1) {
      const Real other = shuffle_xor(size, mask);
      const int row = shuffle_xor(i, mask), column = shuffle_xor(j, mask);
      const bool before = column < j || (column == j && row < i);
      if (other > size || (other == size && before)) size = other, i = row, j = column;
    }
  }
};

struct Square {
  Scalar* a;
  int m, lane;
  DEVICE Scalar& at(int i, int j) const { return a[i + j * m]; }

  DEVICE void swap(int p, int q) const {
    if (p == q) return;
    for (int k = lane; k < m; k += 32) {
      const Scalar v = at(k, p);
      at(k, p) = at(k, q), at(k, q) = v;
    }
    __syncwarp();
    for (int k = lane; k < m; k += 32) {
      const Scalar v = at(p, k);
      at(p, k) = at(q, k), at(q, k) = v;
    }
    __syncwarp();
  }
  // Updates rows and columns from k + `order` on by the pivot at k, which has the inverse [a b^H; b c].
  DEVICE void eliminate(int k, int order, Scalar a_, Scalar b, Scalar c) const {
    const int first = k + order, left = m - first;
    for (int e = lane; e < left * left; e += 32) {
      const int i = first + e % left, j = first + e / left;
      const Scalar x = at(i, k), u = at(k, j);
      Scalar v = at(i, j);
      if (order == 1) {
        v = mul_sub(x * a_, u, v);
      } else {
        const Scalar y = at(i, k + 1), w = at(k + 1, j);
        v = mul_sub(mul_add(x, a_, y * b), u, v);
        v = mul_sub(mul_add(x, conj(b), y * c), w, v);
      }
      at(i, j) = v;
    }
    __syncwarp();
  }
};

struct Signs {
  unsigned positive, negative, small;
};

DEVICE Signs signs_of(const Square& A, double least) {
  constexpr Real ALPHA = (Real)0.6403882032022076;  // (1 + sqrt(17)) / 8
  Signs found{0, 0, 0};
  Real largest(0);
  for (int k = 0; k < A.m;) {
    Largest diagonal{Real(-1), k, k}, any{Real(-1), k, k};
    const int left = A.m - k;
    for (int e = A.lane; e < left * left; e += 32) {
      const int i = k + e % left, j = k + e / left;
      if (i == j) diagonal.see(fabs(real(A.at(i, j))), i, j);
      else if (i > j) any.see(size1(A.at(i, j)), i, j);
    }
    diagonal.gather(), any.gather();
    const Real size = fmax(diagonal.size, any.size);
    if (k == 0) largest = size;
    if (!(size > (Real)least * largest)) {
      found.small += left;
      break;
    }
    if (diagonal.size >= ALPHA * any.size) {
      A.swap(k, diagonal.i);
      const Real d = real(A.at(k, k));
      (d > 0 ? found.positive : found.negative)++;
      A.eliminate(k++, 1, Scalar(reciprocal(d)), Scalar(0), Scalar(0));
      continue;
    }
    A.swap(k, any.j);
    A.swap(k + 1, any.i);
    const Scalar b = A.at(k + 1, k);
    const Real a = real(A.at(k, k)), c = real(A.at(k + 1, k + 1)), modulus = sqrt(real(b * conj(b)));
    const Real det = (a / modulus) * (c / modulus) - Real(1),
               scale = reciprocal(det * modulus);  // of entries / modulus
    const Real inverse = reciprocal(modulus);
    found.positive++, found.negative++;
    A.eliminate(k, 2, Scalar(c * inverse * scale), -(scale * inverse) * b, Scalar(a * inverse * scale));
    k += 2;
  }
  return found;
}

}  // namespace

GPUSPLU_KERNEL(count_signs, InertiaArgs, DIAGONAL_THREADS, 1) {
  Square A{(Scalar*)shared_memory, 0, (int)threadIdx.x};
  Signs sum{0, 0, 0};
  for (int k = blockIdx.x; k < args.count; k += gridDim.x) {
    const DiagonalBlock block = args.blocks[k];
    A.m = block.order;
    for (int e = A.lane; e < A.m * A.m; e += 32)
      A.a[e] = args.factor[block.at + e % A.m + (long long)(e / A.m) * block.ld];
    __syncwarp();
    const Signs found = signs_of(A, args.least);
    sum.positive += found.positive, sum.negative += found.negative, sum.small += found.small;
    __syncwarp();
  }
  if (A.lane != 0) return;
  const unsigned sums[INERTIA_COUNTS] = {sum.positive, sum.negative, sum.small};
  for_all<INERTIA_COUNTS>([&](int q) {
    if (sums[q]) atomicAdd(args.counts + q, sums[q]);
  });
}
