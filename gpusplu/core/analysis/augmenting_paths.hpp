// Maximum cardinality matching of columns and rows by augmenting paths.
//
// Pothen, Fan, "Computing the block triangular form of a sparse matrix", ACM TOMS 16(4), 1990: phases of depth-first
// searches from all unmatched columns, which together visit every row at most once a phase; a lookahead for free rows
// that resumes where it stopped (Duff, ACM TOMS 7(3), 1981), and alternating directions of search (Duff, Kaya, Ucar,
// "Design, implementation, and analysis of maximum transversal algorithms", ACM TOMS 38(2), 2011, "PF+").
// Cost: O(nnz) a phase and O(n) phases in the worst case; a dozen or two in practice.
#pragma once
#include <utility>
#include <vector>

#include "base/operation.hpp"
#include "base/types.hpp"

namespace gs {

// Edges: begin(j) and end(j) are the entries of column j, row(p) is where entry p lies, admissible(p, j) whether it may
// be matched; col_of_row(i) and match(i, j) read and write the matching, -1 for a free row.
template <class Edges> class AugmentingPaths {
 public:
  AugmentingPaths(Edges& edges, idx n) : edges_(edges), n_(n) {}

  // Extends the matching to one of maximum cardinality; `unmatched` are the columns to match. Leaves in it those for
  // which there is no row.
  void run(std::vector<idx>& unmatched) {
    if (unmatched.empty()) return;
    lookahead_.resize(n_);
    for (idx j = 0; j < n_; ++j) lookahead_[j] = edges_.begin(j);
    std::erase_if(unmatched, [&](idx j) {
      pace_.go_on(8);
      return take_free_row(j);
    });
    if (unmatched.empty()) return;
    visited_.assign(n_, 0);
    for (std::size_t before = 0; before != unmatched.size();) {
      before = unmatched.size();
      ++phase_;
      std::erase_if(unmatched, [&](idx j) { return search(j); });
    }
  }

 private:
  // Matched rows stay matched, so every column is scanned once in all.
  bool take_free_row(idx j) {
    for (off& p = lookahead_[j]; p < edges_.end(j); ++p) {
      const idx i = edges_.row(p);
      if (edges_.col_of_row(i) >= 0 || !edges_.admissible(p, j)) continue;
      edges_.match(i, j);
      return true;
    }
    return false;
  }

  bool search(idx root) {
    const bool forward = phase_ % 2;
    path_.assign(1, {root, forward ? edges_.begin(root) : edges_.end(root) - 1});
    while (!path_.empty()) {
      auto& [j, p] = path_.back();
      const off stop = forward ? edges_.end(j) : edges_.begin(j) - 1;
      for (; p != stop; p += forward ? 1 : -1)
        if (visited_[edges_.row(p)] != phase_ && edges_.admissible(p, j)) break;
      if (p == stop) {
        pace_.go_on(8);
        path_.pop_back();
        continue;
      }
      pace_.go_on(8);
      const idx i = edges_.row(p), next = edges_.col_of_row(i);
      visited_[i] = phase_;
      if (take_free_row(next)) {
        flip();
        return true;
      }
      path_.emplace_back(next, forward ? edges_.begin(next) : edges_.end(next) - 1);
    }
    return false;
  }

  // The column after the path has taken another row: every column of the path takes the row it went on through.
  void flip() {
    for (const auto& [j, p] : path_) edges_.match(edges_.row(p), j);
  }

  Edges& edges_;
  const idx n_;
  idx phase_ = 0;
  Pace pace_;
  std::vector<off> lookahead_;
  std::vector<idx> visited_;  // phase that reached a row last
  std::vector<std::pair<idx, off>> path_;
};

}  // namespace gs
