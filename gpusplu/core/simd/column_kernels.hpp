// The factor of a column LU as flat arrays, and the program that refactors it: the interface to the kernels of
// column_refactor.cpp. Plain data, so that the object files of different instruction sets share no code.
//
// A node is `width` (1, 2, 4 or 8) consecutive columns of one diagonal block, taken together because their structures
// (nearly) agree; missing entries are stored zeros. All its values are row-major with `width` numbers a row:
//   lower values   [the diagonal block, width x width, if width > 1]  then one row for each of lower_row
//   upper values   one row for each of upper_row: the rows eliminated by earlier nodes, segment by segment, and then
//                  the rows outside the diagonal block (entries of A that nothing is eliminated from)
// The diagonal block holds L below its diagonal and U on and above it. A segment is the part of a source node that
// updates this node: its columns from first_row to the source's last one.
//
// Entries of A are stored where the elimination of a node begins: in a work array that holds row r of the node at
// r * width, or, for a node of several columns without segments, directly among its values.
#pragma once
#include <limits>

#include "base/types.hpp"

namespace gs {

// Repeats the source's data that the update needs, so that the (many) segments are read in one stream.
struct ColumnSegment {
  off lower_row, lower_value;  // of the source
  idx first_row;
  idx source;  // node
  idx n_lower;
  std::uint8_t width, skipped;  // width of the source; its columns before first_row
};

// Where a node's part of each array begins; the entry after the last node ends the last part.
struct ColumnNode {
  off lower_row, lower_value, upper_row, upper_value, segment;
  idx first;  // column
  idx n_lower;
  idx n_outer;  // number of last entries of upper_row outside the diagonal block
};

// Nodes [begin, end) of one diagonal block, or of a run of blocks without any L.
struct ColumnPhase {
  idx begin, end;
  bool has_lower;
};

// T: float, double or std::complex of them, seen as Real numbers (pairs of them).
template <class Real> struct ColumnProgram {
  idx n_nodes;
  const ColumnNode* node;  // n_nodes + 1
  const idx* lower_row;
  const idx* upper_row;
  const ColumnSegment* segment;
  Real* lower;
  Real* upper;
  Real* pivot;          // n
  Real* inverse_pivot;  // n
  const off* a_ptr;     // n + 1: entries of B's column k in a_row
  const off* a_first;   // start of A's values of that column
  const idx* a_row;     // pivotal row numbers
  // Place of each entry, in numbers: in the work array, or relative to the node's first lower value, or, if negative,
  // to the end of its upper values.
  const idx* a_place;
  const Real* row_scale;  // in pivotal row and column order, or null
  const Real* col_scale;
  const ColumnPhase* phase;  // ascending
  idx n_phases;
};

// The same refactorization entry by entry, for factors so sparse that handling rows of nodes takes longer than the
// arithmetic. Places count numbers in an array of lower values, upper values, pivots, and one that stays zero. Entry q
// of A, in A's order, is scaled by a_scale[q] (null: 1) and stored at a_place[q]. The runs of a column come in the
// order of the nodes' arithmetic: each subtracts number `upper` times `count` numbers from `lower` on from those at the
// next places of `target`.
struct EntryRun {
  idx upper, lower, count, stride;
};
struct ColumnEntries {
  idx end;                                // of its runs
  idx pivot, lower, n_lower, stride;      // place of the pivot, and of its entries of L
  idx upper, n_upper, diagonal, n_block;  // at the last column of a node: its U and its diagonal block
};
template <class Real> struct ColumnSteps {
  idx n;
  off nnz;
  const EntryRun* run;
  const idx* target;
  const ColumnEntries* column;
  const idx* a_place;
  const Real* a_scale;
};

constexpr int kStopped = -1;  // in place of a status: the call was asked to stop

// Observations of one worker, on a cache line of its own.
template <class Real> struct alignas(64) ColumnMonitor {
  Real max_entry = 0, max_upper = 0, max_multiplier = 0, max_pivot = 0;
  Real min_pivot = std::numeric_limits<Real>::max();
  int status = 0;   // FactorInfo::Status
  idx column = -1;  // of B
};

// Refactors nodes[0] .. nodes[count-1] in that order. work: zeros, as many numbers as rows times the largest width; the
// kernel leaves it zero unless the status is bad. values: A's. Shared between threads: the thread that finishes node s
// sets done[s] to `epoch`; with `wait` it waits for source nodes by wait_for(&done[s], team), false if it must give up.
template <class Real> struct ColumnTask {
  const Real* values;
  Real* work;
  const idx* nodes;
  off count;
  Real bound;  // multipliers above it are reported as bad growth
  int* done;   // null: one thread does everything in order
  int epoch;
  bool wait;
  bool (*wait_for)(const int* done, const void* team);
  const void* team;
};

// Nodes begin .. end-1.
struct NodeRange {
  idx begin, end;
};

// Rows of U's node, as places in upper_row.
struct ColumnRun {
  off begin, end;
  idx node;
};

// forward: L; backward: U. The others are pieces of `backward` for threads that share it: backward_inner without the
// rows outside the diagonal block, backward_runs with the runs only, which have the order in which it visits nodes, and
// `runs`, which only subtracts runs of nodes that are solved already.
enum class ColumnSweep {
  forward,
  backward,
  backward_inner,
  backward_runs,
  runs,
  forward_transposed,  // U
  backward_transposed  // L
};

// A sweep over ranges of nodes, for B y = y or its transpose in place. Forward sweeps begin with the first node of the
// first range, the others with the last node of the last range. y is interleaved: number q of row k at y[k * n_rhs +
// q]; n_rhs is 1, 2, 4 or 8.
template <class Real> struct ColumnSolve {
  Real* y;
  int n_rhs;
  ColumnSweep sweep;
  const NodeRange* ranges;
  idx n_ranges;
  const ColumnRun* runs;
  off n_runs;
};

}  // namespace gs
