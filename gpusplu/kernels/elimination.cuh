// Blocked elimination of a front in shared memory: inverted diagonal blocks of 16 x 16, and updates by mma.
#pragma once
#include "front.cuh"

__device__ __forceinline__ unsigned size_bits(double a) { return __double2hiint(a) & 0x7fffffff; }
__device__ __forceinline__ unsigned size_bits(float a) { return __float_as_uint(a) & 0x7fffffff; }
template <class R> __device__ __forceinline__ unsigned size_bits(Complex<R> a) {
  return size_bits(fabs(a.re) + fabs(a.im));
}
// A pivot that is not too small, or one that replaces it; branch-free, because it sits in the chain of pivots.
__device__ __forceinline__ double repaired(double p, bool small, double tiny) { return small ? copysign(tiny, p) : p; }
__device__ __forceinline__ float repaired(float p, bool small, float tiny) { return small ? copysignf(tiny, p) : p; }
template <class R> __device__ __forceinline__ Complex<R> repaired(Complex<R> p, bool small, R tiny) {
  return {small ? copysign(tiny, p.re) : p.re, small ? R(0) : p.im};
}

// A 16 x 16 block in one warp: lane (r, c) = (lane / 4, lane % 4) holds rows r, r + 8 and columns c, c + 4, c + 8, c +
// 12 as a[i][q] = (r + 8 i, c + 4 q). Of all layouts this one needs the fewest shuffles a pivot, and they bound it.
using Block16 = Scalar[2][4];

// Gauss-Jordan elimination of the first w columns, pivots among the first w rows (LU; Cholesky takes them in order).
// Rows stay where they are: bits 4k .. 4k+3 of `order` become the row of pivot k. Then, with p = row of pivot: D(k,
// p_j) = a(p_k, j), (D A12)(k, j) = a(p_k, j), -(A21 D)(i, p_j) = a(i, j), A22 - A21 D A12 = a, where D = A11^-1.
// pivot0 and pivot1 are what the lane's rows became (LU). Returns how many pivots were replaced (LU) or not positive
// (Cholesky).
__device__ __forceinline__ int eliminate16(Block16& a, int w, double tiny, unsigned long long& order, int& pivot0,
                                           int& pivot1) {
  const int lane = threadIdx.x & 31, row = lane >> 2, col = lane & 3;
  const unsigned tiny_bits = size_bits((Real)tiny);
  Scalar scale0 = Scalar(1), scale1 = Scalar(1);
  unsigned free_rows = (1u << w) - 1;
  int replaced = 0;
  order = 0;
  pivot0 = row;
  pivot1 = row + 8;
#pragma unroll
  for (int k = 0; k < 16; k++) {
    if (k >= w) break;
    const int kq = k >> 2, kc = k & 3, nq = ((k + 1) & 15) >> 2;
    int p = k;
    if (!CHOLESKY) {  // the largest entry of column k, to 16 bits; the lowest row among equals
      const unsigned key0 = col == kc && free_rows >> row & 1 ? (size_bits(a[0][kq]) & ~15u) | (15 - row) : 0;
      const unsigned key1 = col == kc && free_rows >> (row + 8) & 1 ? (size_bits(a[1][kq]) & ~15u) | (7 - row) : 0;
      p = 15 - (int)(warp_max(max(key0, key1)) & 15);
      free_rows &= ~(1u << p);
      order |= (unsigned long long)p << (4 * k);
    }
    const int half = p >> 3, source = (p & 7) * 4;
    const Scalar found = shuffle(half ? a[1][kq] : a[0][kq], source + kc);
    const bool bad = CHOLESKY ? !(real(found) > 0) : size_bits(found) <= tiny_bits;
    replaced += bad;
    const Scalar r = reciprocal(CHOLESKY ? found : repaired(found, bad, (Real)tiny));
    const Scalar c0 = shuffle(a[0][kq], (lane & ~3) | kc), c1 = shuffle(a[1][kq], (lane & ~3) | kc);
    Scalar u[4];
#pragma unroll
    for (int q = 0; q < 4; q++) u[q] = shuffle(half ? a[1][q] : a[0][q], source + col);
    Scalar l0 = c0 * r, l1 = c1 * r;
    const bool pivot_lane = row == (p & 7);
    if (pivot_lane && half == 0) l0 = Scalar(0), scale0 = r, pivot0 = k;
    if (pivot_lane && half == 1) l1 = Scalar(0), scale1 = r, pivot1 = k;
#pragma unroll
    for (int t = 0; t < 4; t++) {  // the next pivot's column first
      const int q = (nq + t) & 3;
      a[0][q] = mul_sub(l0, u[q], a[0][q]);
      a[1][q] = mul_sub(l1, u[q], a[1][q]);
    }
    if (col == kc) {
      a[0][kq] = pivot_lane && half == 0 ? Scalar(1) : -l0;
      a[1][kq] = pivot_lane && half == 1 ? Scalar(1) : -l1;
    }
  }
#pragma unroll
  for (int q = 0; q < 4; q++) {
    a[0][q] = a[0][q] * scale0;
    a[1][q] = a[1][q] * scale1;
  }
  if (CHOLESKY) order = 0xfedcba9876543210ull;
  return replaced;
}
// The row that pivot k was.
__device__ __forceinline__ int row_of(unsigned long long order, int k) { return (int)(order >> (4 * k) & 15); }

