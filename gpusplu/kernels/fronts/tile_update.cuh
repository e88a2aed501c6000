// C += A B^T of tiles: operands stream through shared memory, the result stays in registers.
//
// A block owns one NB x NB tile of C, a warp 32 rows x NB / (warps in a row) columns of it, a lane (g, t) = (lane / 4,
// lane % 4) rows 2g, 2g + 1 and columns 4t .. 4t + 3 of each 16 x 16 part: the even and the odd columns are one tensor
// core operation each, so that both operands load in pairs. Both operands are tall panels (m x K, n x K), staged as
// [k][row]. Real numbers on tensor cores where they exist, those of single precision as sums of two tf32; else fused
// multiply-adds.
#pragma once
#include "fronts/large.cuh"

#if (defined(SCALAR_d) && (FP64_TENSOR_CORES || defined(GPUSPLU_EMULATED))) || \
    (defined(SCALAR_f) && (TF32_TENSOR_CORES || defined(GPUSPLU_EMULATED)))
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

constexpr int WARPS_IN_ROW = WARPS / (NB / 32), WARP_COLUMNS = NB / WARPS_IN_ROW;
constexpr int MI = 2, NI = WARP_COLUMNS / 16;  // 16 x 16 parts of a warp
constexpr int STAGE = DEPTH * STRIDE;          // one operand of one stage [scalars]
constexpr int INVERSE_STRIDE = shape.inverse_stride;
static_assert(WARPS == (NB / 32) * WARPS_IN_ROW && NI >= 1);

// Where entry (row, col) of the task's tile lies in shared memory. Fours of rows are exchanged inside sixteens, by the
// column: the columns 4t that the lanes of a warp read together would else meet in the same banks.
DEVICE int tile_at(int row, int col) { return col * STRIDE + (row ^ (col & 12)); }

// Of a tile in registers: rows of a lane, lane + 32 h, and columns of a warp, those congruent to its number.
constexpr int OWN_ROWS = NB / 32, OWN_COLUMNS = NB / WARPS;
template <int N> DEVICE Scalar pick(const Scalar (&v)[N], int which) {
  Scalar x = v[0];
#pragma unroll
  for (int h = 1; h < N; h++)
    if (which == h) x = v[h];
  return x;
}

// Row 2g + h, column 4t + q of a 16 x 16 part is [q & 1][2 h + q / 2].
template <int M> using Sums = Scalar[M][NI][2][4];
using Accumulator = Sums<MI>;

struct WarpPlace {
  int row, col, g, t;  // first row and column of the warp; the lane's place
  DEVICE WarpPlace() {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    row = warp / WARPS_IN_ROW * 32;
    col = warp % WARPS_IN_ROW * WARP_COLUMNS;
    g = lane >> 2;
    t = lane & 3;
  }
};

// Streams an operand of `extent` rows (ROWS at most), a tall panel, into shared memory: slice after slice of SLICE
// columns, stored [k][row] with stride ROWS + 4. Every thread's address moves on by itself.
template <int ROWS, int SLICE> struct PanelStream {
  static constexpr int CHUNKS = ROWS / 2;                 // pairs of a column
  static constexpr int STEP = THREADS / CHUNKS;           // columns from one pair of a thread to its next
  static constexpr int COUNT = SLICE * CHUNKS / THREADS;  // pairs of a thread and slice
  static_assert(COUNT * STEP == SLICE);
  const Scalar* from;
  long long step;
  int count;  // rows of my pair that exist
  DEVICE PanelStream(const Scalar* panel, long long ld, int extent) {
    const int row = threadIdx.x % CHUNKS * 2;
    from = panel + threadIdx.x / CHUNKS * ld + row;
    step = STEP * ld;
    count = max(0, min(2, extent - row));
  }
  // left: columns of the operand from this slice on. readable: an address that can be read.
  DEVICE void load(Scalar* stage, int left, const Scalar* readable) {
    const int col = threadIdx.x / CHUNKS;
    Scalar* to = stage + col * (ROWS + 4) + threadIdx.x % CHUNKS * 2;
    for_all<COUNT>([&](int i) {
      const int valid = i * STEP + col < left ? count : 0;
      copy_pair(to + i * STEP * (ROWS + 4), valid ? from : readable, valid);  // 0: nothing is read
      from += step;
    });
  }
};

