// Assembles one tile of a front in shared memory: entries of A, then the children's contribution blocks.
//
// Owner computes: the block that factors or updates a tile gathers it, so that every entry of a contribution block is
// read once and no assembled front is ever stored. Of each child the plan has, for every tile of the parent, the range
// of its rows that fall into it; a tile needs the children that occur both in the list of its rows and in that of its
// columns. A warp owns the columns of the tile that are congruent to its number, a lane the rows lane and lane + 32, in
// registers: it determines which entry of a child belongs there, and adds the children in their order. The sums do not
// depend on timing.
#pragma once
#include "fronts/tile_update.cuh"

constexpr int MATCHES = 64;                         // children in one round
constexpr int SUM_ROWS = NB / 32, SUM_COLUMNS = 8;  // of a lane, of a warp at a time
constexpr int NOWHERE = 0xff;
static_assert(MATCHES <= THREADS && NB < NOWHERE);

// Rows and columns of a child's contribution block that fall into the tile.
struct Match {
  const Scalar* from;  // the first of both
  long long ld;
  const LocalRow *row_place, *col_place;
  int rows, cols;
  int below;  // position of the first row after the first column: (r, c) is in the lower triangle if r + below >= c
};

struct AssemblyScratch {
  Match matches[MATCHES];
  int found[WARPS];
  // Which row (column) of the match belongs to a row (column) of the tile, or NOWHERE. The columns of a warp are
  // consecutive.
  __align__(16) unsigned char row[MATCHES][NB];
  uint4 col[MATCHES][NB / 16];
};

// Where an entry (row, column), relative to the tile, lies in shared memory.
DEVICE int entry_at(int row, int col, bool transposed) { return transposed ? tile_at(col, row) : tile_at(row, col); }

DEVICE void zero_tile(Scalar* tile) {
  for (int e = threadIdx.x; e < NB * STRIDE / 2; e += THREADS) ((Pair*)tile)[e] = {Scalar(0), Scalar(0)};
}

DEVICE void assemble_entries(const LargeArgs& args, const LargeTask& task, long long first, int row0, int col0,
                             bool transposed, Scalar* tile) {
  first += task.entry_begin;
  for (int e = threadIdx.x; e < task.entry_count; e += THREADS) {
    const unsigned place = __ldg(args.entry_place + first + e);
    Scalar v = args.values[__ldg(args.entry_source + first + e)];
    if (args.entry_scale) v = (Real)args.entry_scale[first + e] * v;
    const int row = (int)(place & 0xffff) - row0, col = (int)(place >> 16) - col0;
    tile[entry_at(row, col, transposed)] = v;
  }
}

// Waits until every tile of a large child's contribution block is written in this launch.
DEVICE void wait_for_child(const LargeArgs& args, int large, unsigned epoch) {
  const LargeFront child = args.large[large];
  const unsigned* done = args.counters + LARGE_CONTROL + child.counter;
  while ((int)(load_acquire(done) - epoch * child.block_tiles) < child.block_tiles) {
  }
}

// Waits until the small children of a front are done, which may still be under way if this is a dependent launch.
DEVICE void wait_for_small_children(const LargeArgs& args, int front, unsigned epoch) {
  const unsigned count = args.fronts[front].children - args.fronts[front].pending;
  while ((int)(load_acquire(args.arrivals + front) - epoch * count) < (int)count) {
  }
}

DEVICE Match match_of(const LargeArgs& args, const LargeChunk& rows, const LargeChunk& cols) {
  const Front& child = args.fronts[rows.child];
  const int height = child.rows - child.width;
  Match match;
  match.ld = rows.large != NOT_LARGE ? large_ld(height) : height;
  match.from = args.blocks + child.block + rows.begin + cols.begin * match.ld;
  match.row_place = args.place + child.below + rows.begin;
  match.col_place = args.place + child.below + cols.begin;
  match.rows = rows.end - rows.begin;
  match.cols = cols.end - cols.begin;
  match.below = rows.begin - cols.begin;
  return match;
}

// Chunks of two tiles, in order of children.
struct ChunkLists {
  int row, row_end, col, col_end;
};

// The children among the rows' chunks from `first` on, at most MATCHES, that are in the columns' list too, into
// scratch.matches; returns how many. Waits for them.
DEVICE int find_matches(const LargeArgs& args, int front, const ChunkLists& lists, int first, unsigned epoch,
                        AssemblyScratch& scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, p = first + threadIdx.x;
  Match match{};
  bool found = false;
  if (threadIdx.x < MATCHES && p < lists.row_end) {
    const LargeChunk rows = args.chunks[p];
    LargeChunk cols =
        args.chunks[min(lists.col + p - lists.row, lists.col_end - 1)];  // the same child where all are in both lists
    if (cols.child != rows.child) {
      const int at = bisect(lists.col, lists.col_end, [&](int k) { return args.chunks[k].child < rows.child; });
      cols = args.chunks[min(at, lists.col_end - 1)];
    }
    found = cols.child == rows.child;
    if (found) {
      match = match_of(args, rows, cols);
      if (rows.large >= 0) wait_for_child(args, rows.large, epoch);
      else if (rows.large == NOT_LARGE && args.arrivals) wait_for_small_children(args, front, epoch);
    }
  }
  const unsigned mask = __ballot_sync(~0u, found);
  if (lane == 0) scratch.found[warp] = __popc(mask);
  __syncthreads();
  int before = 0, total = 0;
  for_all<WARPS>([&](int w) {
    if (w < warp) before += scratch.found[w];
    total += scratch.found[w];
  });
  if (found) scratch.matches[before + __popc(mask & ((1u << lane) - 1))] = match;
  __syncthreads();
  return total;
}

