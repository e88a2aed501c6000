// Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972, without recursion.
// Column j of B points to the columns k with B(k, j) stored. Tarjan completes a component after all it points to, so
// components in order of completion are the blocks of an upper triangular form.
#include "analysis/block_triangular.hpp"

#include <algorithm>
#include <limits>

#include "base/operation.hpp"

namespace gs {
namespace {

class Components {
 public:
  Components(PatternView A, const idx* row_of_col) : A_(A), arena_(5 * (std::size_t)A.n), next_(A.n) {
    const idx n = A.n;
    low_ = arena_.data();
    block_ = low_ + n;
    open_ = block_ + n;
    path_ = open_ + n;
    node_of_row_ = path_ + n;
    for (idx j = 0; j < n; ++j) {
      node_of_row_[row_of_col ? row_of_col[j] : j] = j;
      low_[j] = 0;
    }
  }

  BlockTriangular run() {
    for (idx j = 0; j < A_.n; ++j)
      if (!low_[j]) search(j);
    BlockTriangular result;
    result.block_ptr.assign(n_blocks_ + 1, 0);
    result.perm.resize(A_.n);
    for (idx j = 0; j < A_.n; ++j) ++result.block_ptr[block_[j] + 1];
    for (idx b = 0; b < n_blocks_; ++b) result.block_ptr[b + 1] += result.block_ptr[b];
    idx* const place = open_;
    std::copy_n(result.block_ptr.begin(), n_blocks_, place);
    for (idx j = 0; j < A_.n; ++j) result.perm[place[block_[j]]++] = j;
    return result;
  }

 private:
  static constexpr idx closed = std::numeric_limits<idx>::max();

  // low_: 0 not seen, then the smallest visiting number known to be reachable, `closed` once its block is complete.
  void search(idx root) {
    idx depth = 0;
    enter(root, depth);
    while (depth > 0) {
      const idx j = path_[depth - 1];
      const off end = A_.ptr[j + 1];
      off p = next_[j];
      idx low = low_[j], child = -1;
      for (; p < end; ++p) {
        const idx k = node_of_row_[A_.ind[p]];
        if (!low_[k]) {
          child = k;
          break;
        }
        low = std::min(low, low_[k]);
      }
      low_[j] = low;
      next_[j] = p;  // a child is visited again when it is complete: then its low_ counts
      if (child >= 0) enter(child, depth);
      else leave(j, depth);
    }
  }

  void enter(idx j, idx& depth) {
    path_[depth++] = j;
    open_[n_open_++] = j;
    block_[j] = low_[j] = ++visits_;  // until its block is known, block_ holds the visiting number
    next_[j] = A_.ptr[j];
  }

  void leave(idx j, idx& depth) {
    --depth;
    if (low_[j] != block_[j]) return;
    idx k;
    do {
      k = open_[--n_open_];
      low_[k] = closed;
      block_[k] = n_blocks_;
    } while (k != j);
    ++n_blocks_;
  }

  const PatternView A_;
  RawVector<idx> arena_;
  RawVector<off> next_;
  idx *low_, *block_, *open_, *path_, *node_of_row_;
  idx n_open_ = 0, visits_ = 0, n_blocks_ = 0;
};

}  // namespace

BlockTriangular block_triangular(PatternView A, const idx* row_of_col) {
  if (A.n == 0) return {{}, {0}};
  return Components(A, row_of_col).run();
}

// A column with a single entry is the first of an upper triangle; the next is found in the same way after it and its
// row are removed.
bool is_triangular(PatternView A) {
  std::vector<idx> single;
  std::vector<off> left(A.n);
  for (idx j = 0; j < A.n; j++)
    if ((left[j] = A.ptr[j + 1] - A.ptr[j]) == 1) single.push_back(j);
  if (A.n > 0 && single.empty()) return false;
  std::vector<off> row_ptr(A.n + 1);
  std::vector<idx> column(A.nnz());  // of the entries by rows
  for (off p = 0; p < A.nnz(); p++) row_ptr[A.ind[p]]++;
  for (idx i = 0; i < A.n; i++) row_ptr[i + 1] += row_ptr[i];
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) column[--row_ptr[A.ind[p]]] = j;
  std::vector<char> taken(A.n);
  idx found = 0;
  Pace pace;
  while (!single.empty()) {
    const idx j = single.back();
    single.pop_back();
    const idx* row = A.ind + A.ptr[j];
    while (row < A.ind + A.ptr[j + 1] && taken[*row]) row++;
    if (row == A.ind + A.ptr[j + 1]) return false;  // another column had the same row
    taken[*row] = true, found++;
    for (off p = row_ptr[*row]; p < row_ptr[*row + 1]; p++)
      if (--left[column[p]] == 1) single.push_back(column[p]);
    pace.go_on(1 + A.ptr[j + 1] - A.ptr[j] + row_ptr[*row + 1] - row_ptr[*row]);
  }
  return found == A.n;
}

}  // namespace gs
