// The order in which the solve kernels process the fronts, and the terms that each row sums.
//
// Phases 0 to 2. A ticket is SOLVE_SLOTS records: up to that many fronts of a warp each and of about the same size, or
// one front of phases 1 and 2 in all of them. Forward takes tickets in this order, backward in the opposite one. A
// child comes before its parent, or is in the same ticket if a warp solves each of them. Fronts with the longest
// modelled path to the root of their phases come first, so that forward meets long chains early and backward meets all
// fronts of one depth together.
//
// Phase 3. A task is a tile of rows forward and a tile of columns backward (kernels/fronts/solve_large.cu). A task
// waits for earlier ones only; tasks are sorted by the modelled time that is left when they start (forward) or that has
// gone by when they can start (backward), so that independent chains of fronts advance concurrently.
//
// Parts. Streamed segments are solved one by one: part k is segment k of the plan for k < streamed, and the last part
// is all the others. Each part has its own range of tickets and of tasks, and launches of its own; parts run in this
// order forward and in the opposite one backward. Sums do not depend on how many parts there are.
//
// Gathers are cut into chunks of 4 places for one thread each: row i of front f sums chunks chunk_ptr[first[f] +
// below_ptr[f] + i] .. [+ 1], in this order; -1 pads the last chunk of a row.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/fronts/plan.hpp"
#include "shared/solve.hpp"

namespace gs::gpu {

struct SolveSchedule {
  std::vector<SolveFront> slots;  // SOLVE_SLOTS a ticket
  std::vector<std::int32_t> chunk_ptr;
  std::vector<GatherChunk> chunks;
  std::vector<LargeSolveFront> large;
  std::vector<LargeSolveTask> large_forward, large_backward;
  std::vector<std::int32_t> ticket_ptr, forward_ptr, backward_ptr;  // of every part: tickets, large tasks
  int tickets() const { return (int)(slots.size() / SOLVE_SLOTS); }
};

// Cost: O(structure), sorting fronts and tasks aside. Deterministic.
SolveSchedule make_solve_schedule(const Plan& plan);
// The same in parts given by the caller: front f is in part[f]. A front is in no earlier part than its children, and in
// theirs if it is not large.
SolveSchedule make_solve_schedule(const Plan& plan, const std::vector<idx>& part, idx parts);

}  // namespace gs::gpu
