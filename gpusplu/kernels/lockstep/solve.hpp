// Substitution with one front in lockstep, forward (to the parent) and backward, for one right-hand side or several.
//
// Of a factor M of the front, the lower one or the transpose of the upper one, e(i, p) is what row i > p of column p
// holds. Forward: x(i) -= e(i, p) x(p); backward: x(p) -= sum of e(i, p) x(i). With `scaled` x(p) is multiplied by the
// reciprocal of the pivot, before (forward) or after that (backward). Which way is which:
//
//   LU        A = L U      forward <lower>, backward <upper, scaled>; the transpose: forward <upper, scaled>, backward
//                          <lower>, all conjugated for the conjugate transpose
//   Cholesky  A = L L^H    forward <lower, scaled>, backward the same conjugated; the transpose: conjugated the other way
//
// rows: rows.get(i, q) and rows.put(i, q, V), local row i of right-hand side q.
#pragma once
#include "lockstep/side.hpp"

LOCKSTEP_BEGIN

template <bool upper_, bool scaled_, bool conjugate_> struct LockstepWay {
  static constexpr bool upper = upper_, scaled = scaled_, conjugate = conjugate_;
};

template <class Way, class V> LOCKSTEP V factor_entry(const LockstepParts<V>& front, int i, int p) {
  if constexpr (!Way::upper) return conj_where<Way::conjugate>(front.lower[p * front.R + i]);
  return conj_where<Way::conjugate>(i < front.W ? front.lower[i * front.R + p]
                                                : front.upper[p * front.H + (i - front.W)]);
}

template <class Way, int n, class V> LOCKSTEP void load_pivots(const LockstepParts<V>& front, int k, V (&e)[n][n]) {
  LOCKSTEP_UNROLL
  for (int p = 0; p < n; p++)
    LOCKSTEP_UNROLL
    for (int i = p; i < n; i++)
      if (i > p || Way::scaled) e[i][p] = factor_entry<Way>(front, k + i, k + p);
}

// Rows begin .. end - 1, on one side of W, lose what pivots k .. k + n - 1 have.
template <class Way, int n, int columns, class V, class Rows>
LOCKSTEP void subtract_pivots(const LockstepParts<V>& front, int k, int begin, int end, const V (&x)[n][columns],
                              const Rows& rows) {
  for (int i = begin; i < end; i++) {
    V e[n];
    LOCKSTEP_UNROLL
    for (int p = 0; p < n; p++) e[p] = factor_entry<Way>(front, i, k + p);
    LOCKSTEP_UNROLL
    for (int q = 0; q < columns; q++) {
      V y = rows.get(i, q);
      LOCKSTEP_UNROLL
      for (int p = 0; p < n; p++) y = mul_sub(e[p], x[p][q], y);
      rows.put(i, q, y);
    }
  }
}

template <class Way, int columns, class V, class Rows>
LOCKSTEP void forward(const LockstepParts<V>& front, const Rows& rows) {
  constexpr int N = TILE_COLUMNS<V>;
  for (int k = 0; k < front.W; k += N)
    with_count<N>(front.W - k < N ? front.W - k : N, [&](auto count) {
      constexpr int n = count.value;
      V e[n][n], x[n][columns];
      load_pivots<Way>(front, k, e);
      LOCKSTEP_UNROLL
      for (int p = 0; p < n; p++)
        LOCKSTEP_UNROLL
        for (int q = 0; q < columns; q++) {
          V v = rows.get(k + p, q);
          LOCKSTEP_UNROLL
          for (int i = 0; i < p; i++) v = mul_sub(e[p][i], x[i][q], v);
          x[p][q] = Way::scaled ? v * e[p][p] : v;
          rows.put(k + p, q, x[p][q]);
        }
      subtract_pivots<Way, n, columns>(front, k, k + n, front.W, x, rows);
      subtract_pivots<Way, n, columns>(front, k, front.W, front.R, x, rows);
    });
}

// x loses the products with rows begin .. end - 1, on one side of W.
template <class Way, int n, int columns, class V, class Rows>
LOCKSTEP void subtract_rows(const LockstepParts<V>& front, int k, int begin, int end, V (&x)[n][columns],
                            const Rows& rows) {
  for (int i = begin; i < end; i++) {
    V y[columns];
    LOCKSTEP_UNROLL
    for (int q = 0; q < columns; q++) y[q] = rows.get(i, q);
    LOCKSTEP_UNROLL
    for (int p = 0; p < n; p++) {
      const V e = factor_entry<Way>(front, i, k + p);
      LOCKSTEP_UNROLL
      for (int q = 0; q < columns; q++) x[p][q] = mul_sub(e, y[q], x[p][q]);
    }
  }
}

template <class Way, int columns, class V, class Rows>
LOCKSTEP void backward(const LockstepParts<V>& front, const Rows& rows) {
  constexpr int N = TILE_COLUMNS<V>;
  for (int k = (front.W - 1) / N * N; k >= 0; k -= N)
    with_count<N>(front.W - k < N ? front.W - k : N, [&](auto count) {
      constexpr int n = count.value;
      V e[n][n], x[n][columns];
      LOCKSTEP_UNROLL
      for (int p = 0; p < n; p++)
        LOCKSTEP_UNROLL
        for (int q = 0; q < columns; q++) x[p][q] = rows.get(k + p, q);
      subtract_rows<Way, n, columns>(front, k, k + n, front.W, x, rows);
      subtract_rows<Way, n, columns>(front, k, front.W, front.R, x, rows);
      load_pivots<Way>(front, k, e);
      LOCKSTEP_UNROLL
      for (int p = n - 1; p >= 0; p--)
        LOCKSTEP_UNROLL
        for (int q = 0; q < columns; q++) {
          V v = x[p][q];
          LOCKSTEP_UNROLL
          for (int i = p + 1; i < n; i++) v = mul_sub(e[i][p], x[i][q], v);
          x[p][q] = Way::scaled ? v * e[p][p] : v;
          rows.put(k + p, q, x[p][q]);
        }
    });
}

LOCKSTEP_END
