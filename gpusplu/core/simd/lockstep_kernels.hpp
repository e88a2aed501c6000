// The table of kernels of systems in lockstep, compiled once per instruction set. Plain data only.
//
// A group has one system per lane. An array "in lanes" has 64 bytes of real numbers per entry, or twice that for
// complex numbers; the layout within an entry is private to the kernels.
#pragma once
#include "base/types.hpp"
#include "shared/lockstep.hpp"
#include "simd/dense_kernels.hpp"

namespace gs {

template <class T> constexpr int lockstep_lanes = 64 / (int)sizeof(real_t<T>);
template <class T> constexpr int lockstep_numbers = 64 / (int)sizeof(real_t<T>) * (is_complex<T> ? 2 : 1);  // an entry
constexpr int most_lockstep_lanes = 16;
constexpr int lockstep_columns = 4;  // right-hand sides that are solved together, if there are several

constexpr std::uint32_t no_entry = 0xffffffff;  // in place of the second entry of a pair

// ---- LU by columns: numeric/lockstep_columns.cpp

constexpr int most_lockstep_panel = 4;  // columns of a supernode

// The entries of a column in the factor, ascending in each part: rows outside the diagonal block, rows of the block
// above the pivot, the reciprocal of the pivot, rows below.
struct LockstepColumn {
  idx begin;
  idx outer, above, below;
  idx width;                                         // columns of its supernode from here on
  idx entry, n_entries;                              // of A, canonical
  idx n_fill;                                        // entries to be cleared
  int pivot() const { return outer + above; }        // relative to `begin`
  int lower() const { return begin + pivot() + 1; }  // of the first row below
};

// Columns column .. column + width - 1, the last ones of a supernode, update a column in `count` rows below them.
struct LockstepSegment {
  idx column;
  std::uint16_t width, count;
};

// Columns begin .. end - 1: a diagonal block, or several of order 1.
struct LockstepPhase {
  idx begin, end;
  bool has_lower;
  off segment, target;  // where those of its columns begin
};

struct LockstepColumnProgram {
  idx n = 0;
  const LockstepColumn* column = nullptr;  // null: fronts
  const idx* row = nullptr;                // of each entry of the factor
  const LockstepSegment* segment = nullptr;
  // Entries of a column, relative to its first, in the order of use: for each column those of A, those to be cleared,
  // and those that each segment updates.
  const std::uint16_t* target = nullptr;
  const double* entry_scale = nullptr;  // canonical; null: ones
  const LockstepPhase* phase = nullptr;
  idx n_phases = 0;
};

// A plan and its matrix, as kernels read them.
struct LockstepProgram {
  idx n, nf, n_entries;  // entries of A that belong to fronts
  bool cholesky;
  PatternView A;
  idx longest;        // most entries of a row or a column of A
  const idx* column;  // of each entry of A
  // Pairs of entries that must be conjugates, or of which the first must be zero (matrix/symmetry.hpp).
  const std::uint32_t *first, *second;
  off n_pairs;
  const gpu::LockstepFront* fronts;
  const idx *below, *child, *entry_source;
  const std::uint16_t* place;
  const off* sums;  // numeric/lockstep_factor.hpp
  const idx *sum_from, *sum_to;
  int most_listed;  // most rows of a child that the sums include
  const std::uint32_t* entry_target;
  const double* entry_scale;            // null: ones
  const idx *row_perm, *col_perm;       // gather
  const double *row_scale, *col_scale;  // by A's rows and columns; null: ones
  LockstepColumnProgram columns;        // in place of the fronts
};

// Statistics of a factorization for each lane.
struct LockstepNotes {
  double largest_entry, multiplier, upper;  // of the scaled matrix, of L, of U
  idx n_perturbed, n_tiny;
  idx failed;           // plan position of the first pivot that is tiny (Cholesky: not positive), or -1
  double largest_part;  // of the given entries of A
  bool not_symmetric;   // by the pairs; also set in borderline cases
  bool not_finite;      // an entry of A is not, or a pivot, or a norm of A may not be
  double norms[2];      // of A and its transpose in the infinity norm; -1: not computed yet
};

// Norms of a column of a solution in lanes: for each lane the largest entries by modulus; NaN if there is one.
struct LockstepNorms {
  double residual[most_lockstep_lanes], x[most_lockstep_lanes], b[most_lockstep_lanes];
};

template <class T> struct LockstepKernels {
  using R = real_t<T>;
  // Copies canonical values of the systems to lanes; entry k of a system is systems[lane][source[k]], a null source is
  // the identity. Initializes the notes: compares pairs of values, and notes unsymmetric ones, including some
  // borderline cases. If `kept` is not null, also writes the values there, bypassing the caches.
  void (*load)(const LockstepProgram& program, const T* const* systems, const off* source, R* values, R* kept,
               LockstepNotes* notes);
  // blocks: memory of the plan's task followed by memory that tasks share. Adds to the notes of `load`.
  void (*factor)(const LockstepProgram& program, const R* values, R* factor, R* blocks, const PivotRule& rule,
                 LockstepNotes* notes);
  // Solves with B, transposed as `trans` says, x in the plan's order, `columns` (1 or lockstep_columns) numbers per
  // row.
  void (*solve)(const LockstepProgram& program, const R* factor, Trans trans, int columns, R* x);
  // Both in one pass. `workspace` has as many entries as the factor; by columns it holds the factor afterwards.
  void (*factor_solve)(const LockstepProgram& program, const R* values, R* workspace, R* blocks, const PivotRule& rule,
                       LockstepNotes* notes, Trans trans, int columns, R* x);
  // r = b - op(A) x in A's order, and the norms of every column. With `sums`, a workspace of n real numbers in lanes,
  // also notes the norm of op(A).
  void (*residual)(const LockstepProgram& program, const R* values, Trans trans, int columns, const R* x, const R* b,
                   R* r, LockstepNorms* norms, R* sums, LockstepNotes* notes);
  // x += step, or x = other, of `count` entries in the chosen lanes (not 0).
  void (*add)(off count, const std::uint8_t* chosen, const R* step, R* x);
  void (*choose)(off count, const std::uint8_t* chosen, const R* other, R* x);
  // Copies entries (i, q), q < columns, of systems with rows that are `stride` numbers apart to lanes, lockstep_columns
  // or 1 of them per row with zeros for missing ones, and back to the first `present` systems.
  void (*take)(idx n, int columns, off stride, const T* const* systems, R* to);
  void (*give)(idx n, int columns, off stride, const R* from, int present, T* const* systems);
  // to(k) = scale[order[k]] from(order[k]), or with `back` to(order[k]) = scale[order[k]] from(k).
  void (*permute)(idx n, int columns, const idx* order, const double* scale, bool back, const R* from, R* to);
  // The number of one lane of an entry in lanes.
  T (*number)(const R* entry, int lane);
};

}  // namespace gs
