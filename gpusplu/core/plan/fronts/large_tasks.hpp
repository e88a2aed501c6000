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

#include "base/types.hpp"
#include "shared/costs.hpp"
#include "shared/large_fronts.hpp"

namespace gs::gpu {

// What it is made from: arrays of the plan (plan.hpp). The entries of every large front are reordered by tile.
struct LargeInput {
  idx nf = 0;
  bool cholesky = false;
  char scalar = 'd';
  idx tile = 64;
  int multiprocessors = 132;
  int shared_kb = 227;
  TileCosts costs{};
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

LargeTasks make_large_tasks(const LargeInput& input);

// When each large front starts and how long it takes if fronts share the device [s]; large: plan numbers, ascending.
struct LargeSchedule {
  std::vector<double> start, duration;
  std::vector<double> blocks;  // that work on it meanwhile
  double seconds = 0;
};
LargeSchedule schedule_large(const LargeInput& input, const std::vector<idx>& large);

}  // namespace gs::gpu
