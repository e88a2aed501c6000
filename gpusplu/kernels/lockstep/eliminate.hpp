// The pivots of a front are eliminated in lockstep, LU or Cholesky, in their order.
//
// Blocks of a few pivots, left-looking: a tile of the panels is loaded once, subtracts all products with the pivots
// before it, is finished by the block of pivots, and is stored once. At last the contribution block is written, as the
// update by the pivots: the children's blocks are added to it afterwards.
#pragma once
#include "lockstep/side.hpp"

LOCKSTEP_BEGIN

// t(i, j) -= left(i, p) right(p, j) for p < count. left: rows next to each other, `left_step` from p to p + 1. right:
// `right_step` from p to p + 1, `column_step` from j to j + 1.
template <bool conjugate, int m, int n, class V>
LOCKSTEP void subtract_products(V (&t)[m][n], int count, Entries<V> left, int left_step, Entries<V> right,
                                int right_step, int column_step) {
  for (int p = 0; p < count; p++) {
    V l[m];
    LOCKSTEP_UNROLL
    for (int i = 0; i < m; i++) l[i] = left[p * left_step + i];
    LOCKSTEP_UNROLL
    for (int j = 0; j < n; j++) {
      const V u = conj_where<conjugate>(right[p * right_step + j * column_step]);
      LOCKSTEP_UNROLL
      for (int i = 0; i < m; i++) t[i][j] = mul_sub(l[i], u, t[i][j]);
    }
  }
}

// Factors of L(:, p) of this front for column j of the front: as the arguments of subtract_products.
template <class V> struct LockstepRight {
  Entries<V> begin;
  int step, column_step;
};
template <bool cholesky, class V> LOCKSTEP LockstepRight<V> right_of(const LockstepParts<V>& front, int j) {
  if constexpr (cholesky) return {front.lower + j, front.R, 1};
  if (j < front.W) return {front.lower + j * front.R, 1, front.R};
  return {front.upper + (j - front.W), front.H, 1};
}

// Pivots k .. k + n - 1.
template <bool cholesky, int n, class V, class Watch>
LOCKSTEP void eliminate_pivots(const LockstepParts<V>& front, int k, int position, Watch& watch) {
  const int R = front.R;
  const Entries<V> at = front.lower + (k * R + k);
  V t[n][n];
  LOCKSTEP_UNROLL
  for (int j = 0; j < n; j++) LOCKSTEP_UNROLL
  for (int i = 0; i < n; i++) t[i][j] = cholesky && i < j ? V{} : at[j * R + i];
  const auto right = right_of<cholesky>(front, k);
  subtract_products<cholesky>(t, k, front.lower + k, R, right.begin, right.step, right.column_step);
  LOCKSTEP_UNROLL
  for (int p = 0; p < n; p++) {
    if constexpr (!cholesky) {
      LOCKSTEP_UNROLL
      for (int j = p; j < n; j++) watch.upper(t[p][j]);
      t[p][p] = watch.pivot(t[p][p], position + k + p, front.H == 0);
    } else {
      t[p][p] = watch.root(t[p][p], position + k + p);
    }
    LOCKSTEP_UNROLL
    for (int i = p + 1; i < n; i++) {
      t[i][p] = t[i][p] * t[p][p];
      if constexpr (!cholesky) watch.multiplier(t[i][p]);
    }
    LOCKSTEP_UNROLL
    for (int j = p + 1; j < n; j++) LOCKSTEP_UNROLL
    for (int i = p + 1; i < n; i++)
      if (!cholesky || i >= j) t[i][j] = mul_sub(t[i][p], cholesky ? conj(t[j][p]) : t[p][j], t[i][j]);
  }
  LOCKSTEP_UNROLL
  for (int j = 0; j < n; j++) LOCKSTEP_UNROLL
  for (int i = 0; i < n; i++)
    if (!cholesky || i >= j) at[j * R + i] = t[i][j];
}

// Rows i .. i + m - 1 of columns k .. k + n - 1, below these pivots.
template <bool cholesky, int m, int n, class V, class Watch>
LOCKSTEP void finish_rows(const LockstepParts<V>& front, int k, int i0, Watch& watch) {
  const int R = front.R;
  const Entries<V> at = front.lower + (k * R + i0), pivots = front.lower + (k * R + k);
  V t[m][n];
  LOCKSTEP_UNROLL
  for (int j = 0; j < n; j++) LOCKSTEP_UNROLL
  for (int i = 0; i < m; i++) t[i][j] = at[j * R + i];
  const auto right = right_of<cholesky>(front, k);
  subtract_products<cholesky>(t, k, front.lower + i0, R, right.begin, right.step, right.column_step);
  LOCKSTEP_UNROLL
  for (int j = 0; j < n; j++) {
    LOCKSTEP_UNROLL
    for (int p = 0; p < j; p++) {
      const V u = cholesky ? conj(pivots[p * R + j]) : pivots[j * R + p];
      LOCKSTEP_UNROLL
      for (int i = 0; i < m; i++) t[i][j] = mul_sub(t[i][p], u, t[i][j]);
    }
    const V reciprocal = pivots[j * R + j];
    LOCKSTEP_UNROLL
    for (int i = 0; i < m; i++) {
      t[i][j] = t[i][j] * reciprocal;
      if constexpr (!cholesky) watch.multiplier(t[i][j]);
      at[j * R + i] = t[i][j];
    }
  }
}

