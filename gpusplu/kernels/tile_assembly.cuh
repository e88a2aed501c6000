// Assembles one tile of a front in shared memory: entries of A, then the children's contribution blocks.
//
// Owner computes: the block that factors or updates a tile gathers it, so that every entry of a contribution block is
// read once and no assembled front is ever stored. Of each child the plan has, for every tile of the parent, the range
// of its rows that fall into it; a tile needs the children that occur both in the list of its rows and in that of its
// columns. A warp owns the columns of the tile that are congruent to its number, and adds the children in their order:
// the sums do not depend on timing. It takes columns of children in batches, across children, so that their loads are
// under way together.
#pragma once
#include "tile_update.cuh"

constexpr int MATCHES = 64;  // children in one round
static_assert(MATCHES <= THREADS);

// Rows and columns of a child's contribution block that fall into the tile.
struct Match {
  const Scalar* from;  // the first of both
  long long ld;
  const LocalRow *row_place, *col_place;
  int rows, cols;
  int below;  // position of the first row behind the first column: row r, column c is in the lower triangle if r +
              // below
              // >= c
};

struct AssemblyScratch {
  Match matches[MATCHES];
  int found[WARPS];
  unsigned char row[MATCHES][NB], col[MATCHES][NB];  // places in the tile
};

// Where an entry (row, column), relative to the tile, lies in shared memory.
struct TileStrides {
  int row, col;
};

__device__ __forceinline__ void zero_tile(Scalar* tile) {
  for (int e = threadIdx.x; e < NB * STRIDE / 2; e += THREADS) ((Pair*)tile)[e] = {Scalar(0), Scalar(0)};
}

__device__ __forceinline__ void assemble_entries(const LargeArgs& args, const LargeTask& task, long long first,
                                                 int row0, int col0, TileStrides strides, Scalar* tile) {
  first += task.entry_begin;
  for (int e = threadIdx.x; e < task.entry_count; e += THREADS) {
    const unsigned place = __ldg(args.entry_place + first + e);
    Scalar v = args.values[__ldg(args.entry_source + first + e)];
    if (args.entry_scale) v = (Real)args.entry_scale[first + e] * v;
    const int row = (int)(place & 0xffff) - row0, col = (int)(place >> 16) - col0;
    tile[row * strides.row + col * strides.col] = v;
  }
}

// Waits until every tile of a large child's contribution block is written in this launch.
__device__ __forceinline__ void wait_for_child(const LargeArgs& args, int large, unsigned epoch) {
  const LargeFront child = args.large[large];
  const unsigned* done = args.counters + CONTROL + child.counter;
  while ((int)(load_acquire(done) - epoch * child.block_tiles) < child.block_tiles) {
  }
}

__device__ __forceinline__ Match match_of(const LargeArgs& args, const LargePiece& rows, const LargePiece& cols) {
  const Front& child = args.fronts[rows.child];
  const int height = child.rows - child.width;
  Match match;
  match.ld = rows.large != -1 ? (height + 1) & ~1 : height;
  match.from = args.blocks + child.block + rows.begin + cols.begin * match.ld;
  match.row_place = args.place + child.below + rows.begin;
  match.col_place = args.place + child.below + cols.begin;
  match.rows = rows.end - rows.begin;
  match.cols = cols.end - cols.begin;
  match.below = rows.begin - cols.begin;
  return match;
}

// Pieces of two tiles, in order of children.
struct PieceLists {
  int row, row_end, col, col_end;
};

// The children among the rows' pieces from `first` on, at most MATCHES, that are in the columns' list too, into
// scratch.matches; returns how many. Waits for them.
__device__ __forceinline__ int find_matches(const LargeArgs& args, const PieceLists& lists, int first, unsigned epoch,
                                            AssemblyScratch& scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, p = first + threadIdx.x;
  Match match{};
  bool found = false;
  if (threadIdx.x < MATCHES && p < lists.row_end) {
    const LargePiece rows = args.pieces[p];
    int low = lists.col, high = lists.col_end;
    LargePiece cols = args.pieces[min(low + p - lists.row, high - 1)];  // the same child where all are in both lists
    if (cols.child != rows.child) {
      while (low < high) {
        const int middle = (low + high) / 2;
        if (args.pieces[middle].child < rows.child) low = middle + 1;
        else high = middle;
      }
      cols = args.pieces[min(low, lists.col_end - 1)];
    }
    found = cols.child == rows.child;
    if (found) {
      match = match_of(args, rows, cols);
      if (rows.large >= 0) wait_for_child(args, rows.large, epoch);
    }
  }
  const unsigned mask = __ballot_sync(~0u, found);
  if (lane == 0) scratch.found[warp] = __popc(mask);
  __syncthreads();
  int before = 0, total = 0;
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    if (w < warp) before += scratch.found[w];
    total += scratch.found[w];
  }
  if (found) scratch.matches[before + __popc(mask & ((1u << lane) - 1))] = match;
  __syncthreads();
  return total;
}

