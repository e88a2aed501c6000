// The plan of the supernodal GPU engine, independent of values: fronts, the layout of all arrays, and the order of the
// work. Flat arrays, copied to the device as they are.
//
// Fronts. Front f has `rows` R and `width` W: W pivots and H = R - W rows below them, its contribution block. Fronts
// are numbered in postorder (every subtree is contiguous, children come before their parent) and f owns the plan
// positions first[f] .. first[f] + W - 1. Local row 0 .. W-1 are its pivots, W + k its k-th row below,
// below[below_ptr[f] + k] (plan positions, ascending), which is local row place[below_ptr[f] + k] of the parent.
// `place` ascends, so the lower triangle of a contribution block lands in the lower triangle of the parent. R is at
// most MOST_ROWS.
//
// Phases. Class of a front by R: 0 warp, 1 small, 2 block, 3 large. A front's phase is the largest class in its
// subtree, so that phases can run one after another; level counts inside a phase, from 0. The format of a front's
// factor follows its phase, not its class. A front climbs to its parent in the same phase; for a parent of a later
// phase it only counts as done (climb = -2 - parent).
//
// Segments. Usually there is one. If contribution blocks would take more than block_bytes, ranges of fronts in
// postorder are factored one after another and share memory: fronts segment_ptr[s] .. segment_ptr[s+1]-1. A front of
// phases 0-2 is in the segment of its children. The factor of segment s is segment_size[s] scalars of the arena from
// segment_place[s] on.
//
// Out of core. If factors and blocks would take more than memory_bytes, the factors of segments 0 .. streamed - 1 lie
// on the host, one after another, and share buffers in the arena (segments.cpp): the engine copies a segment out
// when it is factored and back in for each direction of a solve. Results do not depend on any of this.
//
// Launches run in order, those of segment s from launch_ptr[s] to launch_ptr[s+1]. One of phases 0-2 takes start[begin
// .. begin + count): the fronts of one phase of one segment without a child in the phase, those with the longest
// modelled path up to the end of the phase first, in steps of 1/32 of the longest, and in plan order among equals, so
// that siblings run close together. One of phase 3 takes the large tasks begin .. begin + count - 1 (large_tasks.hpp).
//
// Arenas. Factors of a segment and contribution blocks lie one front after another in plan order; every front's part
// starts at a multiple of ARENA_ALIGN scalars. Sizes: factor_entries and block_entries below. block_base of a front of
// phase 0-2 is the offset of its first child's block.
//
// Assembly of phases 0-2. An item (shared/fronts.hpp) is up to 8 entries of one column of a child's block, one above
// the other there, that go to one column of the front.
// Groups of 8 lanes own columns: group g of a front adds items owner_ptr[owner_begin + g] .. owner_ptr[owner_begin + g
// + 1] in that order; no other group writes to these columns. GROUPS[phase] groups. A front without children has
// owner_begin = 0 and must not read there. Columns with many items are cut: their further parts are summed in columns
// R, R + 1, .. after the front (cleared like the front), to be added to the columns partial[partial_begin + e], e <
// partial_count <= MOST_PARTIALS, in this order, when all items are in. Only phases 1 and 2 have partial columns.
// One triangle (Cholesky, LDL^T): an item holds entries of the lower triangle only (the items of a column start at its
// diagonal). Shared memory of a front: front_ld(R) * (R + partial_count) scalars; a launch needs
// launches[].shared_bytes.
//
// Entries of A: entry k of a front is canonical entry entry_source[k], times entry_scale[k], at local row (place &
// 0xffff) and local column (place >> 16) of entry_place[k]; no two at the same place. Ascending entry_source inside a
// front. One triangle: those in the lower triangle of the plan's order. The canonical matrix holds both triangles, so
// the entry is taken as it is, complex ones without conjugation. In phase 3 a front's entries are sorted by tile first.
//
// Solve. The vector arena has a place for every entry of `below`: front c leaves what it adds to its k-th row below at
// below_ptr[c] + k. Local row i of front f sums gather_source[gather_ptr[below_ptr[f] + first[f] + i] .. [+ 1]),
// children in plan order.
//
// An interface (analysis/symbolic.hpp) is the last front. Nothing merges with it, it is large, the only front of the
// last segment, and has no factor: after the other segments have run, its children's blocks are in the arena.
//
// Deterministic: nothing depends on the number of threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/raw_vector.hpp"
#include "plan/fronts/large_tasks.hpp"
#include "shared/costs.hpp"
#include "shared/fronts.hpp"

namespace gs::gpu {

constexpr idx round_up(idx k, idx step) { return (k + step - 1) / step * step; }

struct PlanParameters {
  char scalar = 'd';            // f, d, F or D
  int shared_memory_bytes = 0;  // that a block can have
  int multiprocessors = 0;
  off block_bytes = 0;   // the arena of contribution blocks should not be larger; 0: it may
  off memory_bytes = 0;  // both arenas must not be larger, for any block_bytes; 0: they may
  int arch = 0;          // 90 for compute capability 9.0
  int warp_rows = PANEL;
  int small_rows = -1;      // most of class `small`; 0: there is none; -1: the model chooses
  int block_rows = 0;       // 0: as many as shared memory holds
  int large_cost = 0;       // of a large front where fronts merge [us]; 0: the model chooses
  int large_tile = 0;       // NB of phase 3; 0: that of the kernels
  SupernodalCosts costs{};  // all decisions use these costs

