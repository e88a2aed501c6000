// Substitution with one front in lockstep, forward (to the parent) and backward, for one right-hand side or several.
//
// Of a factor M of the front, the lower one or the transpose of the upper one, e(i, p) is the entry in row i > p of
// column p. Forward: x(i) -= e(i, p) x(p); backward: x(p) -= sum of e(i, p) x(i). With `scaled` x(p) is multiplied by
// the reciprocal of the pivot, before (forward) or after that (backward). The directions:
//
//   LU        A = L U      forward <lower>, backward <upper, scaled>; the transpose: forward <upper, scaled>, backward
//                          <lower>, all conjugated for the conjugate transpose
//   Cholesky  A = L L^H    forward <lower, scaled>, backward the same conjugated; the transpose: with the conjugation
//                          in the other direction
//
// rows: rows.pivot(i, q) is row i < W of right-hand side q, rows.below(i, q) row W + i; both are references.
#pragma once
#include "lockstep/side.hpp"

LOCKSTEP_BEGIN

template <bool upper_, bool scaled_, bool conjugate_> struct LockstepMode {
  static constexpr bool upper = upper_, scaled = scaled_, conjugate = conjugate_;
};

// e(i, p) for i < W, and e(W + i, p).
template <class Mode, class V> LOCKSTEP V pivot_entry(const LockstepParts<V>& front, int i, int p) {
  return conj_where<Mode::conjugate>(Mode::upper ? front.lower[i * front.R + p] : front.lower[p * front.R + i]);
}
template <class Mode, class V> LOCKSTEP V below_entry(const LockstepParts<V>& front, int i, int p) {
  return conj_where<Mode::conjugate>(Mode::upper ? front.upper[p * front.H + i]
                                                 : front.lower[p * front.R + front.W + i]);
}

template <class Mode, int n, class V> LOCKSTEP void load_pivots(const LockstepParts<V>& front, int k, V (&e)[n][n]) {
  LOCKSTEP_UNROLL
  for (int p = 0; p < n; p++) LOCKSTEP_UNROLL
  for (int i = p; i < n; i++)
    if (i > p || Mode::scaled) e[i][p] = pivot_entry<Mode>(front, k + i, k + p);
}

template <class Mode, int columns, class V, class Rows>
LOCKSTEP void forward(const LockstepParts<V>& front, const Rows& rows) {
  constexpr int N = TILE_COLUMNS<V>;
  for (int k = 0; k < front.W; k += N)
    with_count<N>(front.W - k < N ? front.W - k : N, [&](auto count) {
      constexpr int n = count.value;
      V e[n][n], x[n][columns];
      load_pivots<Mode>(front, k, e);
      LOCKSTEP_UNROLL
      for (int p = 0; p < n; p++) LOCKSTEP_UNROLL
      for (int q = 0; q < columns; q++) {
        V v = rows.pivot(k + p, q);
        LOCKSTEP_UNROLL
        for (int i = 0; i < p; i++) v = mul_sub(e[p][i], x[i][q], v);
        x[p][q] = Mode::scaled ? v * e[p][p] : v;
        rows.pivot(k + p, q) = x[p][q];
      }
      const auto update = [&](V& to, const V(&entry)[n], int q) {
        V y = to;
        LOCKSTEP_UNROLL
        for (int p = 0; p < n; p++) y = mul_sub(entry[p], x[p][q], y);
        to = y;
      };
      for (int i = k + n; i < front.W; i++) {
        V entry[n];
        LOCKSTEP_UNROLL
        for (int p = 0; p < n; p++) entry[p] = pivot_entry<Mode>(front, i, k + p);
        LOCKSTEP_UNROLL
        for (int q = 0; q < columns; q++) update(rows.pivot(i, q), entry, q);
      }
      for (int i = 0; i < front.H; i++) {
        V entry[n];
        LOCKSTEP_UNROLL
        for (int p = 0; p < n; p++) entry[p] = below_entry<Mode>(front, i, k + p);
        LOCKSTEP_UNROLL
        for (int q = 0; q < columns; q++) update(rows.below(i, q), entry, q);
      }
    });
}

// sum(p, q) -= e(i, k + p) x(i, q) over rows i, in `chains` sums that do not wait for each other.
template <int chains, int n, int columns, class V, class Entry, class Row>
LOCKSTEP void subtract_rows(V (&x)[n][columns], int begin, int end, Entry&& entry, Row&& row) {
  V more[chains][n][columns];
  LOCKSTEP_UNROLL
  for (int c = 1; c < chains; c++) LOCKSTEP_UNROLL
  for (int p = 0; p < n; p++) LOCKSTEP_UNROLL
  for (int q = 0; q < columns; q++) more[c][p][q] = V{};
  int i = begin;
  for (; i + chains <= end; i += chains) {
    LOCKSTEP_UNROLL
    for (int c = 0; c < chains; c++) LOCKSTEP_UNROLL
    for (int q = 0; q < columns; q++) {
      const V y = row(i + c, q);
      LOCKSTEP_UNROLL
      for (int p = 0; p < n; p++) {
        V& sum = c == 0 ? x[p][q] : more[c][p][q];
        sum = mul_sub(entry(i + c, p), y, sum);
      }
    }
  }
  for (; i < end; i++) LOCKSTEP_UNROLL
  for (int q = 0; q < columns; q++) {
    const V y = row(i, q);
    LOCKSTEP_UNROLL
    for (int p = 0; p < n; p++) x[p][q] = mul_sub(entry(i, p), y, x[p][q]);
  }
  LOCKSTEP_UNROLL
  for (int c = 1; c < chains; c++) LOCKSTEP_UNROLL
  for (int p = 0; p < n; p++) LOCKSTEP_UNROLL
  for (int q = 0; q < columns; q++) x[p][q] = x[p][q] + more[c][p][q];
}

template <class Mode, int columns, class V, class Rows>
LOCKSTEP void backward(const LockstepParts<V>& front, const Rows& rows) {
  constexpr int N = TILE_COLUMNS<V>;
  for (int k = (front.W - 1) / N * N; k >= 0; k -= N)
    with_count<N>(front.W - k < N ? front.W - k : N, [&](auto count) {
      constexpr int n = count.value, chains = columns > 1 ? 1 : n == 1 ? 4 : 2;
      V e[n][n], x[n][columns];
      LOCKSTEP_UNROLL
      for (int p = 0; p < n; p++) LOCKSTEP_UNROLL
      for (int q = 0; q < columns; q++) x[p][q] = rows.pivot(k + p, q);
      subtract_rows<chains>(
          x, 0, front.H, [&](int i, int p) { return below_entry<Mode>(front, i, k + p); },
          [&](int i, int q) { return rows.below(i, q); });
      subtract_rows<1>(
          x, k + n, front.W, [&](int i, int p) { return pivot_entry<Mode>(front, i, k + p); },
          [&](int i, int q) { return rows.pivot(i, q); });
      load_pivots<Mode>(front, k, e);
      LOCKSTEP_UNROLL
      for (int p = n - 1; p >= 0; p--) LOCKSTEP_UNROLL
      for (int q = 0; q < columns; q++) {
        V v = x[p][q];
        LOCKSTEP_UNROLL
        for (int i = p + 1; i < n; i++) v = mul_sub(e[i][p], x[i][q], v);
        x[p][q] = Mode::scaled ? v * e[p][p] : v;
        rows.pivot(k + p, q) = x[p][q];
      }
    });
}

LOCKSTEP_END