__device__ __forceinline__ void load_places(int total, int row0, int col0, AssemblyScratch& scratch) {
  constexpr int SLOTS = 2 * NB, STEP = THREADS / SLOTS;
  static_assert(THREADS % SLOTS == 0);
  const int k = threadIdx.x % NB;
  const bool rows = threadIdx.x % SLOTS < NB;
  const int origin = rows ? row0 : col0;
#pragma unroll 4
  for (int m = threadIdx.x / SLOTS; m < total; m += STEP) {
    const Match& match = scratch.matches[m];
    const LocalRow* place = rows ? match.row_place : match.col_place;
    const int count = rows ? match.rows : match.cols;
    const unsigned char to = (unsigned char)(__ldg(place + min(k, count - 1)) - origin);
    (rows ? scratch.row : scratch.col)[m][k] = to;
  }
}

// Adds the matches in their order to the warp's columns of the tile. TRIANGLE: of the children only the lower triangles
// exist.
template <bool TRIANGLE> __device__ __forceinline__ void add_matches(int total, TileStrides strides,
                                                                     const AssemblyScratch& scratch, Scalar* tile) {
  constexpr int ROWS = NB / 32, PARTS = NB / 32, BATCH = 8;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, parts = total * PARTS;
  int part = 0;       // match * PARTS + which 32 of its columns; the next one to look at
  unsigned mask = 0;  // columns of part - 1 that are still to be added
  while (mask || part < parts) {
    int match[BATCH], col[BATCH];
    Scalar value[BATCH][ROWS];
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      while (!mask && part < parts) {
        const int m = part / PARTS, c = part % PARTS * 32 + lane;
        mask = __ballot_sync(~0u, c < scratch.matches[m].cols && scratch.col[m][c] % WARPS == warp);
        part++;
      }
      match[u] = mask ? (part - 1) / PARTS : -1;
      col[u] = (part - 1) % PARTS * 32 + __ffs(mask) - 1;
      mask &= mask - 1;
#pragma unroll
      for (int h = 0; h < ROWS; h++) value[u][h] = Scalar(0);
      if (match[u] >= 0) {
        const Match& from = scratch.matches[match[u]];
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
          const int row = lane + 32 * h;
          if (row < from.rows && (!TRIANGLE || row + from.below >= col[u]))
            value[u][h] = load_shared_level(from.from + row + col[u] * from.ld);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (match[u] < 0) break;
      const int home = scratch.col[match[u]][col[u]] * strides.col, rows = scratch.matches[match[u]].rows;
#pragma unroll
      for (int h = 0; h < ROWS; h++) {
        const int row = lane + 32 * h;
        if (row < rows) tile[scratch.row[match[u]][row] * strides.row + home] += value[u][h];
      }
      __syncwarp();
    }
  }
}

// The assembled tile; complete after the caller's next barrier.
__device__ __forceinline__ void assemble_tile(const LargeArgs& args, const LargeTask& task, long long first_entry,
                                              int row0, int col0, TileStrides strides, unsigned epoch, Scalar* tile,
                                              AssemblyScratch& scratch) {
  const int *row_ptr = args.piece_ptr + task.row_pieces, *col_ptr = args.piece_ptr + task.col_pieces;
  const PieceLists lists{__ldg(row_ptr), __ldg(row_ptr + 1), __ldg(col_ptr), __ldg(col_ptr + 1)};
  zero_tile(tile);
  __syncthreads();
  assemble_entries(args, task, first_entry, row0, col0, strides, tile);
  for (int p = lists.row; p < lists.row_end && lists.col < lists.col_end; p += MATCHES) {
    const int total = find_matches(args, lists, p, epoch, scratch);
    load_places(total, row0, col0, scratch);
    __syncthreads();
    if (CHOLESKY && task.row == task.col) add_matches<true>(total, strides, scratch, tile);
    else add_matches<false>(total, strides, scratch, tile);
    __syncthreads();
  }
}