  int scalar_bytes() const { return gpu::scalar_bytes(scalar); }
  bool is_complex() const { return scalar == 'F' || scalar == 'D'; }
  LargeShape large_shape() const { return gpu::large_shape(scalar_bytes(), shared_memory_bytes / 1024); }
};

// Largest front of class `block`: with 8 partial columns and the inverted diagonal block it fits into shared
// memory; a multiple of 16.
idx block_rows_for(const PlanParameters& parameters);

struct Turns;  // segments.hpp

struct Plan {
  idx n = 0, nf = 0;
  bool cholesky = false, ldlt = false;
  idx n_interface = 0;  // columns of the last front, if that is not eliminated
  PlanParameters parameters;

  std::vector<idx> row_perm, col_perm;       // gather: B = (Dr A Dc)[row_perm][:, col_perm]
  std::vector<double> row_scale, col_scale;  // by A's rows and columns; empty: ones

  std::vector<idx> width, rows, first, parent, phase, level;
  std::vector<off> below_ptr;  // nf + 1
  RawVector<idx> below;
  RawVector<std::uint16_t> place;
  std::vector<idx> child_ptr, child;

  std::vector<off> entry_ptr;  // nf + 1
  RawVector<idx> entry_source;
  RawVector<std::uint32_t> entry_place;
  RawVector<double> entry_scale;

  std::vector<idx> segment_ptr;  // first front of every segment, and nf
  std::vector<off> segment_place, segment_size;
  idx streamed = 0;   // segments with factors on the host
  off host_size = 0;  // scalars on the host
  std::vector<off> factor_offset, block_offset;
  off factor_size = 0, block_size = 0;
  // For several devices: their arenas, and the place of a block on another device, that of the parent. The offsets
  // above are in the arenas of a front's own device.
  std::vector<off> factor_sizes, block_sizes, received;

  RawVector<idx> owner_ptr;
  std::vector<idx> partial;
  RawVector<Item> items;
  std::vector<idx> start;
  RawVector<off> gather_ptr;
  RawVector<idx> gather_source;

  RawVector<Front> fronts;
  std::vector<Launch> launches;
  std::vector<idx> launch_ptr;  // of every segment

  LargeTasks large;  // the tasks of phase 3

  std::vector<double> phase_seconds;  // predicted, of the factorization
  double factor_seconds = 0, solve_seconds = 0;
  double flops = 0;    // of the factorization, zeros of merged fronts included
  double seconds = 0;  // duration of making the plan

  bool one_triangle() const { return cholesky || ldlt; }
  idx height(idx f) const { return rows[f] - width[f]; }
  bool is_interface(idx f) const { return n_interface > 0 && f + 1 == nf; }
  // The segment that front f is in.
  idx segment_of(idx f) const {
    return (idx)(std::upper_bound(segment_ptr.begin(), segment_ptr.end(), f) - segment_ptr.begin()) - 1;
  }
};

// Scalars in the arenas. Phases 0-2: lower R x W, LU also upper W x H; block H x H. Phase 3: lower11 Wp x W, lower21 Hp
// x W, LU and LDL^T also upper11 and upper21 of these sizes (U transposed), then an NB x NB block for every tile
// column; block Hp x H (Wp, Hp: large_ld).
off factor_entries(const Plan& plan, idx W, idx H, bool large);
idx block_ld(idx H, bool large);
off block_entries(idx H, bool large);

// Stages of make_plan. Each fills the arrays named.
void merge_fronts(const Symbolic& symbolic, const MergePhases& costs, Plan& plan);  // perms, width .. child
void choose_small_rows(Plan& plan);                            // parameters.small_rows, by the model
std::vector<idx> phases_of(const Plan& plan, idx small_rows);  // the phases with this bound of class small
void place_arenas(Plan& plan);                                 // segments and offsets of both arenas; segments.cpp
void list_large(Plan& plan);                                   // large; sorts the entries of phase 3
void list_items(Plan& plan);                                   // owner_ptr, items, partial and `fronts`
void list_starts(Plan& plan);                                  // start, launches
void predict_times(Plan& plan);                                // *_seconds and flops; needs phases only

Plan make_plan(const Symbolic& symbolic, PatternView A, const PlanParameters& parameters);

// The same fronts, of a plan that does not stream, in segments that begin at these, mapped to several devices.
Plan with_segments(Plan plan, std::vector<idx> segment_ptr, const Turns& turns);

// Of several analyses of one matrix, the first for which a factorization and a solve are predicted to take least, and
// its plan. The others cost their fronts only.
struct BestPlan {
  std::size_t which;
  Plan plan;
  std::vector<double> seconds;  // predicted of a factorization and a solve, by analysis
};
BestPlan make_best_plan(const std::vector<const Symbolic*>& symbolics, PatternView A, const PlanParameters& parameters);

// The times that a plan would predict, from the tree of fronts alone: a small part of the cost of making the plan.
struct Prediction {
  double factor_seconds, solve_seconds;
};
Prediction predict_plan(const Symbolic& symbolic, const PlanParameters& parameters);

}  // namespace gs::gpu
