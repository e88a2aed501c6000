// The tasks of the kernel of large fronts: one per tile, in an order that is topological and keeps the device busy.
//
// A front's rows and columns are cut into tiles at 0, NB, .., W, W + NB, .., R (NB = PlanParameters::large_tile). Every
// tile of the lower triangle (LU: of the whole front) is one task, or two tiles of the contribution block are, one
// below the other and both below the diagonal, where the front has tasks enough for its share of the device without
// them. kernels/fronts/large_fronts.cu documents the work and the waits of a task.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "shared/costs.hpp"
#include "shared/fronts.hpp"

namespace gs::gpu {

struct LargeTasks {
  std::vector<LargeTask> tasks;
  std::vector<LargeFront> fronts;
  std::vector<idx> chunk_ptr;      // of every tile of every large front
  std::vector<LargeChunk> chunks;  // of a tile: in the order of children
  idx counters = 0;                // 32-bit words to be zeroed once
};

struct Plan;

// When each large front starts and how long it takes if fronts share the device [s]; large: plan numbers, ascending.
struct LargeSchedule {
  std::vector<double> start, duration;
  std::vector<double> blocks;  // that work on it during that time
  double seconds = 0;
};
LargeSchedule schedule_large(const Plan& plan, const std::vector<idx>& large);

// Predicted times of tiles of this plan's scalars [s].
struct TileTimes {
  double front, task;    // of a front; of a block, for a task net of its arithmetic
  double pivot, column;  // of the chain, a tile column
  double flop;           // of the device
  double blocks;         // that the device has
};
TileTimes tile_times(const Plan& plan);

}  // namespace gs::gpu