constexpr int DIAGONAL_LD = 20;  // D(i, j) at i + DIAGONAL_LD j, zero beyond w

// One warp: the w x w block at A (leading dimension ld) becomes its inverse, there and in D.
__device__ __forceinline__ void invert_diagonal(Scalar* A, int ld, int w, double tiny, Scalar* D, Status* status) {
  const int lane = threadIdx.x & 31, row = lane >> 2, col = lane & 3;
  Block16 a;
  auto load = [&](int i, int j) {
    const bool in = i < w && j < w, lower = !CHOLESKY || i >= j;
    const Scalar x = A[min(lower ? i : j, w - 1) + min(lower ? j : i, w - 1) * ld];
    return in ? (lower ? x : conj(x)) : Scalar(0);
  };
#pragma unroll
  for (int q = 0; q < 4; q++) a[0][q] = load(row, col + 4 * q), a[1][q] = load(row + 8, col + 4 * q);
  __syncwarp();
  unsigned long long order;
  int pivot[2];
  const int replaced = eliminate16(a, w, tiny, order, pivot[0], pivot[1]);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int from = row + 8 * i, to = CHOLESKY ? from : pivot[i];
#pragma unroll
    for (int q = 0; q < 4; q++) {
      const int j = col + 4 * q, to_col = CHOLESKY || j >= w ? j : row_of(order, j);
      const bool in = from < w && j < w;
      if (in) A[to + to_col * ld] = a[i][q];
      D[(in ? to : from) + to_col * DIAGONAL_LD] = in ? a[i][q] : Scalar(0);
    }
  }
  if (replaced && lane == 0) atomicAdd(&status->n_perturbed, replaced);
}

// One warp: rows r0 .. r0+15 of the panel, X := X D in place. Cholesky leaves the raw entries, conjugated, right of the
// diagonal block in row panel B.
__device__ __forceinline__ void apply_diagonal(Scalar* X, Scalar* B, int ld, int r0, int R, int w, const Scalar* D) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, ra = min(r0 + g, R - 1), rb = min(r0 + g + 8, R - 1);
  Scalar a0[4], a1[4], c[2][4] = {};
#pragma unroll
  for (int q = 0; q < 4; q++) {
    const bool in = 4 * q + t < w;
    a0[q] = in ? X[ra + (4 * q + t) * ld] : Scalar(0);
    a1[q] = in ? X[rb + (4 * q + t) * ld] : Scalar(0);
    if (CHOLESKY && in) {
      B[4 * q + t + ra * ld] = conj(a0[q]);
      B[4 * q + t + rb * ld] = conj(a1[q]);
    }
  }
#pragma unroll
  for (int q = 0; q < 4; q++)
#pragma unroll
    for (int n = 0; n < 2; n++) mma(c[n], a0[q], a1[q], D[4 * q + t + (8 * n + (g >> 1) + 4 * (g & 1)) * DIAGONAL_LD]);
  __syncwarp();
#pragma unroll
  for (int n = 0; n < 2; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = r0 + g + 8 * (e >> 1), j = 8 * n + t + 4 * (e & 1);
      if (i < R && j < w) X[i + j * ld] = c[n][e];
    }
}

// One warp: C(r0.., c0..) -= A(rows, 0..w) B(0..w, cols) for MT x 16 rows and NT x 8 columns; A(i, k) = A[i + k ld],
// B(k, j) = B[k + j ld]. Columns of an 8-wide mma are permuted (n -> n/2 + 4 (n%2)): the accumulators meet no bank
// conflicts.
template <int MT, int NT> __device__ __forceinline__ void update_tile(Scalar* C, const Scalar* A, const Scalar* B,
                                                                      int ld, int r0, int R, int c0, int w) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  Scalar c[MT][NT][4], a[4][MT][2], b[4][NT];
  int ra[MT][2], cb[NT], cc[NT][2];
#pragma unroll
  for (int m = 0; m < MT; m++) ra[m][0] = min(r0 + 16 * m + g, R - 1), ra[m][1] = min(r0 + 16 * m + g + 8, R - 1);
#pragma unroll
  for (int n = 0; n < NT; n++) {
    cb[n] = min(c0 + 8 * n + (g >> 1) + 4 * (g & 1), R - 1) * ld + t;
    cc[n][0] = min(c0 + 8 * n + t, R - 1) * ld;
    cc[n][1] = min(c0 + 8 * n + t + 4, R - 1) * ld;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const bool in = 4 * k + t < w;
#pragma unroll
    for (int m = 0; m < MT; m++) {
      a[k][m][0] = in ? -A[ra[m][0] + (4 * k + t) * ld] : Scalar(0);
      a[k][m][1] = in ? -A[ra[m][1] + (4 * k + t) * ld] : Scalar(0);
    }
#pragma unroll
    for (int n = 0; n < NT; n++) b[k][n] = in ? B[4 * k + cb[n]] : Scalar(0);
  }
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) c[m][n][e] = C[ra[m][e >> 1] + cc[n][e & 1]];
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int m = 0; m < MT; m++) mma(c[m][n], a[k][m][0], a[k][m][1], b[k][n]);
  __syncwarp();
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int i = r0 + 16 * m + g + 8 * (e >> 1), j = c0 + 8 * n + t + 4 * (e & 1);
        if (i < R && j < R) C[i + j * ld] = c[m][n][e];
      }
}
