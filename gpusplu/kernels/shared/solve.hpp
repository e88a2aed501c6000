// Solves with fronts. Their order: core/plan/fronts/solve_schedule.hpp.
#pragma once
#include "shared/fronts.hpp"

namespace gs::gpu {

constexpr int SOLVE_THREADS = 256;  // of a block
constexpr int SOLVE_WARPS = SOLVE_THREADS / WARP_SIZE;
constexpr int SOLVE_SLOTS = SOLVE_WARPS;  // records of a ticket
constexpr int SOLVE_CONTROL = 8;          // words ahead of the counters; in SOLVES: the number of solves so far
constexpr int SOLVES = 0;
// Words of `control`: tickets forward, each followed by that backward.
constexpr int FORWARD_TICKET = 0;
constexpr int LARGE_FORWARD_TICKET = 2;
constexpr int SOLVE_TICKETS = 4;

constexpr int LANE_ROWS = 3;                                    // of a lane where a warp solves a front of phase 1 or 2
constexpr int WARP_SOLVE_ROWS = WARP_SIZE * LANE_ROWS - PANEL;  // of such a front; a panel fits after it

enum SolveKind { SOLVE_EMPTY = -1, SOLVE_TINY = 0, SOLVE_WARP = 1, SOLVE_BLOCK = 2 };

// A front as the solve sees it.
struct SolveFront {
  int width, rows;
  int kind;   // SolveKind; SOLVE_EMPTY: empty slot
  int first;  // plan position of the first pivot
  int front;
  int parent;                      // -1: none in this launch
  int children;                    // in this launch
  int below;                       // into below and the vector arena
  int gather_begin, gather_count;  // chunks
  long long factor;
};

// Places of the vector arena to be added, -1: none.
struct GatherChunk {
  int place[4];
};

// The same of phase 3.
struct LargeSolveFront {
  int width, rows, first, below;
  int parent;    // among the large fronts; -1: root
  int arrivals;  // tiles of rows below the pivots of its large children
  long long factor;
};
struct LargeSolveTask {
  int front;  // among the large ones
  int tile;   // forward: of rows, those below the pivots counted on; backward: of columns
};

// Right-hand sides that are solved together where there are several.
GPUSPLU_HOST_DEVICE constexpr int solve_rhs_group(int scalar_bytes) { return scalar_bytes == 16 ? 4 : 8; }

// Blocks that should be resident on a multiprocessor.
GPUSPLU_HOST_DEVICE constexpr int solve_blocks(int scalar_bytes) { return scalar_bytes == 16 ? 1 : 2; }
GPUSPLU_HOST_DEVICE constexpr int large_solve_blocks(bool forward, int columns) {
  return forward && columns == 1 ? 3 : 2;
}

// Shared memory of a block that solves with `columns` right-hand sides at a time: the ticket, and scalars.
constexpr int SOLVE_TICKET_BYTES = 16;
// Sums of gathers, a panel after a vector of the front's rows, twice.
GPUSPLU_HOST_DEVICE constexpr int solve_scalars(int columns) {
  return (SOLVE_THREADS + 2 * (SOLVE_THREADS + PANEL)) * columns;
}
// Sums over the warps, twice for one right-hand side, what they are subtracted from, and forward, or backward with the
// same memory for one right-hand side, the inverse of a diagonal tile.
GPUSPLU_HOST_DEVICE constexpr int large_solve_scalars(int tile, int columns) {
  const int partial = SOLVE_WARPS * tile * columns;
  return columns == 1 ? 2 * partial + tile + tile * tile : partial + tile * columns;
}

}  // namespace gs::gpu