// Columns j .. j + m - 1 of rows k .. k + n - 1, right of these pivots. LU.
template <int m, int n, class V, class Watch>
LOCKSTEP void finish_columns(const LockstepParts<V>& front, int k, int j0, Watch& watch) {
  const int R = front.R;
  const auto right = right_of<false>(front, j0);
  const Entries<V> at = right.begin + k * right.step, pivots = front.lower + (k * R + k);
  V t[n][m];
  LOCKSTEP_UNROLL
  for (int j = 0; j < m; j++) LOCKSTEP_UNROLL
  for (int i = 0; i < n; i++) t[i][j] = at[i * right.step + j * right.column_step];
  subtract_products<false>(t, k, front.lower + k, R, right.begin, right.step, right.column_step);
  LOCKSTEP_UNROLL
  for (int i = 0; i < n; i++) {
    LOCKSTEP_UNROLL
    for (int p = 0; p < i; p++) {
      const V l = pivots[p * R + i];
      LOCKSTEP_UNROLL
      for (int j = 0; j < m; j++) t[i][j] = mul_sub(l, t[p][j], t[i][j]);
    }
    LOCKSTEP_UNROLL
    for (int j = 0; j < m; j++) {
      watch.upper(t[i][j]);
      at[i * right.step + j * right.column_step] = t[i][j];
    }
  }
}

// Calls work(Count<m>(), i) for tiles of m rows, `most` and then fewer, that cover begin .. end - 1. Members take
// turns.
template <int most, class Team, class Work>
LOCKSTEP void over_tiles(const Team& team, int begin, int end, Work&& work) {
  int i = begin + team.rank * most;
  for (; i + most <= end; i += team.size * most) work(Count<most>(), i);
  if (i < end) with_count<most>(end - i, [&](auto m) { work(m, i); });
}

template <bool cholesky, class Team, class V>
LOCKSTEP void write_block(const Team& team, const LockstepParts<V>& front) {
  constexpr int M = TILE_ROWS<V>, N = TILE_COLUMNS<V>;
  const int H = front.H;
  over_tiles<N>(team, 0, H, [&](auto n, int j0) {
    const auto right = right_of<cholesky>(front, front.W + j0);
    over_tiles<M>(Single{}, cholesky ? j0 : 0, H, [&](auto m, int i0) {
      V t[m.value][n.value];
      LOCKSTEP_UNROLL
      for (int j = 0; j < n.value; j++) LOCKSTEP_UNROLL
      for (int i = 0; i < m.value; i++) t[i][j] = V{};
      subtract_products<cholesky>(t, front.W, front.lower + (front.W + i0), front.R, right.begin, right.step,
                                  right.column_step);
      const Entries<V> to = front.block + (j0 * H + i0);
      LOCKSTEP_UNROLL
      for (int j = 0; j < n.value; j++) LOCKSTEP_UNROLL
      for (int i = 0; i < m.value; i++) to[j * H + i] = t[i][j];
    });
  });
}

// `position`: of the first pivot in the plan.
template <bool cholesky, class Team, class V, class Watch>
LOCKSTEP void eliminate(const Team& team, const LockstepParts<V>& front, int position, Watch& watch) {
  constexpr int M = TILE_ROWS<V>, N = TILE_COLUMNS<V>;
  for (int k = 0; k < front.W; k += N)
    with_count<N>(front.W - k < N ? front.W - k : N, [&](auto n) {
      if (team.rank == 0) eliminate_pivots<cholesky, n.value>(front, k, position, watch);
      team.sync();
      over_tiles<M>(team, k + n.value, front.R,
                    [&](auto m, int i) { finish_rows<cholesky, m.value, n.value>(front, k, i, watch); });
      if constexpr (!cholesky) {
        over_tiles<M>(team, k + n.value, front.W,
                      [&](auto m, int j) { finish_columns<m.value, n.value>(front, k, j, watch); });
        over_tiles<M>(team, front.W, front.R,
                      [&](auto m, int j) { finish_columns<m.value, n.value>(front, k, j, watch); });
      }
      team.sync();
    });
  write_block<cholesky>(team, front);
}

LOCKSTEP_END
