// The arithmetic of one front in lockstep, for one part of the lanes: V is a vector, or two of them for complex
// numbers.
//
// Assembly: the panels before the pivots are eliminated, the contribution block afterwards, when the updates of the
// pivots have been written there.
//
// Elimination, LU or Cholesky, of the pivots in their order: blocks of a few pivots, left-looking. A tile of the panels
// is loaded once, subtracts all products with the pivots before it, is finished by the block of pivots, and is stored
// once. At last the contribution block is written, as the update by the pivots: the children's blocks are added to it
// afterwards. A Watch (simd/lockstep_factor.hpp) records entries and replaces pivots.
//
// Substitution, forward (to the parent) and backward, for one right-hand side or several. Of a factor M of the front,
// the lower one or the transpose of the upper one, e(i, p) is the entry in row i > p of column p. Forward: x(i) -=
// e(i, p) x(p); backward: x(p) -= sum of e(i, p) x(i). With `scaled` x(p) is multiplied by the reciprocal of the pivot,
// before (forward) or after that (backward). The directions:
//
//   LU        A = L U      forward <lower>, backward <upper, scaled>; the transpose: forward <upper, scaled>, backward
//                          <lower>, all conjugated for the conjugate transpose
//   Cholesky  A = L L^H    forward <lower, scaled>, backward the same conjugated; the transpose: with the conjugation
//                          in the other direction
#pragma once
#include "simd/lanes.hpp"

#define GS_UNROLL _Pragma("GCC unroll 8")

