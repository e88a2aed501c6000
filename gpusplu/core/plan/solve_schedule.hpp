// In which order the solve kernels take the fronts of phases 0 to 2, and what each of their rows sums.
//
// A ticket is kSolveSlots records: up to that many fronts of phase 0, a warp each, or one front of phases 1 and 2 in
// all of them. Forward takes tickets in this order, backward in the opposite one. A child comes before its parent, or
// beside it in the same ticket if both are a warp's. Fronts with the longest modelled way to the root of their phases
// come first, so that forward meets long chains early and backward meets all fronts of one depth together.
//
// Gathers are cut into pieces of 4 places for one thread each: row i of front f sums pieces piece_ptr[first[f] +
// below_ptr[f] + i] .. [+ 1], in this order; -1 pads the last piece of a row.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace gs::gpu {

constexpr int kSolveSlots = 8;  // warps of a block of the solve kernels
enum SolveKind : std::int32_t { kSolveEmpty = -1, kSolveTiny = 0, kSolveWarp = 1, kSolveBlock = 2 };

// struct SolveFront of kernels/solve.cuh
struct SolveFront {
  std::int32_t width = 0, rows = 0, kind = kSolveEmpty, first = 0, front = 0, parent = -1, children = 0, below = 0,
               gather_begin = 0, gather_count = 0;
  std::int64_t factor = 0;
};
static_assert(sizeof(SolveFront) == 48);

struct SolveSchedule {
  std::vector<SolveFront> slots;  // kSolveSlots a ticket
  std::vector<std::int32_t> piece_ptr;
  std::vector<std::array<std::int32_t, 4>> pieces;
  int tickets() const { return (int)(slots.size() / kSolveSlots); }
};

// Cost: O(structure), sorting the fronts aside. Deterministic.
SolveSchedule make_solve_schedule(const Plan& plan);

}  // namespace gs::gpu
