// Assembles one tile of a front in shared memory: entries of A, then the children's contribution blocks.
//
// Owner computes: the block that factors or updates a tile gathers it, so that every entry of a contribution block is
// read once and no assembled front is ever stored. A warp owns the columns of the tile that are congruent to its
// number, and adds the children in their order: the sums do not depend on timing. Of each child the plan has, for every
// tile of the parent, the range of its rows that fall into it; a tile needs the children that occur both in the list of
// its rows and in that of its columns.
#pragma once
#include "tile_update.cuh"

// Rows and columns of a child's contribution block that fall into the tile.
struct Match {
  int child, large;
  int row_begin, row_end, col_begin, col_end;
};

struct AssemblyScratch {
  Match matches[THREADS];
  int found[WARPS];
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

// The children among `count` pieces of the rows' list that are in the columns' list too; returns how many.
__device__ __forceinline__ int find_matches(const LargeArgs& args, const LargePiece* row_pieces, int count,
                                            const LargePiece* col_pieces, int col_count, unsigned epoch,
                                            AssemblyScratch& scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  Match match{};
  bool found = false;
  if ((int)threadIdx.x < count) {
    const LargePiece rows = row_pieces[threadIdx.x];
    int low = 0, high = col_count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (col_pieces[middle].child < rows.child) low = middle + 1;
      else high = middle;
    }
    const LargePiece cols = col_pieces[min(low, col_count - 1)];
    found = low < col_count && cols.child == rows.child;
    match = {rows.child, rows.large, rows.begin, rows.end, cols.begin, cols.end};
    if (found && rows.large >= 0) wait_for_child(args, rows.large, epoch);
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

// Adds what a child has for the warp's columns of the tile. TRIANGLE: only the child's lower triangle exists.
template <bool TRIANGLE> __device__ __forceinline__ void add_child(const LargeArgs& args, const Match& match, int row0,
                                                                   int col0, TileStrides strides, Scalar* tile) {
  constexpr int ROWS = NB / 32, BATCH = 4;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const Front& child = args.fronts[match.child];
  const int height = child.rows - child.width;
  const long long ld = match.large >= 0 ? (height + 1) & ~1 : height;
  const LocalRow* place = args.place + child.below;
  const Scalar* block = args.blocks + child.block;
  int row[ROWS], to[ROWS];
#pragma unroll
  for (int h = 0; h < ROWS; h++) {
    row[h] = match.row_begin + lane + 32 * h;
    to[h] = (__ldg(place + min(row[h], match.row_end - 1)) - row0) * strides.row;
  }
  for (int first = match.col_begin; first < match.col_end; first += 32) {
    const int target = __ldg(place + min(first + lane, match.col_end - 1)) - col0;
    unsigned mask = __ballot_sync(~0u, first + lane < match.col_end && target % WARPS == warp);
    while (mask) {
      int col[BATCH], home[BATCH];
      Scalar value[BATCH][ROWS];
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const int bit = __ffs(mask) - 1;
        col[u] = mask ? first + bit : -1;
        home[u] = shuffle(target, bit & 31) * strides.col;
        mask &= mask - 1;
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++)
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
          const bool exists = col[u] >= 0 && row[h] < match.row_end && (!TRIANGLE || row[h] >= col[u]);
          value[u][h] = exists ? load_shared_level(block + row[h] + col[u] * ld) : Scalar(0);
        }
#pragma unroll
      for (int u = 0; u < BATCH; u++)
#pragma unroll
        for (int h = 0; h < ROWS; h++)
          if (col[u] >= 0 && row[h] < match.row_end) tile[to[h] + home[u]] += value[u][h];
    }
  }
  __syncwarp();
}

// The assembled tile; complete after the caller's next barrier.
__device__ __forceinline__ void assemble_tile(const LargeArgs& args, const LargeTask& task, const LargeFront& large,
                                              long long first_entry, int row0, int col0, TileStrides strides,
                                              unsigned epoch, Scalar* tile, AssemblyScratch& scratch) {
  zero_tile(tile);
  __syncthreads();
  assemble_entries(args, task, first_entry, row0, col0, strides, tile);
  const int* ptr = args.piece_ptr + large.tile_begin;
  const int row_end = ptr[task.row + 1], col_begin = ptr[task.col], col_count = ptr[task.col + 1] - col_begin;
  for (int p = ptr[task.row]; p < row_end && col_count > 0; p += THREADS) {
    const int total = find_matches(args, args.pieces + p, min(THREADS, row_end - p), args.pieces + col_begin, col_count,
                                   epoch, scratch);
    for (int k = 0; k < total; k++)
      if (CHOLESKY && task.row == task.col) add_child<true>(args, scratch.matches[k], row0, col0, strides, tile);
      else add_child<false>(args, scratch.matches[k], row0, col0, strides, tile);
    __syncthreads();
  }
}
