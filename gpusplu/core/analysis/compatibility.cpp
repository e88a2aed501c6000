#include "analysis/analyze.hpp"

#include <algorithm>
#include <atomic>

#include "analysis/lu_pattern.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "matrix/scales.hpp"
#include "matrix/symmetry.hpp"

namespace gs {
namespace {

constexpr double least_matched = 0.1;  // of the largest entry of a column, as for the pivots of a first factorization

template <class T, bool scaled> bool columns_fit(PatternView A, const T* values, const idx* row_of_col,
                                                 const double* row_scale, const double* col_scale, idx begin, idx end) {
  for (idx j = begin; j < end; j++) {
    double largest = 0, matched = 0;
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
      const double size = (double)abs1(values[p]) * (scaled ? row_scale[A.ind[p]] : 1);
      largest = std::max(largest, size);
      if (A.ind[p] == row_of_col[j]) matched = size;
    }
    const double size = matched * (scaled ? col_scale[j] : 1);
    // not the negation: NaN, from infinity times 0, must not fit
    if (!(matched >= least_matched * largest && is_about_1(size))) return false;
  }
  return true;
}

// Whether a matching of rows and columns for older values (gather), and its scales (empty: all ones), fit these: every
// matched entry is about 1 after scaling, and an acceptable pivot compared with the largest entry of its column. This
// holds for the values that the matching was made for: its scales are rounded to powers of two, and the largest entries
// are 1. With `keeps`, the diagonal was kept instead; it fits if it would be kept again with the same scales. Cost: a
// pass over the values, by as many threads as they are worth.
template <class T> bool matching_fits(PatternView A, const T* values, const std::vector<idx>& row_perm,
                                      const std::vector<idx>& col_perm, const std::vector<double>& row_scale,
                                      const std::vector<double>& col_scale, bool keeps) {
  if (keeps) return keeps_diagonal(A, values, row_scale);
  std::vector<idx> row_of_col(A.n);
  for (idx k = 0; k < A.n; k++) row_of_col[col_perm[k]] = row_perm[k];
  const bool scaled = !row_scale.empty() && !col_scale.empty();
  std::atomic<bool> fits{true};
  over_range(A.n, A.nnz(), [&](idx begin, idx end) {
    const auto check = scaled ? columns_fit<T, true> : columns_fit<T, false>;
    if (!check(A, values, row_of_col.data(), row_scale.data(), col_scale.data(), begin, end)) fits.store(false);
  });
  return fits.load();
}

// The same for scales only, for LDL^T or one front of all rows: the largest entry of every column is about 1.
template <class T> bool scales_fit(PatternView A, const T* values, const std::vector<double>& row_scale,
                                   const std::vector<double>& col_scale) {
  std::atomic<bool> fits{true};
  over_range(A.n, A.nnz(), [&](idx begin, idx end) {
    for (idx j = begin; j < end; j++) {
      double largest = 0;
      for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++)
        largest = std::max(largest, (double)abs1(values[p]) * row_scale[A.ind[p]]);
      if (!is_about_1(largest * col_scale[j])) fits.store(false);
    }
  });
  return fits.load();
}

}  // namespace

template <class T> bool analysis_is_compatible(PatternView A, const T* values, const Symbolic& s, bool symmetric) {
  if (s.ordering == "natural" && s.row_scale.empty()) return rows_are_alike(A, values);
  if (!s.ldlt && s.nsuper() == 1 && !s.row_scale.empty()) return scales_fit(A, values, s.row_scale, s.col_scale);
  if (!s.ldlt) return matching_fits(A, values, s.row_perm, s.col_perm, s.row_scale, s.col_scale, s.keeps_diagonal);
  return scales_fit(A, values, s.row_scale, s.row_scale) && (!symmetric || symmetry_of(A, values) != Symmetry::none);
}

#define GS_INSTANTIATE(T) template bool analysis_is_compatible(PatternView, const T*, const Symbolic&, bool);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