// Slice `slice` of DEPTH rows of an NB x NB block, stored [column][k] with stride INVERSE_STRIDE.
DEVICE void load_inverse_slice(const Scalar* inverse, int slice, Scalar* stage) {
  constexpr int CHUNKS = DEPTH / 2, STEP = THREADS / CHUNKS;
  static_assert(NB % STEP == 0);
  const int col = threadIdx.x / CHUNKS, row = threadIdx.x % CHUNKS * 2;
  for_all<NB / STEP>([&](int i) {
    const int column = col + i * STEP;
    copy_pair(stage + column * INVERSE_STRIDE + row, inverse + column * NB + slice * DEPTH + row, 2);
  });
}

template <bool CONJUGATE> DEVICE Scalar operand(Scalar v) { return CONJUGATE ? conj(v) : v; }

// acc += A B over one slice of SLICE columns. A: [k][m] with stride SA. B: [k][n] (BY_ROWS = false, stride STRIDE), or
// [n][k] and A is the task's tile from column k0 on. B is zero in the warp's 16-column parts before `skip`.
template <bool BY_ROWS, bool CONJUGATE, int SLICE = DEPTH, int SA = STRIDE, int M>
DEVICE void multiply_slice(Sums<M>& acc, const Scalar* A, const Scalar* B, WarpPlace at, int k0 = 0, int skip = 0) {
  constexpr int SB = BY_ROWS ? INVERSE_STRIDE : STRIDE;
  if constexpr (TENSOR_CORES) {
    const Scalar* a_from = A + at.t * SA + at.row;
    const Scalar* b_from = BY_ROWS ? B + (at.col + 2 * at.g) * SB + at.t : B + at.t * SB + at.col + 2 * at.g;
    constexpr int FOURS = sizeof(Scalar) == 4 ? 2 : 1;  // of columns of A in an operation
#pragma unroll
    for (int k = 0; k < SLICE; k += 4 * FOURS) {
      Scalar a[M][2 * FOURS], b[NI][2][FOURS];
      for_all<FOURS>([&](int f) {
        for_all<M>([&](int i) {
          *(Pair*)(a[i] + 2 * f) =
              *(const Pair*)(a_from + (k + 4 * f) * SA + i * 16 + (2 * at.g ^ (BY_ROWS ? k0 + k + 4 * f & 12 : 0)));
        });
        for_all<NI>([&](int j) {
          Pair columns;
          if constexpr (BY_ROWS) columns = {b_from[j * 16 * SB + k + 4 * f], b_from[(j * 16 + 1) * SB + k + 4 * f]};
          else columns = *(const Pair*)(b_from + (k + 4 * f) * SB + j * 16);
          b[j][0][f] = columns.x, b[j][1][f] = columns.y;
        });
      });
      for_all<NI>([&](int j) {
        if (j < skip) return;
        for_all<M>([&](int i) {
          mma(acc[i][j][0], a[i], b[j][0]);
          mma(acc[i][j][1], a[i], b[j][1]);
        });
      });
    }
  } else {
    const Scalar* a_from = A + at.row;
    const Scalar* b_from = BY_ROWS ? B + (at.col + 4 * at.t) * SB : B + at.col + 4 * at.t;
#pragma unroll 2
    for (int k = 0; k < SLICE; k++) {
      Pair a[M];
      for_all<M>(
          [&](int i) { a[i] = *(const Pair*)(a_from + k * SA + i * 16 + (2 * at.g ^ (BY_ROWS ? k0 + k & 12 : 0))); });
      for_all<NI>([&](int j) {
        Pair columns[2];
        for_all<2>([&](int q) {
          if constexpr (BY_ROWS)
            columns[q] = {b_from[(j * 16 + 2 * q) * SB + k], b_from[(j * 16 + 2 * q + 1) * SB + k]};
          else columns[q] = *(const Pair*)(b_from + k * SB + j * 16 + 2 * q);
        });
        for_all<4, M>([&](int q, int i) {
          const Scalar b = operand<CONJUGATE>(q & 1 ? columns[q / 2].y : columns[q / 2].x);
          Scalar* c = acc[i][j][q & 1] + q / 2;
          c[0] = mul_add(a[i].x, b, c[0]);
          c[2] = mul_add(a[i].y, b, c[2]);
        });
      });
    }
  }
}

