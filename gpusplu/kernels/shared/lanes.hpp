// Batches on a device: a warp works 32 systems in lockstep, a lane each. Sizes, and what is listed for the kernels on
// top of the plan of fronts (shared/lockstep.hpp).
//
// Systems 32 g .. 32 g + 31 are group g. Entry e of an array of `size` entries lies at (g * size + e) * WARP_SIZE +
// lane. A front is cut into tiles at 0, s, .., W, W + s, .., R, so that no tile crosses the end of the pivots: s is
// FRONT_TILE in fronts of more than WIDE_ROWS rows and those above, where tiles are tasks of a block, else LEAF_TILE.
// Tiles are numbered as they can be computed, see tile_number.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int LANE_WARPS = 8;  // of a block
constexpr int LANE_THREADS = LANE_WARPS * WARP_SIZE;
constexpr int LANE_CONTROL_BYTES = 16;  // of the shared memory of a block: its ticket and the like, net of tiles
// Blocks of LANE_THREADS that a multiprocessor has, of kernels that factor and solve; and in double complex numbers.
constexpr int LANE_BLOCKS = 2;
constexpr int LANE_BLOCKS_WIDE = 1;
constexpr int LANE_TICKETS = 4;  // words of a launch: counters that its kernels take tickets from
constexpr int TEAM_WARPS = 4;    // that factor a front together
constexpr int TEAM_THREADS = TEAM_WARPS * WARP_SIZE;
constexpr int TEAM_ROWS = 16;  // of such a front at most
constexpr int WIDE_ROWS = 64;  // of one that a block of LANE_WARPS factors; in larger ones tiles are tasks of blocks

constexpr int LEAF_TILE = 4;
constexpr int IS_ENTRY = 1 << 16;  // in the place of an item
constexpr int STAGED_ITEMS = 16;   // that a warp of a team has on their way into shared memory
constexpr int FRONT_TILE = 16;
constexpr int PART_COLUMNS = FRONT_TILE / LANE_WARPS;  // columns of a tile that a warp assembles
constexpr int SUBTILE_ROWS = 4;                        // of a tile: rows that a warp holds in registers
constexpr int SUBTILE_COLUMNS = 8;

constexpr int SOLVE_ROWS = 8;         // of a front, that a warp solves for together
constexpr int SINGLE_WARP_ROWS = 16;  // of a front above the cut that a single warp solves with, at most
constexpr int LINES_AHEAD = 4;  // of SOLVE_ROWS entries, that a warp of a team has on their way into shared memory

constexpr int ENTRIES_PER_BLOCK = 256;  // of a system, that a block brings into lanes or out of them
constexpr int MEASURED_ROWS = 64;       // of op(A), that a block sums
constexpr int MEASURE_BYTES = 32;       // of shared memory, a thread of such a block

// Status of a system after a factorization.
struct LaneReport {
  unsigned multiplier;  // leading bits (common/pivots.cuh) of the largest entry of L off the diagonal
  unsigned upper;       // of U
  unsigned entry;       // of A, scaled
  int n_perturbed;      // pivots that were replaced; Cholesky: that are not positive
  int n_tiny;           // of these, below `singular`
  int failed;           // n - position of the first pivot that is tiny or not positive; 0: none
  int not_finite;       // values that are NaN or Inf
  int asymmetric;       // of an accumulated status: 1 if values of some call were
  double largest;       // Cholesky: entry of A in modulus
  double asymmetry;     // and difference of two that have to be conjugates
};

// Status of a system after a measured solve.
struct LaneErrors {
  double residual, x_norm, b_norm, a_norm;  // of the solution measured last
  double error;                             // normwise backward error of the best solution
  int active;                               // 1: another step may help
  int best;                                 // which of the two solutions is the best
  int steps;                                // that were kept
  int reserved;
};

// Outcome of solves with all right-hand sides for a system.
struct LaneOutcome {
  double error;  // the largest normwise backward error
  int steps;     // most steps of refinement
  int reserved;
};

// Status of a system accumulated over deferred calls, since the host last read and cleared it.
struct AccumulatedLaneStatus {
  LaneReport worst;      // the largest of each of the numbers of factorizations
  double error;          // the largest backward error; Inf for a solution that is no number or was not given
  long long n_factored;  // factorizations
  long long n_solved;    // solves
};

// A tile of a large front.
struct FrontTile {
  int front;
  int row, column;  // of tiles
  int number;       // of its flag and of its item_ptr / (LANE_WARPS + 1)
};

// Tiles of a front of T tiles a side before those of panel p.
GPUSPLU_HOST_DEVICE constexpr int tiles_before(int p, int T, bool cholesky) {
  const int off_diagonal = p * (T - 1) - p * (p - 1) / 2;
  return p + (cholesky ? 1 : 2) * off_diagonal;
}
// Number of tile (row, column) of a front with P tiles of pivots and T in all: panel by panel the diagonal tile, those
// below and, in LU, those to the right; at last the contribution block, column by column.
GPUSPLU_HOST_DEVICE constexpr int tile_number(int row, int column, int P, int T, bool cholesky) {
  const int p = row < column ? row : column, Q = T - P;
  if (p < P) return tiles_before(p, T, cholesky) + (row >= column ? row - p : T - 1 - p + column - p);
  const int r = row - P, c = column - P;
  return tiles_before(P, T, cholesky) + (cholesky ? c * Q - c * (c - 1) / 2 + r - c : c * Q + r);
}

}  // namespace gs::gpu
