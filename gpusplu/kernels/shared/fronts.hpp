// Fronts of phases 0 to 2 and the launches of a factorization. Phases, items and partial columns are defined in
// core/plan/fronts/plan.hpp.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int PHASES = 4;  // warp, small, block, large
constexpr int LARGE_PHASE = 3;

constexpr int PANEL = 16;  // columns of a panel in fronts that a warp or a block factors, and rows of those of phase 0
constexpr int PANEL_LD = 20;  // between columns of a 16 x 16 block in shared memory: 4 mod 8, see fronts/tiles.cuh
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
  int first;        // plan position of the first pivot
  int parent;       // -1: root
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
  long long row_begin;    // into gather_ptr
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

}  // namespace gs::gpu