// scratch.row and scratch.col of the matches.
DEVICE void load_places(int total, int row0, int col0, AssemblyScratch& scratch) {
  constexpr int SLOTS = 2 * NB;
  static_assert(THREADS == SLOTS);
  for (int e = threadIdx.x; e < total * NB / 16; e += THREADS) {
    ((uint4*)scratch.row)[e] = {~0u, ~0u, ~0u, ~0u};
    ((uint4*)scratch.col)[e] = {~0u, ~0u, ~0u, ~0u};
  }
  __syncthreads();
  const int k = threadIdx.x % NB;
  const bool rows = threadIdx.x < NB;
  unsigned char* to = rows ? (unsigned char*)scratch.row : (unsigned char*)scratch.col;
#pragma unroll 4
  for (int m = 0; m < total; m++) {
    const Match& match = scratch.matches[m];
    const LocalRow* place = rows ? match.row_place : match.col_place;
    const int count = rows ? match.rows : match.cols;
    const int target = __ldg(place + min(k, count - 1)) - (rows ? row0 : col0);
    if (k < count) to[m * NB + (rows ? target : target % WARPS * (NB / WARPS) + target / WARPS)] = (unsigned char)k;
  }
}

// Which entries of a match belong to the lane's rows and to four of the warp's columns at a time.
struct Mine {
  const Scalar* from;
  long long ld;
  int row[SUM_ROWS], below;
  const unsigned* cols;
  DEVICE Mine(const AssemblyScratch& scratch, int m, int first_word)
      : from(scratch.matches[m].from), ld(scratch.matches[m].ld), below(scratch.matches[m].below) {
    for_all<SUM_ROWS>([&](int h) { row[h] = scratch.row[m][(threadIdx.x & 31) + 32 * h]; });
    cols = (const unsigned*)scratch.col[m] + first_word;
  }
  // TRIANGLE: only the child's lower triangle exists.
  template <bool TRIANGLE> DEVICE void load(Scalar (&value)[SUM_ROWS][SUM_COLUMNS], bool any) const {
    for_all<SUM_COLUMNS / 4>([&](int q) {
      const unsigned four = any ? cols[q] : ~0u;
      for_all<4>([&](int s) {
        const int col = four >> 8 * s & 0xff;
        for_all<SUM_ROWS>([&](int h) {
          const bool exists = col != NOWHERE && row[h] != NOWHERE && (!TRIANGLE || row[h] + below >= col);
          value[h][4 * q + s] = exists ? load_l2(from + row[h] + col * ld) : Scalar(0);
        });
      });
    });
  }
};

// Adds the matches in their order to the lane's rows and SUM_COLUMNS of the warp's columns, from column `first` of
// these on. Two matches are under way at a time.
template <bool TRIANGLE>
DEVICE void add_matches(int total, int first, bool transposed, const AssemblyScratch& scratch, Scalar* tile) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, word = (warp * (NB / WARPS) + first) / 4;
  const auto mine = [&](int h, int s) {
    return tile + entry_at(lane + 32 * h, (first + s) * WARPS + warp, transposed);
  };
  Scalar sum[SUM_ROWS][SUM_COLUMNS];
  for_all<SUM_COLUMNS, SUM_ROWS>([&](int s, int h) { sum[h][s] = *mine(h, s); });
#pragma unroll 1
  for (int m = 0; m < total; m += 2) {
    Scalar value[2][SUM_ROWS][SUM_COLUMNS];
    Mine(scratch, m, word).load<TRIANGLE>(value[0], true);
    Mine(scratch, min(m + 1, total - 1), word).load<TRIANGLE>(value[1], m + 1 < total);
    for_all<2, SUM_COLUMNS, SUM_ROWS>([&](int u, int s, int h) { sum[h][s] += value[u][h][s]; });
  }
  for_all<SUM_COLUMNS, SUM_ROWS>([&](int s, int h) { *mine(h, s) = sum[h][s]; });
}

// The assembled tile; complete after the caller's next barrier.
DEVICE void assemble_tile(const LargeArgs& args, const LargeTask& task, long long first_entry, int row0, int col0,
                          bool transposed, unsigned epoch, Scalar* tile, AssemblyScratch& scratch) {
  const int *row_ptr = args.chunk_ptr + task.row_chunks, *col_ptr = args.chunk_ptr + task.col_chunks;
  const ChunkLists lists{__ldg(row_ptr), __ldg(row_ptr + 1), __ldg(col_ptr), __ldg(col_ptr + 1)};
  zero_tile(tile);
  __syncthreads();
  assemble_entries(args, task, first_entry, row0, col0, transposed, tile);
  for (int p = lists.row; p < lists.row_end && lists.col < lists.col_end; p += MATCHES) {
    const int total = find_matches(args, task.front, lists, p, epoch, scratch);
    load_places(total, row0, col0, scratch);
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < NB / WARPS; first += SUM_COLUMNS)
      if (ONE_TRIANGLE && task.row == task.col) add_matches<true>(total, first, transposed, scratch, tile);
      else add_matches<false>(total, first, transposed, scratch, tile);
    __syncthreads();
  }
}
