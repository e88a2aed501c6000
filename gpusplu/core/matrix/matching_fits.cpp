#include "matrix/matching_fits.hpp"

#include <algorithm>
#include <atomic>

#include "base/parallel.hpp"
#include "base/scalars.hpp"
#include "matrix/kept_diagonal.hpp"
#include "matrix/modulus.hpp"

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

}  // namespace

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

#define GS_INSTANTIATE(T)                                                                              \
  template bool matching_fits(PatternView, const T*, const std::vector<idx>&, const std::vector<idx>&, \
                              const std::vector<double>&, const std::vector<double>&, bool);           \
  template bool scales_fit(PatternView, const T*, const std::vector<double>&, const std::vector<double>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
