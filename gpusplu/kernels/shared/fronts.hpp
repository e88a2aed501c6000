// Fronts of phases 0 to 2 and the launches of a factorization. Phases, items and partial columns are defined in
// core/plan/fronts/plan.hpp.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int PHASES = 4;  // warp, small, block, large
constexpr int LARGE_PHASE = 3;

constexpr int PANEL = 16;  // columns of a panel in fronts that a warp or a block factors, and rows of those of phase 0
constexpr int PANEL_LD = 20;  // between columns of a 16 x 16 block in shared memory: 4 mod 8, see fronts/panels.cuh
constexpr int PANEL_SCALARS = PANEL * PANEL_LD;

constexpr int WARP_FRONTS = 4;  // fronts of phase 0 that a block has, a warp each
constexpr int WARP_FRONT_THREADS = WARP_SIZE * WARP_FRONTS;
constexpr int SMALL_FRONT_THREADS = 128;
constexpr int BLOCK_FRONT_THREADS = 512;
constexpr int FRONT_THREADS[PHASES - 1] = {WARP_FRONT_THREADS, SMALL_FRONT_THREADS, BLOCK_FRONT_THREADS};

// Assembly.
constexpr int ITEM_ENTRIES_LOG2 = 3;
constexpr int ITEM_ENTRIES =
    1 << ITEM_ENTRIES_LOG2;  // of a column of a child's block, at most; as many lanes are a group
constexpr int GROUPS[PHASES] = {WARP_SIZE / ITEM_ENTRIES, SMALL_FRONT_THREADS / ITEM_ENTRIES,
                                BLOCK_FRONT_THREADS / ITEM_ENTRIES, 0};  // of a front
constexpr int MOST_PARTIALS = 32;                                        // partial columns of a front, a lane each
constexpr int BYTE_ROWS = 240;  // of fronts that are assembled by items: local rows are bytes there

constexpr int ARENA_ALIGN = 4;    // scalars
constexpr int MOST_ROWS = 65535;  // local rows are 16 bits

// A front of R = rows and W = width: its first W rows and columns are pivots, the H = R - W others its contribution
// block.
struct Front {
  int width, rows;
  int climb;        // the parent if it is of the same phase, -2 - parent if of a later one before phase 3, else -1
  int pending;      // children of the same phase
  int entry_count;  // entries of A that are assembled here
  int children;
  int owner_begin;  // into owner_ptr: assembly items of each group of 8 lanes
  int partial_begin,
      partial_count;      // columns after the front for parts of columns with many items, and their target columns
  int level;              // inside the phase
  long long entry_begin;  // into entry_source, entry_place, entry_scale
  long long factor;       // into the factor arena [scalars]
  long long block;        // into the arena of contribution blocks [scalars]
  long long block_base;   // base of the items' offsets
  long long below;        // into the rows below the pivots and into the vector arena
};

// Entries of one column of a child's block, one above the other there, that go to one column of the front.
struct Item {
  int first;    // of the entries, from the front's block_base
  int target;   // column of the front, and the number of entries << 16
  int rows[2];  // local rows, a byte each: entry q in byte q & 3 of rows[q / 4]
};

// One kernel launch of the factorization.
struct Launch {
  int phase, begin, count;  // start[begin ..], or large tasks
  // Phases 1 and 2: most shared memory of a front, front_ld(R) * (R + partial_count). Phase 3: where in the counters
  // the control words of this segment are, from which LargeFront::counter counts.
  int scalars;
  int rows, width;            // largest
  int threads, shared_bytes;  // of a block
};

// Leading dimension of a front in shared memory: at least R, and 4 mod 8 so that MMA operands meet no bank conflicts.
GPUSPLU_HOST_DEVICE constexpr int front_ld(int R) { return ((R + 3) & ~7) + 4; }

// Of the shared memory of a block, net of the front and the inverted diagonal block [bytes]: records, flags.
constexpr int FRONT_CONTROL_BYTES = 256;
// Of a block of phases 0 to 2; `scalars`: Launch::scalars.
GPUSPLU_HOST_DEVICE constexpr int front_shared_bytes(int phase, int scalars, int scalar_bytes) {
  return phase == 0 ? WARP_FRONTS * (2 * (int)sizeof(Front) + PANEL_SCALARS * scalar_bytes)
                    : FRONT_CONTROL_BYTES + (PANEL_SCALARS + scalars) * scalar_bytes;
}
// Blocks that should be resident on a multiprocessor, as far as registers go.
GPUSPLU_HOST_DEVICE constexpr int front_blocks(int phase, bool is_complex, int scalar_bytes) {
  return phase == 0 ? (is_complex ? 3 : 7) : phase == 1 ? (scalar_bytes == 16 ? 2 : 4) : 1;
}
// Items of a group that are loaded at a time.
GPUSPLU_HOST_DEVICE constexpr int item_batch(int phase, int scalar_bytes) {
  return phase == 0 || scalar_bytes == 16 ? 4 : 8;
}

