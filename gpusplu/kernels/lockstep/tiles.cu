// Large fronts: their tiles are tasks of a block, for 32 systems each, so that several blocks share a front.
//
// Kernel: factor_tiles, after those of fronts.cu. Grid: no more than is resident; block: LANE_THREADS. Shared memory:
// FRONT_TILE^2 * WARP_SIZE scalars and 16 bytes. A ticket is a tile and a group, all groups of a tile one after
// another; it waits for tiles and fronts with earlier tickets only. A tile is summed in shared memory, PART_COLUMNS
// columns a warp; subtracts in registers the products of tiles to the left and above, as they become available; is
// finished by rows or columns, and is stored once. `flags` marks finished tiles, `arrived` counts finished children of
// a front. Deterministic.
#include "lockstep/factor.cuh"

namespace {

constexpr int S = FRONT_TILE, VECTORS = S / LANE_WARPS;  // rows or columns of a tile that a warp finishes
using Vectors = Scalar[VECTORS][S];

struct Control {
  int ticket, available;
};
static_assert(sizeof(Control) <= LANE_CONTROL_BYTES);

// A tile of a front of one group.
struct Tile {
  const LaneFront& front;
  int row, column, P, T;
  unsigned* flags;  // of the front

  DEVICE int first(int t) const { return t < P ? t * S : front.W + (t - P) * S; }
  DEVICE int size(int t) const { return min(S, (t < P ? front.W : front.R) - first(t)); }
  DEVICE int steps() const { return min(min(row, column), P); }
  DEVICE unsigned* flag(int r, int c) const { return flags + tile_number(r, c, P, T, CHOLESKY); }
  // The operands of step k; U of Cholesky is L. Without order: acquiring polls empty the first-level cache.
  DEVICE unsigned* other(int k) const { return CHOLESKY ? flag(column, k) : flag(k, column); }
  DEVICE bool is_ready(int k) const { return load_relaxed(flag(row, k)) && load_relaxed(other(k)); }
  DEVICE void acquire(int k) const { load_acquire(flag(row, k)), load_acquire(other(k)); }
};

// By the first warp: steps that are ready, at least one more than `done`.
DEVICE int wait_for_steps(const Tile& tile, int done) {
  const int steps = tile.steps(), k = done + lane_of();
  for (;;) {
    const unsigned missing = __ballot_sync(~0u, k < steps && !tile.is_ready(k));
    const int available = missing ? done + __ffs(missing) - 1 : min(steps, done + WARP_SIZE);
    if (available > done) {
      if (k < available) tile.acquire(k);
      return available;
    }
  }
}

DEVICE void wait_until(const unsigned* counter, unsigned value) {
  if (threadIdx.x == 0) wait_for_count(counter, value);
  __syncthreads();
}

// Registers of this warp while products are subtracted.
struct Subtile {
  int i, j, m, n;  // in the tile; none if m or n is not positive
  DEVICE explicit Subtile(const Tile& tile)
      : i(warp_of() % (S / SUBTILE_ROWS) * SUBTILE_ROWS), j(warp_of() / (S / SUBTILE_ROWS) * SUBTILE_COLUMNS) {
    m = min(SUBTILE_ROWS, tile.size(tile.row) - i), n = min(SUBTILE_COLUMNS, tile.size(tile.column) - j);
    if (CHOLESKY && tile.row == tile.column && i + SUBTILE_ROWS <= j) m = 0;
  }
  DEVICE bool is_empty() const { return m <= 0 || n <= 0; }
};
static_assert(S / SUBTILE_ROWS * (S / SUBTILE_COLUMNS) == LANE_WARPS, "a subtile is a warp's");
using Register = Scalar[SUBTILE_ROWS][SUBTILE_COLUMNS];

DEVICE void subtract_steps(const Tile& tile, const Subtile& at, Register& a, Control& control) {
  const LaneFront& front = tile.front;
  const Operand l = front.rows_of_l(tile.first(tile.row) + at.i);
  const int j = tile.first(tile.column) + at.j;
  const Operand u = front.columns_of_u(min(j, front.R - 1));
#pragma unroll 1
  for (int done = 0, steps = tile.steps(); done < steps;) {
    if (threadIdx.x < WARP_SIZE) {
      const int available = wait_for_steps(tile, done);
      if (threadIdx.x == 0) control.available = available;
    }
    __syncthreads();
    const int available = control.available;
    if (!at.is_empty()) subtract_products(a, l, u, at.m, at.n, done * S, min(available * S, front.W));
    done = available;
    __syncthreads();
  }
}

// Rows of a tile of LU's diagonal, row r with warp r % LANE_WARPS, pivot by pivot; `shared`: the tile.
DEVICE void eliminate_rows(Vectors& a, int n, int position, const LanePivots& pivots, Scalar* shared,
                           LaneStatus& status) {
#pragma unroll
  for (int k = 0; k < S; k++) {
    if (k >= n) break;
    Scalar* row = shared + k * WARP_SIZE;
    if (warp_of() == k % LANE_WARPS) {
      Scalar(&own)[S] = a[k / LANE_WARPS];
#pragma unroll
      for (int j = k; j < S; j++)
        if (j < n) status.upper = max(status.upper, magnitude_bits(own[j]));
      own[k] = pivots.reciprocal_of(own[k], position + k, status);
#pragma unroll
      for (int j = k; j < S; j++) row[j * S * WARP_SIZE] = own[j];
    }
    __syncthreads();
    const Scalar r = row[k * S * WARP_SIZE];
#pragma unroll
    for (int q = 0; q < VECTORS; q++) {
      const int i = q * LANE_WARPS + warp_of();
      if (i <= k || i >= n) continue;
      const Scalar l = a[q][k] = a[q][k] * r;
      status.multiplier = max(status.multiplier, magnitude_bits(l));
#pragma unroll
      for (int j = k + 1; j < S; j++) a[q][j] = mul_sub(l, row[j * S * WARP_SIZE], a[q][j]);
    }
  }
}
// The same of Cholesky's.
DEVICE void eliminate_triangle(Vectors& a, int n, int position, const LanePivots& pivots, Scalar* shared,
                               LaneStatus& status) {
#pragma unroll
  for (int k = 0; k < S; k++) {
    if (k >= n) break;
    Scalar* column = shared + k * S * WARP_SIZE;
    if (warp_of() == k % LANE_WARPS) {
      Scalar& own = a[k / LANE_WARPS][k];
      column[k * WARP_SIZE] = own = pivots.reciprocal_of(own, position + k, status);
    }
    __syncthreads();
    const Scalar r = column[k * WARP_SIZE];
    for_all<VECTORS>([&](int q) {
      const int i = q * LANE_WARPS + warp_of();
      if (i > k) column[i * WARP_SIZE] = a[q][k] = a[q][k] * r;
    });
    __syncthreads();
    for_all<VECTORS, S>([&](int q, int j) {
      if (j > k && j <= q * LANE_WARPS + warp_of()) a[q][j] = mul_sub(a[q][k], conj(column[j * WARP_SIZE]), a[q][j]);
    });
  }
}

// Rows of a tile of L below n pivots, or columns of a tile of U to their right; the pivots begin at row k0 of the
// front.
template <bool BELOW>
DEVICE void eliminate_vectors(Vectors& a, int n, int k0, const LaneFront& front, LaneStatus& status) {
  const Scalar* diagonal = front.lower + (k0 + k0 * front.R) * WARP_SIZE;
#pragma unroll
  for (int k = 0; k < S; k++) {
    if (k >= n) break;
    if (BELOW) {
      const Scalar r = diagonal[(k + k * front.R) * WARP_SIZE];
      for_all<VECTORS>([&](int q) { a[q][k] = a[q][k] * r; });
    }
#pragma unroll
    for (int j = k + 1; j < S; j++) {
      if (j >= n) break;
      const bool is_u = BELOW && !CHOLESKY;
      const Scalar e = diagonal[(is_u ? k + j * front.R : j + k * front.R) * WARP_SIZE];
      for_all<VECTORS>([&](int q) {
        a[q][j] = BELOW ? mul_sub(a[q][k], CHOLESKY ? conj(e) : e, a[q][j]) : mul_sub(e, a[q][k], a[q][j]);
      });
    }
  }
  unsigned largest = 0;
  for_all<VECTORS, S>([&](int q, int k) {
    if (k < n) largest = max(largest, magnitude_bits(a[q][k]));
  });
  unsigned& noted = BELOW ? status.multiplier : status.upper;
  if (!CHOLESKY) noted = max(noted, largest);
}

// Finishes a tile of pivots, which is in shared memory, and stores it.
DEVICE void finish(const LaneFactorArgs& args, const Tile& tile, int position, Scalar* shared, LaneStatus& status) {
  const LaneFront& front = tile.front;
  const bool right = tile.row < tile.column;
  const int p = min(tile.row, tile.column), k0 = p * S, n = tile.size(p), other = max(tile.row, tile.column),
            begin = tile.first(other), count = tile.size(other);
  if (tile.row != tile.column) wait_until(tile.flag(p, p), 1);
  const int along = right ? 1 : S,
            across = right ? S : 1;  // entry k of vector v: shared[(k along + v across) WARP_SIZE]
  Vectors a;
  for_all<VECTORS, S>(
      [&](int q, int k) { a[q][k] = shared[(k * along + (q * LANE_WARPS + warp_of()) * across) * WARP_SIZE]; });
  if (tile.row == tile.column) {
    const LanePivots pivots(args.n, args.tiny, args.singular);
    if constexpr (CHOLESKY) eliminate_triangle(a, n, position + k0, pivots, shared, status);
    else eliminate_rows(a, n, position + k0, pivots, shared, status);
  } else if (right) {
    eliminate_vectors<false>(a, n, k0, front, status);
  } else {
    eliminate_vectors<true>(a, n, k0, front, status);
  }
  const Operand to = right ? front.columns_of_u(begin) : front.rows_of_l(begin);
  Scalar* out = (Scalar*)to.from + k0 * to.pivot * WARP_SIZE;
  for_all<VECTORS, S>([&](int q, int k) {
    const int v = q * LANE_WARPS + warp_of();
    if (v < count && k < n) out[(v * to.step + k * to.pivot) * WARP_SIZE] = a[q][k];
  });
}

DEVICE void run_tile(const LaneFactorArgs& args, const FrontTile& record, int group, Scalar* shared, Control& control) {
  const LockstepFront of = args.fronts[record.front];
  const LaneFront front(args, of, group, nullptr);
  const int P = (front.W + S - 1) / S, above = args.above[record.front];
  const Tile tile{front,
                  record.row,
                  record.column,
                  P,
                  P + (front.H + S - 1) / S,
                  args.flags + (long long)group * args.tile_count + args.tile_begin[above]};
  LaneStatus status;
  unsigned* arrived = args.arrived + group * args.above_count;
  wait_until(arrived + above, args.pending[above]);
  const int slot = args.slot[record.front] + record.number * LANE_WARPS + warp_of();
  assemble<PART_COLUMNS * S, false>({args.item_ptr, args.item, args.item_scale}, args.item_ptr[slot],
                                    args.item_ptr[slot + 1], {}, lane_entries(args.values, group, args.nnz),
                                    lane_entries(args.shared, group, args.shared_size),
                                    shared + warp_of() * PART_COLUMNS * S * WARP_SIZE, status);
  __syncthreads();
  const Subtile at(tile);
  Register a;
  load_tile(a, shared + (at.i + at.j * S) * WARP_SIZE, S);
  subtract_steps(tile, at, a, control);
  if (tile.steps() == P) {
    const int i = tile.first(tile.row) - front.W + at.i, j = tile.first(tile.column) - front.W + at.j;
    if (!at.is_empty()) store_tile(a, front.block + (i + j * front.H) * WARP_SIZE, front.H, at.m, at.n);
  } else {
    if (tile.steps() > 0) store_tile(a, shared + (at.i + at.j * S) * WARP_SIZE, S, SUBTILE_ROWS, SUBTILE_COLUMNS);
    __syncthreads();
    finish(args, tile, of.first, shared, status);
  }
  status.publish(args.reports + group * WARP_SIZE + lane_of());
  __syncthreads();
  if (threadIdx.x > 0) return;
  if (tile.steps() < P) store_release(tile.flag(tile.row, tile.column), 1u);
  else add_acquire_release(arrived + args.above[of.parent], 1u);
}

}  // namespace

GPUSPLU_KERNEL(factor_tiles, LaneFactorArgs, LANE_THREADS, RESIDENT) {
  Control& control = *(Control*)(shared_memory + S * S * WARP_SIZE * sizeof(Scalar));
  for (;;) {
    const int ticket = block_ticket(args.tickets + 1, &control.ticket);
    if (ticket >= args.tile_count * args.groups) break;
    const FrontTile record = args.tiles[ticket / args.groups];
    run_tile(args, record, ticket % args.groups, (Scalar*)shared_memory + lane_of(), control);
  }
}