// Calls visit(i, j, q, row, column) for the pairs of a lane: rows row, row + 1 of the tile.
template <int M, class Visit> DEVICE void for_pairs(WarpPlace at, Visit&& visit) {
  for_all<NI, 4, M>(
      [&](int j, int q, int i) { visit(i, j, q, at.row + i * 16 + 2 * at.g, at.col + j * 16 + 4 * at.t + q); });
}
template <int M> DEVICE void clear(Sums<M>& acc) {
  for_all<M, NI, 2, 4>([&](int i, int j, int h, int q) { acc[i][j][h][q] = Scalar(0); });
}
// acc = tile - acc. Each lane reads the entries that `store` writes back.
template <int M> DEVICE void subtract_from(Sums<M>& acc, const Scalar* tile, WarpPlace at) {
  for_pairs<M>(at, [&](int i, int j, int q, int row, int col) {
    const Pair v = *(const Pair*)(tile + tile_at(row, col));
    Scalar* c = acc[i][j][q & 1] + q / 2;
    c[0] = v.x - c[0];
    c[2] = v.y - c[2];
  });
}
template <int M> DEVICE void store(const Sums<M>& acc, Scalar* tile, WarpPlace at) {
  for_pairs<M>(at, [&](int i, int j, int q, int row, int col) {
    *(Pair*)(tile + tile_at(row, col)) = {acc[i][j][q & 1][q / 2], acc[i][j][q & 1][2 + q / 2]};
  });
}
// The tile as a diagonal tile of m x m: the identity beyond.
template <int M> DEVICE void store_diagonal(const Sums<M>& acc, Scalar* tile, int m, WarpPlace at) {
  for_pairs<M>(at, [&](int i, int j, int q, int row, int col) {
    Pair v = {acc[i][j][q & 1][q / 2], acc[i][j][q & 1][2 + q / 2]};
    if (row >= m || col >= m) v.x = Scalar(row == col ? 1 : 0);
    if (row + 1 >= m || col >= m) v.y = Scalar(row + 1 == col ? 1 : 0);
    *(Pair*)(tile + tile_at(row, col)) = v;
  });
}
// A diagonal tile of which the lower triangle is right, made whole.
DEVICE void mirror_tile(Scalar* tile) {
  for (int e = threadIdx.x; e < NB * NB; e += THREADS) {
    const int row = e % NB, col = e / NB;
    if (row > col) tile[tile_at(col, row)] = mirrored(tile[tile_at(row, col)]);
  }
}
template <int M> DEVICE void mirror(Sums<M>& acc) {
  for_all<M, NI, 2, 4>([&](int i, int j, int h, int q) { acc[i][j][h][q] = mirrored(acc[i][j][h][q]); });
}
// To global memory, m x n; the padding row of an odd m is written too. LOWER: the lower triangle only.
template <bool LOWER, int M>
DEVICE void store_tile(const Sums<M>& acc, Scalar* to, long long ld, int m, int n, WarpPlace at) {
  for_pairs<M>(at, [&](int i, int j, int q, int row, int col) {
    const Pair v = {acc[i][j][q & 1][q / 2], acc[i][j][q & 1][2 + q / 2]};
    Scalar* p = to + col * ld + row;
    if constexpr (LOWER) {
      if (col < n && row < m && row >= col) store_l2(p, v.x);
      if (col < n && row + 1 < m && row + 1 >= col) store_l2(p + 1, v.y);
    } else if (col < n && row < m) {
      store_pair(p, v);
    }
  });
}
