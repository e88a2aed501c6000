// The program of LU by columns in lockstep. Pivots and pattern come from a factorization with pivoting; the program has
// a place for every entry that structure allows, whatever the values.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "analysis/graph.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/lockstep_factor.hpp"

namespace gs {
namespace {

// From a factorization of these values, or with the pivots of the analysis where there are none or where it fails.
template <class T> void choose_pivots(const Symbolic& symbolic, const PermutedPattern& B, const T* guide,
                                      ColumnNodes<T>& columns, std::vector<idx>& row_order) {
  const idx n = symbolic.n;
  const std::vector<idx> whole{0, n}, &blocks = symbolic.block_ptr.size() < 2 ? whole : symbolic.block_ptr;
  if (guide) {
    const auto in_order = [&](const std::vector<double>& scale, const std::vector<idx>& order) {
      std::vector<real_t<T>> out(scale.size());
      for (std::size_t k = 0; k < out.size(); k++) out[k] = (real_t<T>)scale[order[k]];
      return out;
    };
    const auto rows = in_order(symbolic.row_scale, symbolic.row_perm);
    const auto cols = in_order(symbolic.col_scale, symbolic.col_perm);
    const FactorInfo info = factor_with_pivoting<T>(B, blocks, guide, rows.empty() ? nullptr : rows.data(),
                                                    cols.empty() ? nullptr : cols.data(), {}, columns, row_order);
    if (info.status == FactorInfo::ok) return;
    columns = {};
  }
  std::vector<T> identity(B.row.size());
  for (idx k = 0; k < n; k++)
    for (off p = B.ptr[k]; p < B.ptr[k + 1]; p++) identity[B.first[k] + p - B.ptr[k]] = T(B.row[p] == k);
  factor_with_pivoting<T>(B, blocks, identity.data(), nullptr, nullptr, {}, columns, row_order);
}

// Places of the entries of each column, rows ascending in each part.
template <class T> void place_columns(ColumnNodes<T>& columns, LockstepColumns& out) {
  const idx n = columns.n_nodes();
  if (off(columns.lower_row.size() + columns.upper_row.size()) + n > std::numeric_limits<idx>::max())
    throw std::length_error("the factor of a system has more than 2147483647 entries");
  out.column.resize(n);
  for (idx k = 0; k < n; k++) {
    const ColumnNode &node = columns.node[k], &next = columns.node[k + 1];
    LockstepColumn& own = out.column[k] = {};
    idx* const upper = columns.upper_row.data();
    const off outer = next.upper_row - node.n_outer;
    std::sort(upper + node.upper_row, upper + outer);
    std::sort(upper + outer, upper + next.upper_row);
    idx* const lower = columns.lower_row.data();
    std::sort(lower + node.lower_row, lower + next.lower_row);
    own.begin = (idx)out.row.size();
    own.outer = node.n_outer, own.above = (idx)(outer - node.upper_row), own.below = node.n_lower;
    out.row.insert(out.row.end(), upper + outer, upper + next.upper_row);
    out.row.insert(out.row.end(), upper + node.upper_row, upper + outer);
    out.row.push_back(k);
    out.row.insert(out.row.end(), lower + node.lower_row, lower + next.lower_row);
  }
  // Supernodes, from their last columns: L has one more row in each than in the next one.
  for (idx k = n; k-- > 0;) {
    LockstepColumn& own = out.column[k];
    own.width = 1;
    if (k + 1 == n || own.below != out.column[k + 1].below + 1 || out.column[k + 1].width == most_lockstep_panel)
      continue;
    const idx *const rows = out.row.data() + own.lower(), *const next = out.row.data() + out.column[k + 1].lower();
    if (rows[0] == k + 1 && std::equal(next, next + own.below - 1, rows + 1)) own.width = out.column[k + 1].width + 1;
  }
}

void write_program(const Symbolic& symbolic, PatternView A, const PermutedPattern& B, const RawVector<idx>& a_row,
                   LockstepColumns& out) {
  const idx n = A.n;
  std::vector<std::uint16_t> place(n);
  std::vector<idx> given(n, -1);  // the last column in which A has an entry in this row
  for (idx k = 0, phase = -1; k < n; k++) {
    if (phase < 0 || k == out.phase[phase].end)
      phase++, out.phase[phase].segment = (off)out.segment.size(), out.phase[phase].target = (off)out.target.size();
    LockstepColumn& own = out.column[k];
    const idx* const rows = out.row.data() + own.begin;
    const idx size = own.pivot() + 1 + own.below;
    for (idx e = 0; e < size; e++) place[rows[e]] = (std::uint16_t)e;
    own.entry = (idx)B.first[k], own.n_entries = (idx)(B.ptr[k + 1] - B.ptr[k]);
    for (off p = B.ptr[k]; p < B.ptr[k + 1]; p++) given[a_row[p]] = k, out.target.push_back(place[a_row[p]]);
    for (idx e = 0; e < size; e++)
      if (given[rows[e]] != k) out.target.push_back((std::uint16_t)e), own.n_fill++;
    for (idx e = own.outer; e < own.pivot();) {
      // With an entry of a supernode, a column has all that follow, and may be one of them.
      const idx width = std::min(out.column[rows[e]].width, k - rows[e]);
      const LockstepColumn& last = out.column[rows[e] + width - 1];
      out.segment.push_back({rows[e], (std::uint16_t)width, (std::uint16_t)last.below});
      for (idx i = 0; i < last.below; i++) out.target.push_back(place[out.row[last.lower() + i]]);
      e += width;
    }
  }
  out.segment.resize(out.segment.size() + 2);  // is asked for ahead
  if (symbolic.row_scale.empty()) return;
  out.entry_scale.resize(A.nnz());
  for (idx j = 0; j < n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++)
      out.entry_scale[p] = symbolic.row_scale[A.ind[p]] * symbolic.col_scale[j];
}

}  // namespace

template <class T> LockstepColumns make_lockstep_columns(const Symbolic& symbolic, PatternView A, const T* guide) {
  if (symbolic.n != A.n) throw std::invalid_argument("the symbolic is of another matrix: orders differ");
  if (symbolic.structural_rank < symbolic.n) throw std::invalid_argument("a structurally singular matrix has no plan");
  if (A.n > most_lockstep_order) throw std::length_error("a matrix has too many columns for a program of columns");
  const PermutedPattern B = permuted_pattern(symbolic, A);
  ColumnNodes<T> columns;
  std::vector<idx> row_order;
  choose_pivots(symbolic, B, guide, columns, row_order);
  LockstepColumns out;
  place_columns(columns, out);
  for (const ColumnPhase& phase : columns.phase) out.phase.push_back({phase.begin, phase.end, phase.has_lower});
  write_program(symbolic, A, B, columns.a_row, out);
  out.row_perm = gather(symbolic.row_perm, row_order);
  return out;
}

#define GS_INSTANTIATE(T) template LockstepColumns make_lockstep_columns<T>(const Symbolic&, PatternView, const T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
