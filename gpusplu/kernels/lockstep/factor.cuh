// Arguments of the kernels that factor batches, and the parts of a front for one lane.
#pragma once
#include "lockstep/lanes.cuh"

struct LaneFactorArgs {
  const LockstepFront* fronts;
  const int* slot;  // of every front: where its tiles begin in item_ptr; of large tiles LANE_WARPS slots each
  const int* item_ptr;
  const int2* item;
  const double* item_scale;  // null: ones
  const LockstepTask* leaves;
  const int *team_fronts, *wide_fronts;  // those above the cut that teams factor, children first
  const FrontTile* tiles;                // of the others, as they can be computed
  const int* above;                      // of every front: its number among those above the cut
  const int* tile_begin;                 // by that number: where its large tiles begin in `flags`
  const unsigned* pending;               // by that number: arrivals of its children in `arrived`
  int leaf_count, team_count, wide_count, tile_count;
  int above_count;  // fronts above the cut; `arrived` has as many words a group, `flags` tile_count
  int n, groups;
  int nnz;
  long long factor_size, shared_size, task_size;
  const Scalar* values;
  Scalar *factor, *shared, *stacks;     // stacks: task_size entries of every warp that is launched
  unsigned *tickets, *arrived, *flags;  // zero before
  LaneReport* reports;
  double tiny, singular;
};

// ---- Tiles of M x N entries of a front in registers, one system per lane: subtraction of products, and elimination of
// pivots.
//
// Whatever tiles a front is cut into, an entry gets the same bits: it is assembled, products of L and U are subtracted
// one by one for ascending pivots, and an entry of L is then multiplied by the reciprocal of its pivot.

// Entries of L or U that products are made of: entry k of row (or column) i lies at from[(i * step + k * pivot) *
// WARP_SIZE].
struct Operand {
  const Scalar* from;
  int step, pivot;
};

// a -= L U over pivots begin .. end - 1; rows from m on and columns from n on are left as they are.
template <int M, int N>
DEVICE void subtract_products(Scalar (&a)[M][N], const Operand& l, const Operand& u, int m, int n, int begin, int end) {
  Scalar x[M], y[N];
  for_all<M>([&](int i) { x[i] = Scalar(0); });
  for_all<N>([&](int j) { y[j] = Scalar(0); });
#pragma unroll 2
  for (int k = begin; k < end; k++) {
    for_all<M>([&](int i) {
      if (i < m) x[i] = l.from[(i * l.step + k * l.pivot) * WARP_SIZE];
    });
    for_all<N>([&](int j) {
      if (j < n) y[j] = u.from[(j * u.step + k * u.pivot) * WARP_SIZE];
    });
    for_all<M, N>([&](int i, int j) { a[i][j] = mul_sub(x[i], CHOLESKY ? conj(y[j]) : y[j], a[i][j]); });
  }
}

// The diagonal tile: L below, U above (LU), reciprocals of the pivots on the diagonal. `position`: of its first pivot.
template <int N>
DEVICE void eliminate_diagonal(Scalar (&a)[N][N], int n, int position, const LanePivots& pivots, LaneStatus& status) {
#pragma unroll
  for (int k = 0; k < N; k++) {
    if (k >= n) break;
    if constexpr (!CHOLESKY)
#pragma unroll
      for (int j = k; j < N; j++)
        if (j < n) status.upper = max(status.upper, magnitude_bits(a[k][j]));
    const Scalar r = pivots.reciprocal_of(a[k][k], position + k, status);
    a[k][k] = r;
#pragma unroll
    for (int i = k + 1; i < N; i++) {
      a[i][k] = a[i][k] * r;
      if (!CHOLESKY && i < n) status.multiplier = max(status.multiplier, magnitude_bits(a[i][k]));
    }
    for_all<N, N>([&](int i, int j) {
      if (i > k && j > k && (!CHOLESKY || i >= j))
        a[i][j] = mul_sub(a[i][k], CHOLESKY ? conj(a[j][k]) : a[k][j], a[i][j]);
    });
  }
}

// Rows below a diagonal tile `d` of n pivots become rows of L.
template <int M, int N>
DEVICE void eliminate_below(Scalar (&a)[M][N], const Scalar (&d)[N][N], int m, int n, LaneStatus& status) {
#pragma unroll
  for (int k = 0; k < N; k++) {
    if (k >= n) break;
    for_all<M>([&](int i) {
      a[i][k] = a[i][k] * d[k][k];
      if (!CHOLESKY && i < m) status.multiplier = max(status.multiplier, magnitude_bits(a[i][k]));
#pragma unroll
      for (int j = k + 1; j < N; j++) a[i][j] = mul_sub(a[i][k], CHOLESKY ? conj(d[j][k]) : d[k][j], a[i][j]);
    });
  }
}

// Columns to the right of a diagonal tile `d` of m pivots become columns of U.
template <int M, int N>
DEVICE void eliminate_right(Scalar (&a)[M][N], const Scalar (&d)[M][M], int m, int n, LaneStatus& status) {
#pragma unroll
  for (int k = 0; k < M; k++) {
    if (k >= m) break;
    for_all<N>([&](int j) {
      if (j < n) status.upper = max(status.upper, magnitude_bits(a[k][j]));
#pragma unroll
      for (int i = k + 1; i < M; i++) a[i][j] = mul_sub(d[i][k], a[k][j], a[i][j]);
    });
  }
}

// The first m rows and n columns between registers and memory, with entry (i, j) at [(i + j * ld) * WARP_SIZE].
template <int M, int N> DEVICE void load_tile(Scalar (&a)[M][N], const Scalar* from, int ld) {
  for_all<M, N>([&](int i, int j) { a[i][j] = from[(i + j * ld) * WARP_SIZE]; });
}
template <int M, int N> DEVICE void store_tile(const Scalar (&a)[M][N], Scalar* to, int ld, int m, int n) {
  for_all<M, N>([&](int i, int j) {
    if (i < m && j < n) to[(i + j * ld) * WARP_SIZE] = a[i][j];
  });
}

// ---- A front for one lane

struct LaneFront {
  int W, H, R;
  Scalar *lower, *upper, *block;

  DEVICE LaneFront(const LaneFactorArgs& args, const LockstepFront& front, int group, Scalar* stack)
      : W(front.width), H(front.rows - front.width), R(front.rows) {
    lower = lane_entries(args.factor, group, args.factor_size) + front.factor * WARP_SIZE;
    upper = lower + (long long)R * W * WARP_SIZE;
    block = (front.block_shared ? lane_entries(args.shared, group, args.shared_size) : stack) + front.block * WARP_SIZE;
  }
  // Rows from i on of L, and columns from j on of U, as products need them.
  DEVICE Operand rows_of_l(int i) const { return {lower + i * WARP_SIZE, 1, R}; }
  DEVICE Operand columns_of_u(int j) const {
    if (CHOLESKY) return rows_of_l(j);
    if (j < W) return {lower + j * R * WARP_SIZE, R, 1};
    return {upper + (j - W) * WARP_SIZE, 1, H};
  }
};
