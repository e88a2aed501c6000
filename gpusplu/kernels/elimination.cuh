// Inverses of 16 x 16 blocks with row pivoting, each by one warp in registers.
//
// Gauss-Jordan exchange in place: after the pivots of all w columns the block [A11 A12; A21 A22] (A11 is w x w) has
// become [D, D A12; -A21 D, A22 - A21 D A12] with D = A11^-1 (block LU with inverted blocks: Demmel, Higham and
// Schreiber, Stability of block LU factorization, 1995). Lane (r, c) = (lane / 4, lane % 4) holds rows r and r + 8 of
// columns c, c + 4, c + 8 and c + 12: this takes the fewest shuffles (7 scalars a pivot), and shuffles bound it; it is
// also the layout of an accumulator of the tensor cores (tiles.cuh).
//
// LU: pivots are chosen by rows among the w rows. Nothing is swapped: an exchange at (p, k) leaves row k of D in row p
// and what belongs to equation p in column k, so the permutation is only where results are written (Places). The search
// is one maximum over the warp of 26 leading bits of the modulus with the row below them, while every candidate already
// inverts itself.
// Cholesky: pivots on the diagonal in natural order; those that are not positive are counted.
// Cost: 16 w^2 multiply-adds; about w x 150 cycles of latency.
#pragma once
#include "front.cuh"

// The leading 31 bits of a modulus, ordered like it; NaN is larger than all.
__device__ __forceinline__ unsigned magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ __forceinline__ unsigned magnitude_bits(double x) { return (unsigned)__double2hiint(x) & 0x7fffffffu; }
template <class R> __device__ __forceinline__ unsigned magnitude_bits(Complex<R> x) { return magnitude_bits(size1(x)); }
__device__ __forceinline__ double from_magnitude_bits(unsigned bits) {
  return sizeof(Real) == 4 ? (double)__uint_as_float(bits) : __hiloint2double((int)bits, 0);
}
constexpr unsigned HUGE_BITS = sizeof(Real) == 4 ? 0x7e800000u : 0x7fd00000u;  // the reciprocal underflows, Inf or NaN

// What a thread met in its fronts.
struct PivotReport {
  int n_perturbed = 0, n_tiny = 0;
  unsigned largest_pivot = 0, largest_multiplier = 0;  // magnitude bits
};

constexpr unsigned REPORTED_MULTIPLIER = sizeof(Real) == 4 ? 0x42800000u : 0x40500000u;  // 64

// By all lanes of a warp, when it has no more fronts. Smaller multipliers than 64 are not worth an atomic operation.
__device__ __forceinline__ void add_to_status(const PivotReport& report, Status* status) {
  if (report.n_perturbed > 0) atomicAdd(&status->n_perturbed, report.n_perturbed);
  if (report.n_tiny > 0) atomicAdd(&status->n_tiny, report.n_tiny);
  const unsigned pivot = warp_max(report.largest_pivot), multiplier = warp_max(report.largest_multiplier);
  if ((threadIdx.x & 31) != 0) return;
  if (pivot >= HUGE_BITS) atomicAdd(&status->not_finite, 1);
  if (multiplier >= REPORTED_MULTIPLIER) {
    const double size = from_magnitude_bits(multiplier);  // positive doubles are ordered like their bits
    atomicMax((unsigned long long*)&status->growth, (unsigned long long)__double_as_longlong(size));
  }
}

// What replaces a pivot that is too small.
__device__ __forceinline__ float replaced_pivot(float p, Real tiny) { return copysignf((float)tiny, p); }
__device__ __forceinline__ double replaced_pivot(double p, Real tiny) { return copysign((double)tiny, p); }
template <class R> __device__ __forceinline__ Complex<R> replaced_pivot(Complex<R> p, Real tiny) {
  return {(R)copysign(tiny, p.re), 0};
}

struct PivotLimits {
  Real tiny;  // replaces what is smaller; a normal number
  unsigned tiny_bits, singular_bits;
  __device__ __forceinline__ explicit PivotLimits(const FactorArgs& args) {
    constexpr double least_normal = sizeof(Real) == 4 ? 1.17549435e-38 : 2.2250738585072014e-308;
    tiny = (Real)fmax(args.tiny, least_normal);
    tiny_bits = magnitude_bits(tiny), singular_bits = magnitude_bits((Real)args.singular);
  }
};