namespace gs::GS_SIMD {

// A front of W pivots and H rows below them. Where its parts lie: core/plan/lockstep/plan.hpp.
template <class V> struct LockstepParts {
  int W, H, R;
  Entries<V> lower, upper, block;
};

// Calls work(Constant<n>()) with n = count, 1 or more, but at most `most`.
template <int most, class Work> GS_INLINE void with_count(int count, Work&& work) {
  if constexpr (most > 1) {
    if (count < most) return with_count<most - 1>(count, work);
  }
  work(Constant<most>());
}

// ---- assembly

template <bool cholesky, class V> GS_INLINE void clear_panels(const LockstepParts<V>& front) {
  const int count = front.W * (cholesky ? front.R : front.R + front.H);  // the upper panel directly follows the lower
  for (int e = 0; e < count; e++) front.lower[e] = V{};
}

// A child's block of `count` rows, the first `pivots` of which are pivots of the front; row i is row place[i] there.
template <class V> struct LockstepChild {
  Entries<V> block;
  const unsigned short* place;
  int count, pivots;
};

template <bool cholesky, class V>
GS_INLINE void add_to_panels(const LockstepParts<V>& front, const LockstepChild<V>& child) {
  const int m = child.count;
  for (int j = 0; j < child.pivots; j++) {
    const int column = child.place[j];
    const Entries<V> to = front.lower + column * front.R, from = child.block + j * m;
    for (int i = cholesky ? j : 0; i < m; i++) add_to(to[child.place[i]], from[i]);
  }
  if (cholesky) return;
  for (int j = child.pivots; j < m; j++) {
    const int column = child.place[j];
    const Entries<V> to = front.upper + (column - front.W), from = child.block + j * m;
    for (int i = 0; i < child.pivots; i++) add_to(to[child.place[i] * front.H], from[i]);
  }
}

template <bool cholesky, class V>
GS_INLINE void add_to_block(const LockstepParts<V>& front, const LockstepChild<V>& child) {
  const int m = child.count;
  for (int j = child.pivots; j < m; j++) {
    const int column = child.place[j] - front.W;
    const Entries<V> to = front.block + column * front.H, from = child.block + j * m;
    for (int i = cholesky ? j : child.pivots; i < m; i++) add_to(to[child.place[i] - front.W], from[i]);
  }
}

// ---- elimination

// t(i, j) -= left(i, p) right(p, j) for p < count. left: rows next to each other, `left_step` from p to p + 1. right:
// `right_step` from p to p + 1, `column_step` from j to j + 1.
template <bool conj, int m, int n, class V> GS_INLINE void subtract_products(V (&t)[m][n], int count, Entries<V> left,
                                                                             int left_step, Entries<V> right,
                                                                             int right_step, int column_step) {
  for (int p = 0; p < count; p++) {
    V l[m];
    GS_UNROLL
    for (int i = 0; i < m; i++) l[i] = left[p * left_step + i];
    GS_UNROLL
    for (int j = 0; j < n; j++) {
      const V u = conjugate<conj>(right[p * right_step + j * column_step]);
      GS_UNROLL
      for (int i = 0; i < m; i++) t[i][j] = sub_times(t[i][j], l[i], u);
    }
  }
}

// Factors of L(:, p) of this front for column j of the front: as the arguments of subtract_products.
template <class V> struct LockstepRight {
  Entries<V> begin;
  int step, column_step;
};
template <bool cholesky, class V> GS_INLINE LockstepRight<V> right_of(const LockstepParts<V>& front, int j) {
  if constexpr (cholesky) return {front.lower + j, front.R, 1};
  if (j < front.W) return {front.lower + j * front.R, 1, front.R};
  return {front.upper + (j - front.W), front.H, 1};
}

// Pivots k .. k + n - 1.
template <bool cholesky, int n, class V, class Watch>
GS_INLINE void eliminate_pivots(const LockstepParts<V>& front, int k, int position, Watch& watch) {
  const int R = front.R;
  const Entries<V> at = front.lower + (k * R + k);
  V t[n][n];
  GS_UNROLL
  for (int j = 0; j < n; j++) GS_UNROLL
  for (int i = 0; i < n; i++) t[i][j] = cholesky && i < j ? V{} : at[j * R + i];
  const auto right = right_of<cholesky>(front, k);
  subtract_products<cholesky>(t, k, front.lower + k, R, right.begin, right.step, right.column_step);
  GS_UNROLL
  for (int p = 0; p < n; p++) {
    if constexpr (!cholesky) {
      GS_UNROLL
      for (int j = p; j < n; j++) watch.upper(t[p][j]);
      t[p][p] = watch.pivot(t[p][p], position + k + p, front.H == 0);
    } else {
      t[p][p] = watch.root(t[p][p], position + k + p);
    }
    GS_UNROLL
    for (int i = p + 1; i < n; i++) {
      t[i][p] = times(t[i][p], t[p][p]);
      if constexpr (!cholesky) watch.multiplier(t[i][p]);
    }
    GS_UNROLL
    for (int j = p + 1; j < n; j++) GS_UNROLL
    for (int i = p + 1; i < n; i++)
      if (!cholesky || i >= j) t[i][j] = sub_times(t[i][j], t[i][p], cholesky ? conjugate<true>(t[j][p]) : t[p][j]);
  }
  GS_UNROLL
  for (int j = 0; j < n; j++) GS_UNROLL
  for (int i = 0; i < n; i++)
    if (!cholesky || i >= j) at[j * R + i] = t[i][j];
}

// Rows i .. i + m - 1 of columns k .. k + n - 1, below these pivots.
template <bool cholesky, int m, int n, class V, class Watch>
GS_INLINE void finish_rows(const LockstepParts<V>& front, int k, int i0, Watch& watch) {
  const int R = front.R;
  const Entries<V> at = front.lower + (k * R + i0), pivots = front.lower + (k * R + k);
  V t[m][n];
  GS_UNROLL
  for (int j = 0; j < n; j++) GS_UNROLL
  for (int i = 0; i < m; i++) t[i][j] = at[j * R + i];
  const auto right = right_of<cholesky>(front, k);
  subtract_products<cholesky>(t, k, front.lower + i0, R, right.begin, right.step, right.column_step);
  GS_UNROLL
  for (int j = 0; j < n; j++) {
    GS_UNROLL
    for (int p = 0; p < j; p++) {
      const V u = cholesky ? conjugate<true>(pivots[p * R + j]) : pivots[j * R + p];
      GS_UNROLL
      for (int i = 0; i < m; i++) t[i][j] = sub_times(t[i][j], t[i][p], u);
    }
    const V reciprocal = pivots[j * R + j];
    GS_UNROLL
    for (int i = 0; i < m; i++) {
      t[i][j] = times(t[i][j], reciprocal);
      if constexpr (!cholesky) watch.multiplier(t[i][j]);
      at[j * R + i] = t[i][j];
    }
  }
}

// Columns j .. j + m - 1 of rows k .. k + n - 1, right of these pivots. LU.
template <int m, int n, class V, class Watch>
GS_INLINE void finish_columns(const LockstepParts<V>& front, int k, int j0, Watch& watch) {
  const int R = front.R;
  const auto right = right_of<false>(front, j0);
  const Entries<V> at = right.begin + k * right.step, pivots = front.lower + (k * R + k);
  V t[n][m];
  GS_UNROLL
  for (int j = 0; j < m; j++) GS_UNROLL
  for (int i = 0; i < n; i++) t[i][j] = at[i * right.step + j * right.column_step];
  subtract_products<false>(t, k, front.lower + k, R, right.begin, right.step, right.column_step);
  GS_UNROLL
  for (int i = 0; i < n; i++) {
    GS_UNROLL
    for (int p = 0; p < i; p++) {
      const V l = pivots[p * R + i];
      GS_UNROLL
      for (int j = 0; j < m; j++) t[i][j] = sub_times(t[i][j], l, t[p][j]);
    }
    GS_UNROLL
    for (int j = 0; j < m; j++) {
      watch.upper(t[i][j]);
      at[i * right.step + j * right.column_step] = t[i][j];
    }
  }
}

// Calls work(Constant<m>(), i) for tiles of m rows, `most` and then fewer, that cover begin .. end - 1.
template <int most, class Work> GS_INLINE void over_tiles(int begin, int end, Work&& work) {
  int i = begin;
  for (; i + most <= end; i += most) work(Constant<most>(), i);
  if (i < end) with_count<most>(end - i, [&](auto m) { work(m, i); });
}

template <bool cholesky, class V> GS_INLINE void write_block(const LockstepParts<V>& front) {
  constexpr int M = TILE_ROWS<V>, N = TILE_COLUMNS<V>;
  const int H = front.H;
  over_tiles<N>(0, H, [&](auto n, int j0) {
    const auto right = right_of<cholesky>(front, front.W + j0);
    over_tiles<M>(cholesky ? j0 : 0, H, [&](auto m, int i0) {
      V t[m.value][n.value];
      GS_UNROLL
      for (int j = 0; j < n.value; j++) GS_UNROLL
      for (int i = 0; i < m.value; i++) t[i][j] = V{};
      subtract_products<cholesky>(t, front.W, front.lower + (front.W + i0), front.R, right.begin, right.step,
                                  right.column_step);
      const Entries<V> to = front.block + (j0 * H + i0);
      GS_UNROLL
      for (int j = 0; j < n.value; j++) GS_UNROLL
      for (int i = 0; i < m.value; i++) to[j * H + i] = t[i][j];
    });
  });
}

// `position`: of the first pivot in the plan.
template <bool cholesky, class V, class Watch>
GS_INLINE void eliminate(const LockstepParts<V>& front, int position, Watch& watch) {
  constexpr int M = TILE_ROWS<V>, N = TILE_COLUMNS<V>;
  for (int k = 0; k < front.W; k += N)
    with_count<N>(front.W - k, [&](auto n) {
      eliminate_pivots<cholesky, n.value>(front, k, position, watch);
      over_tiles<M>(k + n.value, front.R,
                    [&](auto m, int i) { finish_rows<cholesky, m.value, n.value>(front, k, i, watch); });
      if constexpr (!cholesky) {
        const auto finish = [&](auto m, int j) { finish_columns<m.value, n.value>(front, k, j, watch); };
        over_tiles<M>(k + n.value, front.W, finish);
        over_tiles<M>(front.W, front.R, finish);
      }
    });
  write_block<cholesky>(front);
}

// ---- substitution

// A factor M: e(i, p) for i < W is pivots[i row_step + p column_step], and e(W + i, p) is below[p below_step + i].
template <class V> struct LockstepTriangle {
  int W, H;
  Entries<V> pivots;
  int row_step, column_step;
  Entries<V> below;
  int below_step;
};
template <bool upper, class V> GS_INLINE LockstepTriangle<V> triangle_of(const LockstepParts<V>& front) {
  if constexpr (upper) return {front.W, front.H, front.lower, front.R, 1, front.upper, front.H};
  return {front.W, front.H, front.lower, 1, front.R, front.lower + front.W, front.R};
}

// The rows of a front in the vectors of the whole system.
template <class V> struct LockstepRows {
  Entries<V> x;
  const idx* below;
  int first;
};

template <bool scaled, bool conj, int n, class V>
GS_INLINE void load_pivots(const LockstepTriangle<V>& M, int k, V (&e)[n][n]) {
  GS_UNROLL
  for (int p = 0; p < n; p++) GS_UNROLL
  for (int i = p; i < n; i++)
    if (i > p || scaled) e[i][p] = conjugate<conj>(M.pivots[(k + i) * M.row_step + (k + p) * M.column_step]);
}

// Pivots k .. k + n - 1 of a forward solve. Not inlined: solves of a factor and those right after a factorization share
// the code.
template <bool upper, bool scaled, int columns, int n, class V>
__attribute__((noinline)) static void forward_pivots(const LockstepParts<V>& front, const LockstepRows<V>& rows,
                                                     int k) {
  const LockstepTriangle<V> M = triangle_of<upper>(front);
  V e[n][n], x[n][columns];
  load_pivots<scaled, false>(M, k, e);
  const Entries<V> own = rows.x + (rows.first + k) * columns;
  GS_UNROLL
  for (int p = 0; p < n; p++) GS_UNROLL
  for (int q = 0; q < columns; q++) {
    V v = own[p * columns + q];
    GS_UNROLL
    for (int i = 0; i < p; i++) v = sub_times(v, e[p][i], x[i][q]);
    own[p * columns + q] = x[p][q] = scaled ? times(v, e[p][p]) : v;
  }
  const auto update = [&](Entries<V> to, Entries<V> entries, int step) {
    V entry[n];
    GS_UNROLL
    for (int p = 0; p < n; p++) entry[p] = entries[p * step];
    GS_UNROLL
    for (int q = 0; q < columns; q++) {
      V y = to[q];
      GS_UNROLL
      for (int p = 0; p < n; p++) y = sub_times(y, entry[p], x[p][q]);
      to[q] = y;
    }
  };
  for (int i = k + n; i < M.W; i++)
    update(rows.x + (rows.first + i) * columns, M.pivots + (i * M.row_step + k * M.column_step), M.column_step);
  for (int i = 0; i < M.H; i++)
    update(rows.x + rows.below[i] * columns, M.below + (k * M.below_step + i), M.below_step);
}
template <bool upper, bool scaled, int columns, class V>
GS_INLINE void forward(const LockstepParts<V>& front, const LockstepRows<V>& rows) {
  constexpr int N = TILE_COLUMNS<V>;
  for (int k = 0; k < front.W; k += N)
    with_count<N>(front.W - k, [&](auto n) { forward_pivots<upper, scaled, columns, n.value>(front, rows, k); });
}

// sum(p, q) -= e(i, k + p) x(i, q) over rows i, in `chains` sums that do not wait for each other.
template <int chains, int n, int columns, class V, class Entry, class Row>
GS_INLINE void subtract_rows(V (&x)[n][columns], int begin, int end, Entry&& entry, Row&& row) {
  V more[chains][n][columns];
  GS_UNROLL
  for (int c = 1; c < chains; c++) GS_UNROLL
  for (int p = 0; p < n; p++) GS_UNROLL
  for (int q = 0; q < columns; q++) more[c][p][q] = V{};
  int i = begin;
  for (; i + chains <= end; i += chains) {
    GS_UNROLL
    for (int c = 0; c < chains; c++) GS_UNROLL
    for (int q = 0; q < columns; q++) {
      const V y = row(i + c)[q];
      GS_UNROLL
      for (int p = 0; p < n; p++) {
        V& sum = c == 0 ? x[p][q] : more[c][p][q];
        sum = sub_times(sum, entry(i + c, p), y);
      }
    }
  }
  for (; i < end; i++) GS_UNROLL
  for (int q = 0; q < columns; q++) {
    const V y = row(i)[q];
    GS_UNROLL
    for (int p = 0; p < n; p++) x[p][q] = sub_times(x[p][q], entry(i, p), y);
  }
  GS_UNROLL
  for (int c = 1; c < chains; c++) GS_UNROLL
  for (int p = 0; p < n; p++) GS_UNROLL
  for (int q = 0; q < columns; q++) x[p][q] = plus(x[p][q], more[c][p][q]);
}

template <bool upper, bool scaled, bool conj, int columns, int n, class V>
__attribute__((noinline)) static void backward_pivots(const LockstepParts<V>& front, const LockstepRows<V>& rows,
                                                      int k) {
  const LockstepTriangle<V> M = triangle_of<upper>(front);
  constexpr int chains = columns > 1 ? 1 : n == 1 ? 4 : 2;
  V e[n][n], x[n][columns];
  const Entries<V> own = rows.x + (rows.first + k) * columns;
  GS_UNROLL
  for (int p = 0; p < n; p++) GS_UNROLL
  for (int q = 0; q < columns; q++) x[p][q] = own[p * columns + q];
  subtract_rows<chains>(
      x, 0, M.H, [&](int i, int p) { return conjugate<conj>(M.below[(k + p) * M.below_step + i]); },
      [&](int i) { return rows.x + rows.below[i] * columns; });
  subtract_rows<1>(
      x, k + n, M.W, [&](int i, int p) { return conjugate<conj>(M.pivots[i * M.row_step + (k + p) * M.column_step]); },
      [&](int i) { return rows.x + (rows.first + i) * columns; });
  load_pivots<scaled, conj>(M, k, e);
  GS_UNROLL
  for (int p = n - 1; p >= 0; p--) GS_UNROLL
  for (int q = 0; q < columns; q++) {
    V v = x[p][q];
    GS_UNROLL
    for (int i = p + 1; i < n; i++) v = sub_times(v, e[i][p], x[i][q]);
    own[p * columns + q] = x[p][q] = scaled ? times(v, e[p][p]) : v;
  }
}
template <bool upper, bool scaled, bool conj, int columns, class V>
GS_INLINE void backward(const LockstepParts<V>& front, const LockstepRows<V>& rows) {
  constexpr int N = TILE_COLUMNS<V>;
  for (int k = (front.W - 1) / N * N; k >= 0; k -= N)
    with_count<N>(front.W - k, [&](auto n) { backward_pivots<upper, scaled, conj, columns, n.value>(front, rows, k); });
}

}  // namespace gs::GS_SIMD
