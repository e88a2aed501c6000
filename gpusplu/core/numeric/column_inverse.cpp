// Entries of A^-1 from the columns of L and U: the recurrence of Takahashi, Fagan and Chen (Formation of a sparse bus
// impedance matrix and its application to short circuit study, PICA 1973; Erisman and Tinney, On computing certain
// elements of the inverse of a sparse matrix, CACM 18 (1975)).
//
// With B = L U and Z = B^-1, from U Z = L^-1 and Z L = U^-1 follow, for rows k of column j of L and columns i of row j
// of U,
//   Z_jk = -1/U_jj sum_i U_ji Z_ik,   Z_ij = -sum_k Z_ik L_kj,   Z_jj = 1/U_jj - sum_k Z_jk L_kj,
// and all Z_ik that they need have (k, i) in the pattern of L + U, because of the fill. Columns i of L + U are
// processed from the last to the first. A dense column holds Z_ik for the rows k of column i; each entry U_ji, from the
// last eliminated to the first, reads the column of L that it was eliminated with, gives Z_ij, and adds its term to the
// sums of Z_jk, which are stored at the positions of L's entries. These are the steps of the left-looking factorization
// in reverse order, with twice its arithmetic.
//
// Entries (k, i) of B outside the diagonal blocks are above them; the corresponding Z_ik are below them and zero.
#include "analysis/graph.hpp"
#include "base/operation.hpp"
#include "base/parts.hpp"
#include "base/scalars.hpp"
#include "numeric/column_lu.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/unscaled.hpp"

namespace gs {
namespace {

// Column k of L below the diagonal inside its node, and below the node; entries are `stride` apart.
template <class T> struct LowerColumn {
  idx first_inside, n_inside, n_below, stride;
  off inside, below;  // of the values
  const idx* rows;    // below

  LowerColumn(const ColumnNodes<T>& nodes, idx s, idx k) {
    const ColumnNode& node = nodes.node[s];
    const idx width = nodes.width(s), c = k - node.first;
    first_inside = k + 1, n_inside = width - 1 - c, n_below = node.n_lower, stride = width;
    inside = node.lower_value + (c + 1) * width + c;
    below = node.lower_value + (width > 1 ? width * width : 0) + c;
    rows = nodes.lower_row.data() + node.lower_row;
  }

  // visit(row, place of the value)
  template <class Visit> void each(Visit&& visit) const {
    for (idx i = 0; i < n_inside; i++) visit(first_inside + i, inside + (off)i * stride);
    for (idx p = 0; p < n_below; p++) visit(rows[p], below + (off)p * stride);
  }
};

template <class T> class ColumnInverse {
 public:
  explicit ColumnInverse(const ColumnNodes<T>& nodes)
      : nodes_(nodes), node_of_(nodes.pivot.size()), sums_(nodes.lower.size(), T(0)), z_(nodes.pivot.size(), T(0)) {
    for (idx s = 0; s < nodes.n_nodes(); s++)
      for (idx k = nodes.node[s].first; k < nodes.node[s + 1].first; k++) node_of_[k] = s;
  }

  // Calls column(i, z) for each column, from the last to the first: z[k] is Z_ik for the rows k of L + U, else 0.
  template <class Column> void run(Column&& column) {
    for (idx i = (idx)z_.size(); i-- > 0;) {
      start(i);
      eliminated_with(i, [&](idx j, T u) {
        step(j, u);
        pace_.go_on(1 + nodes_.node[node_of_[j]].n_lower);
      });
      column(i, z_.data());
      LowerColumn<T>(nodes_, node_of_[i], i).each([&](idx k, off) { z_[k] = T(0); });
      eliminated_with(i, [&](idx j, T) { z_[j] = T(0); });
      z_[i] = T(0);
    }
  }

  // Calls row(k) for the rows of column i of L + U inside its diagonal block, without padding and cancelled entries.
  template <class Row> void rows_of(idx i, Row&& row) const {
    row(i);
    LowerColumn<T>(nodes_, node_of_[i], i).each([&](idx k, off at) {
      if (nodes_.lower[at] != T(0)) row(k);
    });
    eliminated_with(i, [&](idx j, T u) {
      if (u != T(0)) row(j);
    });
  }

 private:
  void start(idx i) {
    const T inverse_pivot = nodes_.inverse_pivot[i];
    T diagonal = inverse_pivot;
    LowerColumn<T>(nodes_, node_of_[i], i).each([&](idx k, off at) {
      z_[k] = sums_[at] * inverse_pivot;
      diagonal -= z_[k] * nodes_.lower[at];
    });
    z_[i] = diagonal;
  }

  // Entries of column i of U above the diagonal and inside its diagonal block, the last eliminated first.
  template <class Visit> void eliminated_with(idx i, Visit&& visit) const {
    const idx s = node_of_[i], width = nodes_.width(s);
    const ColumnNode& node = nodes_.node[s];
    const idx c = i - node.first;
    const T* block = nodes_.lower.data() + node.lower_value;
    for (idx j = c; j-- > 0;) visit(node.first + j, block[j * width + c]);
    const off n_rows = nodes_.node[s + 1].upper_row - node.upper_row - node.n_outer;
    const T* upper = nodes_.upper.data() + node.upper_value;
    for (off p = n_rows; p-- > 0;) visit(nodes_.upper_row[node.upper_row + p], upper[p * width + c]);
  }

  void step(idx j, T u) {
    T sum(0);
    LowerColumn<T>(nodes_, node_of_[j], j).each([&](idx k, off at) {
      sum -= z_[k] * nodes_.lower[at];
      sums_[at] -= z_[k] * u;
    });
    z_[j] = sum;
  }

  const ColumnNodes<T>& nodes_;
  std::vector<idx> node_of_;
  std::vector<T> sums_;
  std::vector<T> z_;
  Pace pace_;
};

}  // namespace

template <class T> void ColumnLU<T>::inverse_on_pattern(PatternView P, void* out, bool) const {
  T* const inverse = (T*)out;
  const std::vector<idx> place = inverse_permutation(row_perm_.data(), n_);
  ColumnInverse<T>(*nodes_).run([&](idx i, const T* z) {
    const idx j = col_perm_[i];
    for (off p = P.ptr[j]; p < P.ptr[j + 1]; p++) {
      const idx k = place[P.ind[p]];
      inverse[p] = unscaled(z[k], row_scale(k), col_scale(i));
    }
  });
}

// The entries of L + U, and those above the diagonal blocks, which are zero in the inverse.
template <class T> std::vector<char> ColumnLU<T>::has_places(PatternView P) const {
  const std::vector<idx> place = inverse_permutation(row_perm_.data(), n_), block_of = part_of_each(block_ptr_, n_);
  std::vector<idx> column_of(n_, -1);  // the last one that has a row
  const ColumnInverse<T> columns(*nodes_);
  std::vector<char> has(P.nnz());
  Pace pace;
  for (idx i = 0; i < n_; i++) {
    const off begin = P.ptr[col_perm_[i]], end = P.ptr[col_perm_[i] + 1];
    if (begin == end) continue;
    off visited = end - begin;
    columns.rows_of(i, [&](idx k) { column_of[k] = i, visited++; });
    pace.go_on(visited);
    for (off p = begin; p < end; p++) {
      const idx k = place[P.ind[p]];
      has[p] = column_of[k] == i || block_of[k] < block_of[i];
    }
  }
  return has;
}

#define GS_INSTANTIATE(T)                                                        \
  template void ColumnLU<T>::inverse_on_pattern(PatternView, void*, bool) const; \
  template std::vector<char> ColumnLU<T>::has_places(PatternView) const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
