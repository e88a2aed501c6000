// Inverted diagonal blocks D of a factor of fronts: determinants, and how many eigenvalues of those of LDL^T are
// positive and negative.
//
// Kernels: block_determinants, count_signs. Grid: any number of blocks, best as many as the device holds at once;
// block: DIAGONAL_THREADS, a warp that takes every gridDim.x-th of the diagonal blocks. Shared memory: the largest of
// these, without gaps. Each is eliminated there; all of the rest of the block is updated.
//
// block_determinants: log |det| and the sign, a number of modulus 1, of each block, by partial pivoting. Deterministic.
//
// count_signs: L D L^H with complete pivoting of order 1 and 2 (Bunch and Parlett, Direct methods for solving symmetric
// indefinite systems of linear equations, SIAM J. Numer. Anal. 8 (1971)): a pivot of order 2 has one eigenvalue of each
// sign, because its diagonal is smaller than its off-diagonal entries. Where all remaining entries are below `least`
// times the largest entry of the block, rounding may determine their signs: they are counted as too small. Adds to
// counts; independent of order, so repeatable.
#include "common/reduce.cuh"

constexpr int DIAGONAL_THREADS = 32;  // a warp a block
constexpr int INERTIA_COUNTS = 3;     // eigenvalues that are positive, negative, and too small to decide

// Where a diagonal block is in the factor, and its order.
struct DiagonalBlock {
  long long at;
  int ld, order;
};

struct DeterminantArgs {
  const Scalar* factor;
  const DiagonalBlock* blocks;
  int count;
  double* logs;  // of every block
  Wide* signs;
};

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
  Scalar* a = (Scalar*)shared_memory;
  int m, lane = threadIdx.x;
  DEVICE Scalar& at(int i, int j) const { return a[i + j * m]; }

  DEVICE Square(const Scalar* factor, const DiagonalBlock& block) : m(block.order) {
    for (int e = lane; e < m * m; e += 32) a[e] = factor[block.at + e % m + (long long)(e / m) * block.ld];
    __syncwarp();
  }
  DEVICE void swap_rows(int p, int q) const {
    for (int k = lane; k < m && p != q; k += 32) {
      const Scalar v = at(p, k);
      at(p, k) = at(q, k), at(q, k) = v;
    }
    __syncwarp();
  }
  DEVICE void swap(int p, int q) const {
    for (int k = lane; k < m && p != q; k += 32) {
      const Scalar v = at(k, p);
      at(k, p) = at(k, q), at(k, q) = v;
    }
    __syncwarp();
    swap_rows(p, q);
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

enum { POSITIVE, NEGATIVE, SMALL };

// Adds the signs of its eigenvalues to `found`.
DEVICE void add_signs(const Square& A, double least, unsigned (&found)[INERTIA_COUNTS]) {
  constexpr Real ALPHA = (Real)0.6403882032022076;  // (1 + sqrt(17)) / 8
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
      found[SMALL] += left;
      return;
    }
    if (diagonal.size >= ALPHA * any.size) {
      A.swap(k, diagonal.i);
      const Real d = real(A.at(k, k));
      (d > 0 ? found[POSITIVE] : found[NEGATIVE])++;
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
    found[POSITIVE]++, found[NEGATIVE]++;
    A.eliminate(k, 2, Scalar(c * inverse * scale), -(scale * inverse) * b, Scalar(a * inverse * scale));
    k += 2;
  }
}

DEVICE Determinant determinant(const Square& A) {
  Determinant found{0, Wide(1)};
  for (int k = 0; k < A.m; k++) {
    Largest pivot{Real(-1), k, k};
    for (int i = k + A.lane; i < A.m; i += 32) pivot.see(size1(A.at(i, k)), i, k);
    pivot.gather();
    const Scalar value = A.at(pivot.i, k);
    found.log_size += log(modulus(widen(value)));
    found.sign = found.sign * phase(widen(value));
    if (pivot.i != k) found.sign = -found.sign;
    __syncwarp();
    A.swap_rows(k, pivot.i);
    A.eliminate(k, 1, reciprocal(value), Scalar(0), Scalar(0));
  }
  return found;
}

}  // namespace

GPUSPLU_KERNEL(block_determinants, DeterminantArgs, DIAGONAL_THREADS, 1) {
  for (int k = blockIdx.x; k < args.count; k += gridDim.x) {
    const Determinant found = determinant(Square(args.factor, args.blocks[k]));
    if (threadIdx.x == 0) args.logs[k] = found.log_size, args.signs[k] = found.sign;
    __syncwarp();
  }
}

GPUSPLU_KERNEL(count_signs, InertiaArgs, DIAGONAL_THREADS, 1) {
  unsigned sums[INERTIA_COUNTS] = {0, 0, 0};
  for (int k = blockIdx.x; k < args.count; k += gridDim.x) {
    add_signs(Square(args.factor, args.blocks[k]), args.least, sums);
    __syncwarp();
  }
  if (threadIdx.x != 0) return;
  for_all<INERTIA_COUNTS>([&](int q) {
    if (sums[q]) atomicAdd(args.counts + q, sums[q]);
  });
}
