// In which order the solve kernels take the fronts, and what each row sums.
//
// Phases 0 to 2. A ticket is kSolveSlots records: up to that many fronts of a warp each and of about the same size, or
// one front of phases 1 and 2 in all of them. Forward takes tickets in this order, backward in the opposite one. A
// child comes before its parent, or beside it in the same ticket if both are a warp's. Fronts with the longest modelled
// way to the root of their phases come first, so that forward meets long chains early and backward meets all fronts of
// one depth together.
//
// Phase 3. A task is a tile of rows forward and a tile of columns backward (kernels/fronts/solve_large.cu). A task
// waits for earlier ones only; tasks are sorted by the modelled time that is left when they start (forward) or that has
// gone by when they can start (backward), so that the chains of fronts that are independent advance side by side.
//
// Parts. What streams is solved segment by segment: part k is segment k of the plan for k < streamed, and the last part
// is all the others. Each part has its own range of tickets and of tasks, and launches of its own; parts run in this
// order forward and in the opposite one backward. Sums do not depend on how many parts there are.
//
// Gathers are cut into pieces of 4 places for one thread each: row i of front f sums pieces piece_ptr[first[f] +
// below_ptr[f] + i] .. [+ 1], in this order; -1 pads the last piece of a row.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "plan/fronts/plan.hpp"

namespace gs::gpu {

constexpr int kSolveSlots = 8;  // warps of a block of the solve kernels
constexpr int kWarpRows = 80;   // of a front that a warp can solve
enum SolveKind : std::int32_t { kSolveEmpty = -1, kSolveTiny = 0, kSolveWarp = 1, kSolveBlock = 2 };

// struct SolveFront of kernels/fronts/solve.cuh
struct SolveFront {
  std::int32_t width = 0, rows = 0, kind = kSolveEmpty, first = 0, front = 0, parent = -1, children = 0, below = 0,
               gather_begin = 0, gather_count = 0;
  std::int64_t factor = 0;
};
static_assert(sizeof(SolveFront) == 48);

// struct LargeSolveFront and LargeSolveTask of kernels/fronts/solve_large.cu
struct LargeSolveFront {
  std::int32_t width, rows, first, below;
  std::int32_t parent, parent_tiles;  // among the large fronts, -1; its tiles of pivots
  std::int32_t arrivals;              // tiles of rows below the pivots of its large children
  std::int32_t reserved;
  std::int64_t factor;
};
struct LargeSolveTask {
  std::int32_t front, tile;
};
static_assert(sizeof(LargeSolveFront) == 40 && sizeof(LargeSolveTask) == 8);

struct SolveSchedule {
  std::vector<SolveFront> slots;  // kSolveSlots a ticket
  std::vector<std::int32_t> piece_ptr;
  std::vector<std::array<std::int32_t, 4>> pieces;
  std::vector<LargeSolveFront> large;
  std::vector<LargeSolveTask> large_forward, large_backward;
  std::vector<std::int32_t> ticket_ptr, forward_ptr, backward_ptr;  // of every part: tickets, large tasks
  int tickets() const { return (int)(slots.size() / kSolveSlots); }
};

// Cost: O(structure), sorting fronts and tasks aside. Deterministic.
SolveSchedule make_solve_schedule(const Plan& plan);

}  // namespace gs::gpu
