// The factor of a column LU: the storage that factor, refactor, solve and extraction share, laid out as
// simd/column_kernels.hpp describes. factor() leaves nodes of one column each, without segments and with unsorted rows;
// the first refactor() compiles them into nodes of up to 8 columns.
#pragma once
#include <limits>
#include <utility>
#include <vector>

#include "base/raw_vector.hpp"
#include "numeric/numeric.hpp"
#include "simd/column_kernels.hpp"

namespace gs {

constexpr double kCyclesPerSecond = 3e9;  // of common processors, within a factor of 1.5

// The permuted pattern of A that both factorizations read: column k of B is column col_perm[k] of A, entries ptr[k] ..
// ptr[k+1]-1 with B's row numbers (before pivoting); their values start at first[k] in A's order.
struct PermutedPattern {
  RawVector<off> ptr, first;
  RawVector<idx> row;
  off lower = 0;  // entries of L below the diagonal that the analysis expects
};

// Tasks in topological order: task t is nodes[ptr[t]] .. nodes[ptr[t+1]-1]. The first n_subtrees tasks are unions of
// subtrees of the elimination tree of all dependencies and are independent; each later one is a single node, by levels,
// and may depend on any task before it. `work` estimates the total [cycles]; `chained`: many of the later tasks wait
// for one another.
struct ColumnSchedule {
  int n_threads = 0;
  double work = 0;
  bool chained = false;
  idx n_subtrees = 0;
  std::vector<off> ptr;
  std::vector<idx> nodes;
  idx n_tasks() const { return (idx)ptr.size() - 1; }
};

PermutedPattern permuted_pattern(const Symbolic& symbolic, PatternView A);

// How a team of threads divides a solve with one diagonal block, or with a run of blocks: parts, which are unions of
// subtrees of the elimination tree of L + U, and the nodes above them, the top. A part collects what it subtracts from
// rows of the top in sums of its own.
struct ColumnParts {
  std::vector<idx> range_ptr;  // nodes of part p, or of the top: ranges[range_ptr[p]] .. ranges[range_ptr[p+1]-1]
  std::vector<NodeRange> ranges;
  std::vector<idx> sum_row;  // sum k of the block, which is number n + k of a solve, belongs to this row
  std::vector<idx> sum_ptr;
  // Of U's columns in the top, from the last one on: the rows of part p, and then of the top; in the end the rows of
  // all columns outside the diagonal block.
  std::vector<off> run_ptr;
  std::vector<ColumnRun> runs;
  idx n_parts() const { return sum_ptr.empty() ? 0 : (idx)sum_ptr.size() - 1; }
};

struct ColumnDivision {
  std::vector<ColumnParts> parts;  // by phase, without parts where these are not worth it; empty: not divided
  RawVector<idx> lower_row;        // that of the nodes, with sums in place of rows of the top
  idx most_parts = 0, most_sums = 0;
  double cycles = 0, of_parts = 0;  // approximately, of a solve, and of all parts of it
};

// ColumnSteps with their arrays.
template <class T> struct EntrySteps {
  std::vector<EntryRun> run;
  std::vector<idx> target;
  std::vector<ColumnEntries> column;
  RawVector<idx> a_place;
  RawVector<real_t<T>> a_scale;

  ColumnSteps<real_t<T>> steps() const {
    return {(idx)column.size(),
            (off)a_place.size(),
            run.data(),
            target.data(),
            column.data(),
            a_place.data(),
            a_scale.empty() ? nullptr : a_scale.data()};
  }
};

template <class T> struct ColumnNodes {
  RawVector<ColumnNode> node;
  RawVector<idx> lower_row, upper_row;
  RawVector<ColumnSegment> segment;
  RawVector<T> lower, upper;  // compiled: both in `lower`, upper values from upper_begin on
  off upper_begin = 0;
  RawVector<T> pivot, inverse_pivot;
  RawVector<idx> a_row, a_place;
  std::vector<ColumnPhase> phase;
  bool compiled = false;
  idx widest = 1;

  // For refactor: a dense column per worker, and how workers share the nodes.
  std::vector<ZeroedArray<T>> work;
  ColumnSchedule schedule;
  std::vector<int> done, claimed;  // epoch of the refactorization, by node and by subtree task
  int epoch = 0;
  int n_alone = 0;  // refactorizations by one thread so far
  EntrySteps<T> entries;

  ColumnDivision division;  // of solves

  const T* upper_values() const { return compiled ? lower.data() + upper_begin : upper.data(); }
  idx n_nodes() const { return (idx)node.size() - 1; }
  idx width(idx s) const { return node[s + 1].first - node[s].first; }

  ColumnProgram<real_t<T>> program(const PermutedPattern& B, const real_t<T>* row_scale,
                                   const real_t<T>* col_scale) const {
    const auto numbers = [](const auto& v) { return reinterpret_cast<real_t<T>*>(const_cast<T*>(v.data())); };
    return {n_nodes(),
            node.data(),
            lower_row.data(),
            upper_row.data(),
            segment.data(),
            numbers(lower),
            const_cast<real_t<T>*>(reinterpret_cast<const real_t<T>*>(upper_values())),
            numbers(pivot),
            numbers(inverse_pivot),
            B.ptr.data(),
            B.first.data(),
            a_row.data(),
            a_place.data(),
            row_scale,
            col_scale,
            phase.data(),
            (idx)phase.size()};
  }
};

// The structure of the compiled nodes, from the result of factor(), without values. Time: O(nnz(L+U)). If it throws,
// `columns` is unchanged.
template <class T>
ColumnNodes<T> compile_nodes(const PermutedPattern& B, const std::vector<idx>& block_ptr, ColumnNodes<T>&& columns);

// How a team of threads divides a refactorization: independent subtrees first, then the nodes above them as a pipeline.
// Time: nearly O(segments).
template <class T> ColumnSchedule schedule_nodes(const ColumnNodes<T>& f, const RawVector<off>& a_ptr, int n_threads);

// Depends on the pattern only. Time: nearly O(nnz(L+U)).
template <class T> ColumnDivision divide_for_solves(const ColumnNodes<T>& f);

// The refactorization entry by entry, with f.lower as its work array; empty where nodes are faster. Time: O(nnz(A) +
// steps).
template <class T> EntrySteps<T> compile_steps(ColumnNodes<T>& f, const PermutedPattern& B, const real_t<T>* row_scale,
                                               const real_t<T>* col_scale);

// Above this, the reciprocal of a pivot is below or near the smallest normal number and has lost digits.
template <class T> constexpr double largest_with_reciprocal = 1 / (16.0 * std::numeric_limits<real_t<T>>::min());

// Left-looking LU with partial pivoting: factors the diagonal blocks of B = Dr A Dc permuted into nodes of one column
// each; row_scale, col_scale: by B's rows and columns, may be null. row_order (out, gather): row k after pivoting is
// row row_order[k] of B. A column in the result is one of B. Time: proportional to the arithmetic and to the entries of
// the pruned graph.
template <class T> FactorInfo factor_with_pivoting(const PermutedPattern& B, const std::vector<idx>& block_ptr,
                                                   const T* values, const real_t<T>* row_scale,
                                                   const real_t<T>* col_scale, const PivotOptions& options,
                                                   ColumnNodes<T>& out, std::vector<idx>& row_order);

}  // namespace gs
