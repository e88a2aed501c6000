// L and U of A[row_perm][:, col_perm] = L U without scaling, from the nodes. Stored zeros (padding, cancellation) are
// omitted. Above the diagonal blocks the factor holds entries of A, so U_ab = L_aa^-1 A_ab is computed here, by sparse
// forward substitution column by column.
#include <functional>
#include <queue>

#include "base/operation.hpp"
#include "base/scalars.hpp"
#include "matrix/sort_rows.hpp"
#include "numeric/column_lu.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/unscaled.hpp"

namespace gs {
namespace {

// Calls entry(row, value) for column k of L below the diagonal, in no particular order.
template <class T, class F> void for_lower(const ColumnNodes<T>& nodes, idx s, idx k, F&& entry) {
  const ColumnNode& node = nodes.node[s];
  const idx width = nodes.width(s), c = k - node.first;
  const T* value = nodes.lower.data() + node.lower_value;
  if (width > 1) {
    for (idx i = c + 1; i < width; i++) entry(node.first + i, value[i * width + c]);
    value += width * width;
  }
  for (idx p = 0; p < node.n_lower; p++) entry(nodes.lower_row[node.lower_row + p], value[(off)p * width + c]);
}

// The same for column k above the diagonal.
template <class T, class F> void for_upper(const ColumnNodes<T>& nodes, idx s, idx k, F&& entry) {
  const ColumnNode& node = nodes.node[s];
  const idx width = nodes.width(s), c = k - node.first;
  const T* value = nodes.upper.data() + node.upper_value;
  for (off p = node.upper_row; p < nodes.node[s + 1].upper_row; p++)
    entry(nodes.upper_row[p], value[(p - node.upper_row) * width + c]);
  const T* block = nodes.lower.data() + node.lower_value;
  for (idx i = 0; i < c; i++) entry(node.first + i, block[i * width + c]);
}

// Solves L x = x for one sparse column with nonzeros in `rows`, and appends the nonzeros of the result, rows ascending.
template <class T> class OuterSolve {
 public:
  OuterSolve(const ColumnNodes<T>& nodes, const std::vector<idx>& node_of)
      : nodes_(nodes), node_of_(node_of), x_(node_of.size(), T(0)), queued_(node_of.size(), false) {}
  void add(idx row, T v) {
    x_[row] += v;
    if (queued_[row]) return;
    queued_[row] = true;
    queue_.push(row);
  }
  template <class F> void run(F&& entry) {
    while (!queue_.empty()) {
      const idx row = queue_.top();
      queue_.pop();
      queued_[row] = false;
      const T v = x_[row];
      x_[row] = T(0);
      if (v == T(0)) continue;
      entry(row, v);
      for_lower(nodes_, node_of_[row], row, [&](idx below, T l) {
        if (l != T(0)) add(below, -l * v);
      });
      pace_.go_on(kOfRow + nodes_.node[node_of_[row]].n_lower);
    }
  }

 private:
  const ColumnNodes<T>& nodes_;
  const std::vector<idx>& node_of_;
  std::vector<T> x_;
  static constexpr off kOfRow = 16;  // entries that take as long as taking a row from the queue
  Pace pace_;
  std::vector<char> queued_;
  std::priority_queue<idx, std::vector<idx>, std::greater<idx>> queue_;
};

template <class T> void append(Matrix<T>& out, idx row, T v) {
  out.pattern.ind.push_back(row);
  out.values.push_back(v);
}

}  // namespace

template <class T> AnyMatrix ColumnLU<T>::lower() const {
  Matrix<T> out;
  out.pattern.n = n_;
  out.pattern.ptr.push_back(0);
  Pace pace;
  for (idx s = 0; s < nodes_->n_nodes(); s++)
    for (idx k = nodes_->node[s].first; k < nodes_->node[s + 1].first; k++) {
      pace.go_on(1 + nodes_->node[s].n_lower);
      append(out, k, T(1));
      for_lower(*nodes_, s, k, [&](idx row, T v) {
        if (v != T(0)) append(out, row, unscaled(v, row_scale(k), 1 / row_scale(row)));
      });
      out.pattern.ptr.push_back((off)out.pattern.ind.size());
    }
  sort_rows(out);
  return out;
}

template <class T> AnyMatrix ColumnLU<T>::upper() const {
  std::vector<idx> node_of(n_), block_begin(n_);
  for (idx s = 0; s < nodes_->n_nodes(); s++)
    for (idx k = nodes_->node[s].first; k < nodes_->node[s + 1].first; k++) node_of[k] = s;
  for (std::size_t block = 0; block + 1 < block_ptr_.size(); block++)
    for (idx k = block_ptr_[block]; k < block_ptr_[block + 1]; k++) block_begin[k] = block_ptr_[block];
  OuterSolve<T> outer(*nodes_, node_of);
  Matrix<T> out;
  out.pattern.n = n_;
  out.pattern.ptr.push_back(0);
  Pace pace;
  for (idx k = 0; k < n_; k++) {
    const ColumnNode* const node = nodes_->node.data() + node_of[k];
    pace.go_on(1 + node[1].upper_row - node[0].upper_row);
    const auto emit = [&](idx row, T v) { append(out, row, unscaled(v, 1 / row_scale(row), 1 / col_scale(k))); };
    for_upper(*nodes_, node_of[k], k, [&](idx row, T v) {
      if (v == T(0)) return;
      if (row >= block_begin[k]) emit(row, v);
      else outer.add(row, v);
    });
    outer.run(emit);
    emit(k, nodes_->pivot[k]);
    out.pattern.ptr.push_back((off)out.pattern.ind.size());
  }
  sort_rows(out);
  return out;
}

template <class T> Values ColumnLU<T>::diagonal() const {
  std::vector<T> out(n_);
  for (idx k = 0; k < n_; k++) out[k] = unscaled(nodes_->pivot[k], 1 / row_scale(k), 1 / col_scale(k));
  return out;
}

#define GS_INSTANTIATE(T)                        \
  template AnyMatrix ColumnLU<T>::lower() const; \
  template AnyMatrix ColumnLU<T>::upper() const; \
  template Values ColumnLU<T>::diagonal() const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
