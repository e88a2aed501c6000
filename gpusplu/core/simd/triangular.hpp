// Triangular solves with blocks of a front: X <- X T^-1 for an upper triangular T (unit or with inverted diagonal), and
// X <- T^-1 X for a unit lower one. Eight columns at a time are solved in registers; the rest is update().
#pragma once
#include "simd/update.hpp"

namespace gs::GS_SIMD {

constexpr idx block_columns = 8;
constexpr idx direct_columns = 32;  // wider systems are halved, so that update() gets deep products

// The column at which a triangle of n > 8 columns is split: a multiple of 8.
GS_INLINE idx first_half(idx n) {
  return n <= direct_columns ? (n - 1) / block_columns * block_columns
                             : (n / 2 + block_columns - 1) / block_columns * block_columns;
}

// The largest entry of a block, as bits; and whether all are finite, since Inf and NaN are the largest.
template <class S> struct Largest { BitVec<real<S>> bits{}; };

// X (rows x columns) <- X T^-1 in registers, T(k, j) = T[k step_k + j step_j]; `inverse_diagonal` is null for a unit T.
template <class S, int columns, int vectors, bool unit>
GS_INLINE void solve_registers(real<S>* X, off ldx, const real<S>* T, off step_k, off step_j, const S* inverse_diagonal,
                               auto mask, Vec<real<S>> sign, Largest<S>& largest) {
  using R = real<S>;
  using V = Vec<R>;
  constexpr int L = lanes<R>;
  V x[columns][vectors];
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) x[j][v] = load(X + j * ldx + v * L, mask);
#pragma GCC unroll 8
  for (int k = 0; k < columns; k++) {
    V crossed[vectors];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
      if constexpr (!unit) {
        const R* d = (const R*)(inverse_diagonal + k);
        if constexpr (Real<S>::complex) {
          const V turned = swap_pairs(x[k][v]) * alternate<R>(-1, 1);
          x[k][v] = x[k][v] * broadcast(d[0]) + turned * broadcast(d[1]);
        } else {
          x[k][v] = x[k][v] * broadcast(d[0]);
        }
      }
      if constexpr (Real<S>::complex) crossed[v] = swap_pairs(x[k][v]) * sign;
    }
#pragma GCC unroll 8
    for (int j = k + 1; j < columns; j++) {
      const R* t = T + k * step_k + j * step_j;
      const V b = broadcast(t[0]);
#pragma GCC unroll 3
      for (int v = 0; v < vectors; v++) x[j][v] = sub_times_vec(x[j][v], x[k][v], b);
      if constexpr (Real<S>::complex) {
        const V imaginary = broadcast(t[1]);
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) x[j][v] = sub_times_vec(x[j][v], crossed[v], imaginary);
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
      largest.bits = larger(largest.bits, size_bits<R>(x[j][v]));
      store(X + j * ldx + v * L, x[j][v], mask);
    }
}

template <class S, int columns, bool unit>
__attribute__((noinline)) static void solve_columns(idx m, real<S>* X, off ldx, const real<S>* T, off step_k,
                                                    off step_j, const S* inverse_diagonal, bool conj,
                                                    Largest<S>& largest) {
  using R = real<S>;
  constexpr int L = lanes<R>, pair = vector_bytes == 64 ? 2 : 1;
  const Vec<R> sign = conj ? alternate<R>(1, -1) : alternate<R>(-1, 1);
  const idx count = m * width<S>;
  const AllLanes<R> all;
  Largest<S> seen = largest;
  idx i = 0;
  if constexpr (pair == 2)
    for (; i + 2 * L <= count; i += 2 * L)
      solve_registers<S, columns, 2, unit>(X + i, ldx, T, step_k, step_j, inverse_diagonal, all, sign, seen);
  if constexpr (!masks_are_free)
    for (; i + L <= count; i += L)
      solve_registers<S, columns, 1, unit>(X + i, ldx, T, step_k, step_j, inverse_diagonal, all, sign, seen);
  for (; i < count; i += L)
    solve_registers<S, columns, 1, unit>(X + i, ldx, T, step_k, step_j, inverse_diagonal,
                                         first_lanes<R>(count - i < L ? (int)(count - i) : L), sign, seen);
  largest = seen;
}

