// What the kernel of large fronts works off: one task a tile, in an order that is topological and keeps the device
// busy.
//
// A front's rows and columns are cut into tiles at 0, NB, .., W, W + NB, .., R (NB = LargeInput::tile). Every tile of
// the lower triangle (LU: of the whole front) is one task, or two tiles of the contribution block are, one below the
// other and both below the diagonal, where the front has tasks enough for its share of the device without them.
// kernels/fronts/large_fronts.cu says what a task does and waits for.
#pragma once
#include <cstdint>
#include <vector>

#include "../../../kernels/fronts/large_shape.cuh"
#include "base/types.hpp"

namespace gs::gpu {

// The structs of kernels/fronts/large.cuh.
struct LargeTask {
  std::int32_t front, large;  // of the plan, and among the large ones
  std::int32_t row, col;      // tile
  std::int32_t entry_begin;   // entries of A in this tile, from the front's first entry
  std::int32_t entry_count;
  std::int32_t row_pieces, col_pieces;  // into piece_ptr: those of its rows and of its columns
  std::int32_t tiles;                   // 2: tile (row + 1, col) is of this task too
};
struct LargeFront {
  std::int32_t counter;      // of the front's progress counters
  std::int32_t block_tiles;  // tiles of the contribution block
};
struct LargePiece {
  std::int32_t child;       // of the plan
  std::int32_t begin, end;  // rows of the child's contribution block
  std::int32_t large;       // the child among the large fronts, -1 if it is not, -2 if it is of an earlier segment
};
static_assert(sizeof(LargeTask) == 36 && sizeof(LargeFront) == 8 && sizeof(LargePiece) == 16);

// What it is made from: arrays of the plan (plan.hpp). The entries of every large front are reordered by tile.
struct LargeInput {
  idx nf = 0;
  bool cholesky = false;
  char scalar = 'd';
  idx tile = 64;
  int multiprocessors = 132;
  int shared_kb = 227;
  const idx *width = nullptr, *rows = nullptr, *parent = nullptr, *phase = nullptr;
  const off* below_ptr = nullptr;
  const std::uint16_t* place = nullptr;
  const idx *child_ptr = nullptr, *child = nullptr;
  std::vector<idx> segment_ptr = {};  // Plan::segment_ptr; empty: one
  const off* entry_ptr = nullptr;
  idx* entry_source = nullptr;
  std::uint32_t* entry_place = nullptr;
  double* entry_scale = nullptr;  // null: none
};

struct LargeTasks {
  std::vector<LargeTask> tasks;
  std::vector<LargeFront> fronts;
  std::vector<idx> piece_ptr;      // of every tile of every large front
  std::vector<LargePiece> pieces;  // of a tile: in the order of children
  idx counters = 0;                // 32-bit words to be zeroed once
  double seconds = 0;              // modelled
};

constexpr int kControlWords = 4;  // ahead of the progress counters (CONTROL in kernels/fronts/large.cuh)
constexpr int scalar_bytes(char scalar) { return scalar == 'f' ? 4 : scalar == 'D' ? 16 : 8; }
constexpr int large_tile(char scalar) { return large_shape(scalar_bytes(scalar), 227).tile; }

LargeTasks make_large_tasks(const LargeInput& input);

// When each large front starts and how long it takes if fronts share the device [s]; large: plan numbers, ascending.
struct LargeSchedule {
  std::vector<double> start, duration;
  std::vector<double> blocks;  // that work on it meanwhile
  double seconds = 0;
};
LargeSchedule schedule_large(const LargeInput& input, const std::vector<idx>& large);

}  // namespace gs::gpu
