// The front of every entry of A, and the place in it: entry (i, j) belongs to the front that owns min(i, j).
//
// Two passes over the columns, in parallel over ranges of fronts. For an entry with a column of its own front, a map of
// that front gives the row; for any other, a cursor that moves through the rows below of its front gives the column,
// because columns ascend. Ranges are counted before any is written, so the order of the entries, by front and inside a
// front by column, does not depend on them. Cost: O(nnz + structure).
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"

namespace gs {

// Fronts over A[row_perm][:, col_perm]: f owns the columns first[f] .. end(f)-1 and has the rows below[below_ptr[f]] ..
// below[below_ptr[f+1]-1], ascending.
struct FrontColumns {
  idx n, nf;
  bool one_triangle;  // leave out entries above the diagonal
  const idx *row_perm, *col_perm, *first;
  const off* below_ptr;
  const idx* below;
  idx end(idx f) const { return f + 1 < nf ? first[f + 1] : n; }
};

inline FrontColumns columns_of_fronts(const Symbolic& s, bool one_triangle) {
  return {s.n,
          s.nsuper(),
          one_triangle,
          s.row_perm.data(),
          s.col_perm.data(),
          s.super_ptr.data(),
          s.row_ptr.data(),
          s.row_ind.data()};
}

// Row: a type for rows of a front.
template <class Row> class EntryPlaces {
 public:
  EntryPlaces(const FrontColumns& fronts, PatternView A) : fronts_(fronts), A_(A), position_(A.n), front_of_(A.n) {
    over_range(A.n, 4 * (off)A.n, [&](idx begin, idx end) {
      for (idx k = begin; k < end; k++) position_[fronts_.row_perm[k]] = k;
    });
    over_range(fronts_.nf, 4 * (off)A.n, [&](idx begin, idx end) {
      for (idx f = begin; f < end; f++)
        std::fill(front_of_.begin() + fronts_.first[f], front_of_.begin() + fronts_.end(f), f);
    });
    divide(std::min(threads_for(4 * A.nnz()), kMostParts));
  }

  // Where the entries of each front begin, and their number; write() comes next.
  std::vector<off> count() {
    for_parts([&](Part& part) {
      part.next.assign(fronts_.nf, 0);
      for_entries(
          part, [](idx) {}, [&](idx f, off, idx, idx) { part.next[f]++; });
    });
    const idx nf = fronts_.nf;
    const off work = 4 * (off)nf * (off)parts_.size();
    std::vector<off> ptr((std::size_t)nf + 1);
    over_range(nf, work, [&](idx begin, idx end) {
      for (idx f = begin; f < end; f++)
        for (const Part& part : parts_) ptr[f + 1] += part.next[f];
    });
    for (idx f = 0; f < nf; f++) ptr[f + 1] += ptr[f];
    over_range(nf, work, [&](idx begin, idx end) {
      for (idx f = begin; f < end; f++) {
        off at = ptr[f];
        for (Part& part : parts_) at += std::exchange(part.next[f], at);
      }
    });
    return ptr;
  }

  // Calls visit(to, f, k, j, row, column): entry k of A, of column j, is number `to` of front f, at (row, column) of
  // it.
  template <class Visit> void write(Visit&& visit) {
    for_parts([&](Part& part) {
      part.cursor.assign(fronts_.nf, 0), part.local.resize(fronts_.n);
      idx own = -1, first = 0;  // the front that owns the current columns
      const auto map_rows = [&](idx f) {
        own = f, first = fronts_.first[f];
        Row row = 0;
        for (idx j = first; j < fronts_.end(f); j++) part.local[j] = row++;
        for (off p = fronts_.below_ptr[f]; p < fronts_.below_ptr[f + 1]; p++) part.local[fronts_.below[p]] = row++;
      };
      for_entries(part, map_rows, [&](idx f, off k, idx i, idx j) {
        if (f == own) visit(part.next[f]++, f, k, j, (idx)part.local[i], j - first);
        else visit(part.next[f]++, f, k, j, i - fronts_.first[f], column_below(part, f, j));
      });
    });
  }

 private:
  static constexpr int kMostParts = 16;

  // A range of fronts, the columns of which one thread visits.
  struct Part {
    idx begin = 0, end = 0;
    std::vector<off> next;    // where each front's entries continue
    std::vector<idx> cursor;  // 1 + place among the rows below of the last column met; 0: none yet
    RawVector<Row> local;     // column -> row of the current front
  };

  // Parts have about equal numbers of columns.
  void divide(int n_parts) {
    parts_.resize(n_parts);
    for (int p = 1; p < n_parts; p++) {
      const idx column = (idx)((off)fronts_.n * p / n_parts);
      parts_[p].begin = (idx)(std::lower_bound(fronts_.first, fronts_.first + fronts_.nf, column) - fronts_.first);
      parts_[p - 1].end = parts_[p].begin;
    }
    parts_.back().end = fronts_.nf;
  }

  template <class Body> void for_parts(Body&& body) {
    share_out((int)parts_.size(), parts_.size(), [&](std::size_t p, int) { body(parts_[p]); });
  }

  // visit(f, k, i, j): entry k of A, which is (i, j) after permutation, goes to front f. enter(f) before f's columns.
  template <class Enter, class Visit> void for_entries(const Part& part, Enter&& enter, Visit&& visit) const {
    for (idx own = part.begin; own < part.end; own++) {
      const idx first = fronts_.first[own], end = fronts_.end(own);
      enter(own);
      for (idx j = first; j < end; j++) {
        const idx column = fronts_.col_perm[j];
        for (off k = A_.ptr[column]; k < A_.ptr[column + 1]; k++) {
          const idx i = position_[A_.ind[k]];
          if (fronts_.one_triangle && i < j) continue;
          visit(i >= first ? own : front_of_[i], k, i, j);
        }
      }
    }
  }

  idx column_below(Part& part, idx f, idx j) const {
    const idx *rows = fronts_.below + fronts_.below_ptr[f], *rows_end = fronts_.below + fronts_.below_ptr[f + 1];
    idx& at = part.cursor[f];
    if (at == 0) at = (idx)(std::lower_bound(rows, rows_end, j) - rows) + 1;
    while (rows[at - 1] < j) at++;
    return fronts_.end(f) - fronts_.first[f] + at - 1;
  }

  const FrontColumns fronts_;
  const PatternView A_;
  RawVector<idx> position_, front_of_;
  std::vector<Part> parts_;
};

}  // namespace gs