// ---- large fronts (phase 3): sizes of their kernels, and the tasks of core/plan/fronts/large_tasks.hpp
// Parameters of a scalar type. The tile is also the size of the inverted diagonal blocks that the solve reads.
struct LargeShape {
  int tile;            // rows and columns of a tile (NB)
  int threads;         // of a block
  int blocks;          // blocks that should be resident on a multiprocessor
  int depth;           // columns of an operand that one stage of the pipeline holds
  int stages;          // of the pipeline
  int inverse_slices;  // stages of the inverted diagonal block in a panel solve
  int stride;          // between columns of a tile in shared memory; 4 mod 16: operand reads meet no bank twice
  int inverse_stride;  // between columns of a slice of the inverted block
  int tall;            // tiles of a contribution block, one below the other, that a task may take together
  int tall_depth, tall_stages;  // depth and stages of its pipeline
  int shared_bytes;             // of a block
};

constexpr int LARGE_CONTROL_BYTES = 128;  // of the shared memory of a block: its task

GPUSPLU_HOST_DEVICE constexpr int large_tile(int scalar_bytes) { return scalar_bytes == 16 ? 32 : 64; }
// Leading dimension of a part of a large front with so many rows: even, as kernels take two rows at a time.
GPUSPLU_HOST_DEVICE constexpr int large_ld(int rows) { return (rows + 1) & ~1; }

// Shared memory holds the task's tile and the pipeline or the inverted diagonal block. shared_kb: the most that a block
// can have: 64 before sm_80, 99 or 163, 227 on sm_90 and sm_100. A third block a multiprocessor needs a shorter
// pipeline; when it fitted, batches of fronts of 200 rows took 8% less, single fronts of 256 to 4096 columns 9 to 21%
// more (Cholesky on an H200), because a thread has a third fewer registers.
GPUSPLU_HOST_DEVICE constexpr LargeShape large_shape(int scalar_bytes, int shared_kb) {
  LargeShape s{};
  s.tile = large_tile(scalar_bytes);
  s.threads = scalar_bytes == 16 ? 64 : 128;
  s.blocks = scalar_bytes == 8 ? 2 : 4;  // of single precision 2: 12 to 15% more (elasticity, Poisson, an H200)
  const bool roomy = shared_kb >= 200;
  s.depth = scalar_bytes == 16 || (scalar_bytes == 8 && !roomy) ? 8 : 16;
  s.stages = shared_kb < 99 || (scalar_bytes == 16 && !roomy) ? 3 : 4;
  s.inverse_slices = shared_kb < 99 ? 2 : 4;
  s.stride = s.tile + 4;
  s.inverse_stride = s.depth + 2;
  const int pipeline = 2 * s.stages * s.depth * s.stride;
  const int inverse = s.inverse_slices * s.tile * s.inverse_stride;
  const int single = s.tile * s.stride + (pipeline > inverse ? pipeline : inverse);
  s.tall = scalar_bytes == 8 && roomy ? 2 : 1;
  s.tall_depth = 8;
  s.tall_stages = 3;
  const int tall_pipeline = s.tall_stages * s.tall_depth * ((s.tall + 1) * s.tile + 8);
  const int tall = s.tall > 1 ? s.tall * s.tile * s.stride + tall_pipeline : 0;
  s.shared_bytes = (single > tall ? single : tall) * scalar_bytes + LARGE_CONTROL_BYTES;
  return s;
}

// One tile (row, col) of a front. Tasks are in topological order: a task waits only for earlier ones.
struct LargeTask {
  int front, large;  // of the plan, and among the large ones
  int row, col;      // tile
  int entry_begin;   // entries of A in this tile, from the front's first entry
  int entry_count;
  int row_chunks, col_chunks;  // into chunk_ptr: those of its rows and of its columns
  int tiles;                   // 2: tile (row + 1, col) is of this task too; neither has entries then
};

struct LargeFront {
  int counter;      // of the front's progress counters
  int block_tiles;  // tiles of the contribution block
};

// The rows below the pivots of a child that fall into one tile of its parent, as a range of the child's rows.
struct LargeChunk {
  int child;       // of the plan
  int begin, end;  // rows of the child's contribution block
  int large;       // the child among the large fronts; NOT_LARGE, or FINISHED_BEFORE: by an earlier launch
};
constexpr int NOT_LARGE = -1;
constexpr int FINISHED_BEFORE = -2;

// Counters ahead of the progress counters: ticket, blocks that are done, launches before this one, reserved.
constexpr int LARGE_CONTROL = 4;

// By which an epoch moves progress counters: more than the tile columns of any front.
constexpr unsigned EPOCH_STEP = 4096;

}  // namespace gs::gpu
