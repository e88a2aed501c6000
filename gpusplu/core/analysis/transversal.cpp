// Duff, "On algorithms for obtaining a maximum transversal", ACM TOMS 7(3), 1981: depth-first search for an augmenting
// path from every column, with a lookahead for a free row that resumes where it stopped. Diagonal entries are taken
// first: a matrix that has them all costs O(nnz) and keeps its diagonal.
// Rows reached by a search that fails can be on no later augmenting path, so they stay marked for good.
#include "analysis/transversal.hpp"

#include <algorithm>
#include <utility>

namespace gs {
namespace {

class Transversal {
 public:
  explicit Transversal(PatternView A)
      : A_(A), row_of_col(A.n, -1), col_of_row_(A.n, -1), lookahead_(A.ptr, A.ptr + A.n) {}

  void run() {
    for (idx j = 0; j < A_.n; ++j)
      if (std::find(A_.ind + A_.ptr[j], A_.ind + A_.ptr[j + 1], j) != A_.ind + A_.ptr[j + 1]) match(j, j);
    for (idx j = 0; j < A_.n; ++j)
      if (row_of_col[j] < 0) take_free_row(j);
    for (idx j = 0; j < A_.n; ++j)
      if (row_of_col[j] < 0) augment(j);
  }

 private:
  void match(idx i, idx j) {
    row_of_col[j] = i;
    col_of_row_[i] = j;
  }

  // Rows never become free again, so every column is looked through once in all.
  bool take_free_row(idx j) {
    for (off& p = lookahead_[j]; p < A_.ptr[j + 1]; ++p)
      if (col_of_row_[A_.ind[p]] < 0) {
        match(A_.ind[p], j);
        return true;
      }
    return false;
  }

  void augment(idx root) {
    if (visited_.empty()) {
      visited_.assign(A_.n, -1);
      position_.resize(A_.n);
    }
    path_.assign(1, root);
    position_[root] = A_.ptr[root];
    reached_.clear();
    while (!path_.empty()) {
      const idx j = path_.back();
      off& p = position_[j];
      while (p < A_.ptr[j + 1] && visited_[A_.ind[p]] >= 0) ++p;
      if (p == A_.ptr[j + 1]) {
        path_.pop_back();
        continue;
      }
      const idx i = A_.ind[p], next = col_of_row_[i];
      visited_[i] = root;
      reached_.push_back(i);
      if (take_free_row(next)) return flip();
      path_.push_back(next);
      position_[next] = A_.ptr[next];
    }
  }

  // The last column of the path gave up its row: every column of the path takes the row it went on through.
  void flip() {
    for (std::size_t k = path_.size(); k-- > 0;) match(A_.ind[position_[path_[k]]], path_[k]);
    for (idx i : reached_) visited_[i] = -1;
  }

  const PatternView A_;

 public:
  std::vector<idx> row_of_col;

 private:
  std::vector<idx> col_of_row_;
  std::vector<off> lookahead_, position_;
  std::vector<idx> visited_, path_, reached_;
};

}  // namespace

std::vector<idx> maximum_transversal(PatternView A) {
  if (A.n == 0) return {};
  Transversal search(A);
  search.run();
  return std::move(search.row_of_col);
}

idx structural_rank(PatternView A) {
  const std::vector<idx> row_of_col = maximum_transversal(A);
  return A.n - (idx)std::count(row_of_col.begin(), row_of_col.end(), -1);
}

}  // namespace gs