// Where the results of a lane belong: its value (i, q) is that of row row[i], column column(q) of the block. Rows and
// columns below w are permuted among each other, the others stay.
struct Places {
  int row[2];
  unsigned columns;  // a byte each
  __device__ __forceinline__ int column(int q) const { return columns >> (8 * q) & 255; }
};

// Rows and columns from w on may hold anything finite; where nobody uses them, anything at all.
__device__ __forceinline__ Places gauss_jordan(Scalar (&a)[2][4], int w, const PivotLimits& limits,
                                               PivotReport& report) {
  constexpr unsigned KEY_BITS = 0x7fffffe0u, OPEN = 16;  // a key: magnitude, 1 if the row has not been pivot, the row
  const int lane = threadIdx.x & 31, row = lane >> 2, column = lane & 3;
  Places places = {{row, row + 8}, 0x0c080400u + 0x01010101u * column};
  Scalar scale[2] = {Scalar(1), Scalar(1)};  // of the pivot rows, applied at the end
  unsigned mask[2] = {row < w ? KEY_BITS : 0u, row + 8 < w ? KEY_BITS : 0u};
  unsigned tag[2] = {row < w ? OPEN | row : 0u, row + 8 < w ? OPEN | (row + 8) : 0u};
#pragma unroll 1
  for (int k = 0; k < w; k += 4) {  // four columns, then the registers rotate: the pivot column is always a[.][0]
    int taken = k + column;
#pragma unroll
    for (int s = 0; s < 4; s++) {
      if (k + s >= w) break;
      const Scalar c0 = shuffle(a[0][0], (lane & 28) | s), c1 = shuffle(a[1][0], (lane & 28) | s);
      Scalar candidate;
      unsigned bits;
      int pivot;
      if constexpr (CHOLESKY) {
        pivot = k + s;
        candidate = Scalar(real(pivot < 8 ? a[0][0] : a[1][0]));
        bits = magnitude_bits(candidate);
      } else {
        const unsigned bits0 = magnitude_bits(a[0][0]), bits1 = magnitude_bits(a[1][0]);
        const unsigned key0 = (bits0 & mask[0]) | tag[0], key1 = (bits1 & mask[1]) | tag[1];
        pivot = warp_max(column == s ? max(key0, key1) : 0u) & 15;
        candidate = key1 > key0 ? a[1][0] : a[0][0];
        bits = key1 > key0 ? bits1 : bits0;
      }
      const int from = (pivot & 7) << 2;
      const bool upper = pivot < 8, mine = row == (pivot & 7),
                 small = CHOLESKY ? !(real(candidate) > 0) : bits < limits.tiny_bits;
      if (small) candidate = replaced_pivot(candidate, limits.tiny);
      const Scalar r = shuffle(reciprocal(candidate), from | s);
      Scalar u[4];
#pragma unroll
      for (int q = 0; q < 4; q++) u[q] = shuffle(upper ? a[0][q] : a[1][q], from | column);
      if (lane == (from | s)) {
        report.n_perturbed += small;
        if (!CHOLESKY) report.n_tiny += bits < limits.singular_bits;
        report.largest_pivot = max(report.largest_pivot, bits);
      }
      if (column == s) taken = pivot;
      Scalar l0 = c0 * r, l1 = c1 * r;
      if (mine && upper) {
        l0 = Scalar(0), scale[0] = r;
        places.row[0] = k + s, mask[0] = tag[0] = 0;
      }
      if (mine && !upper) {
        l1 = Scalar(0), scale[1] = r;
        places.row[1] = k + s, mask[1] = tag[1] = 0;
      }
#pragma unroll
      for (int t = 0; t < 4; t++) {  // the next pivot column first
        const int q = (t + (s == 3)) & 3;
        a[0][q] = mul_sub(l0, u[q], a[0][q]);
        a[1][q] = mul_sub(l1, u[q], a[1][q]);
      }
      if (column == s) {
        a[0][0] = mine && upper ? Scalar(1) : -l0;
        a[1][0] = mine && !upper ? Scalar(1) : -l1;
      }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const Scalar first = a[i][0];
      a[i][0] = a[i][1], a[i][1] = a[i][2], a[i][2] = a[i][3], a[i][3] = first;
    }
    places.columns = places.columns >> 8 | (unsigned)taken << 24;
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int q = 0; q < 4; q++) a[i][q] = a[i][q] * scale[i];
  return places;
}
