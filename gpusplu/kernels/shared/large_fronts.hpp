// Large fronts (phase 3): sizes of their kernels, and the tasks of core/plan/fronts/large_tasks.hpp.
#pragma once
#include "shared/fronts.hpp"

namespace gs::gpu {

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