template <class S, bool unit> GS_INLINE void solve_block(idx columns, idx m, S* X, off ldx, const S* T, off step_k,
                                                         off step_j, const S* inverse_diagonal, bool conj,
                                                         Largest<S>& largest) {
  constexpr int w = width<S>;
  with_constant<1, 2, 3, 4, 5, 6, 7, 8>(
      columns, [&](auto count) __attribute__((always_inline)) {
        solve_columns<S, count.value, unit>(m, (real<S>*)X, ldx * w, (const real<S>*)T, step_k * w, step_j * w,
                                            inverse_diagonal, conj, largest);
      });
}

// X (m x n) <- X T^-1. Shape::cols: T(k, j) = T[k + j ldt] (an upper triangle); Shape::rows: T(k, j) = T[j + k ldt]
// (the transpose of a lower triangle), conjugated if `conj`.
template <class S, Shape shape, bool unit>
static void solve_right(idx m, idx n, S* X, off ldx, const S* T, off ldt, bool conj, Largest<S>& largest) {
  if (m <= 0) return;
  const off step_k = shape == Shape::rows ? ldt : 1, step_j = shape == Shape::rows ? 1 : ldt;
  if (n <= block_columns) {
    S inverse_diagonal[block_columns];
    if constexpr (!unit)
      for (idx k = 0; k < n; k++) inverse_diagonal[k] = inverse(T[k + k * ldt]);
    return solve_block<S, unit>(n, m, X, ldx, T, step_k, step_j, inverse_diagonal, conj, largest);
  }
  const idx n1 = first_half(n);
  solve_right<S, shape, unit>(m, n1, X, ldx, T, ldt, conj, largest);
  update<S, shape, false>(m, n - n1, n1, X, ldx, T + n1 * step_j, ldt, X + n1 * ldx, ldx, conj);
  solve_right<S, shape, unit>(m, n - n1, X + n1 * ldx, ldx, T + n1 * (step_j + step_k), ldt, conj, largest);
}

// X (n x columns) <- T^-1 X with a unit lower T. Eight rows at a time are multiplied by the inverse of their diagonal
// block, which has small entries: |L| <= 1 after pivoting.
template <class S> static void solve_left_unit(idx n, idx columns, S* X, off ldx, const S* T, off ldt) {
  if (columns <= 0) return;
  if (n > block_columns) {
    const idx n1 = first_half(n);
    solve_left_unit(n1, columns, X, ldx, T, ldt);
    update<S, Shape::cols, false>(n - n1, columns, n1, T + n1, ldt, X, ldx, X + n1, ldx, false);
    return solve_left_unit(n - n1, columns, X + n1, ldx, T + n1 + n1 * ldt, ldt);
  }
  constexpr idx chunk = 32;
  alignas(64) S strict[block_columns * block_columns];  // I - T^-1, so that X -= strict X
  alignas(64) S before[block_columns * chunk];
  for (idx i = 0; i < block_columns * block_columns; i++) strict[i] = from_real<S>(0);
  for (idx j = n - 2; j >= 0; j--)  // column j of T^-1 is e_j - sum_k T^-1(:, k) T(k, j), k > j
    for (idx k = j + 1; k < n; k++) {
      const S t = T[k + j * ldt];
      strict[k + j * block_columns] = sub_times(strict[k + j * block_columns], from_real<S>(-1), t);
      for (idx i = k + 1; i < n; i++)
        strict[i + j * block_columns] = sub_times(strict[i + j * block_columns], strict[i + k * block_columns], t);
    }
  for (idx j0 = 0; j0 < columns; j0 += chunk) {
    const idx count = columns - j0 < chunk ? columns - j0 : chunk;
    for (idx j = 0; j < count; j++)
      for (idx i = 0; i < n; i++) before[i + j * block_columns] = X[i + (j0 + j) * ldx];
    update<S, Shape::cols, false>(n, count, n, strict, block_columns, before, block_columns, X + j0 * ldx, ldx, false);
  }
}

}  // namespace gs::GS_SIMD
