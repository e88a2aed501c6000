// Defines the table of one scalar type; one file each, so that they compile in parallel.
#pragma once
#include "simd/assembly.hpp"
#include "simd/cholesky.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/ldlt_small.hpp"
#include "simd/lu.hpp"
#include "simd/solve.hpp"

namespace gs::GS_SIMD {

// Entries of the table that only convert types.
template <class T> struct Routines {
  using S = std::remove_pointer_t<decltype(native((T*)nullptr))>;
  using R = real<S>;

  static void lu_panel(idx m, idx n, T* A, off lda, idx* pivots, const PivotRule* rule, PivotStats* stats) {
    lu_block(m, n, native(A), lda, pivots, *rule, *stats);
  }
  static void swap_rows(idx n, T* A, off lda, idx k0, idx k1, const idx* pivots) {
    GS_SIMD::swap_rows(n, native(A), lda, k0, k1, pivots);
  }
  static void swap_upper(idx W, idx H, T* Ut, off ldu, const idx* pivots) {
    GS_SIMD::swap_upper(W, H, native(Ut), ldu, pivots);
  }
  static void solve_left(idx n, idx columns, T* X, off ldx, const T* L, off ldl) {
    solve_left_unit(n, columns, native(X), ldx, native(L), ldl);
  }
  static void solve_upper(idx m, idx n, T* X, off ldx, const T* U, off ldu, PivotStats* stats) {
    Largest<S> largest;
    solve_right<S, Shape::cols, false>(m, n, native(X), ldx, native(U), ldu, false, largest);
    add_largest<R>(largest_lane<R>(largest.bits), stats->max_multiplier, *stats);
  }
  static void solve_lower_t(idx m, idx n, T* X, off ldx, const T* L, off ldl, PivotStats* stats) {
    Largest<S> largest;
    solve_right<S, Shape::rows, true>(m, n, native(X), ldx, native(L), ldl, false, largest);
    add_largest<R>(largest_lane<R>(largest.bits), stats->max_upper, *stats);
  }
  static void solve_lower_h(idx m, idx n, T* X, off ldx, const T* L, off ldl) {
    Largest<S> unused;
    solve_right<S, Shape::rows, false>(m, n, native(X), ldx, native(L), ldl, true, unused);
  }
  static void update(idx m, idx n, idx K, const T* A, off lda, const T* B, off ldb, T* C, off ldc) {
    GS_SIMD::update<S, Shape::cols, false>(m, n, K, native(A), lda, native(B), ldb, native(C), ldc, false);
  }
  static void update_t(idx m, idx n, idx K, const T* A, off lda, const T* B, off ldb, T* C, off ldc, bool conj) {
    GS_SIMD::update<S, Shape::rows, false>(m, n, K, native(A), lda, native(B), ldb, native(C), ldc, conj);
  }
  static void update_lower(idx n, idx K, const T* A, off lda, T* C, off ldc) {
    GS_SIMD::update<S, Shape::rows, true>(n, n, K, native(A), lda, native(A), lda, native(C), ldc, true);
  }
  static void largest_upper(idx j0, idx j1, const T* L, off ldl, PivotStats* stats) {
    add_upper_triangle(j0, j1, native(L), ldl, *stats);
  }
  static idx cholesky_square(idx n, T* A, off lda) { return GS_SIMD::cholesky_square(n, native(A), lda); }
  static void swap_symmetric(idx n, T* A, off lda, idx p, idx q, bool hermitian) {
    GS_SIMD::swap_symmetric(n, native(A), lda, p, q, hermitian);
  }
  static void solve_unit_h(idx m, idx n, T* X, off ldx, const T* L, off ldl, bool conj) {
    Largest<S> unused;
    solve_right<S, Shape::rows, true>(m, n, native(X), ldx, native(L), ldl, conj, unused);
  }
  static void update_lower_by(idx n, idx K, const T* Y, off ldy, const T* L, off ldl, T* C, off ldc, bool conj) {
    GS_SIMD::update<S, Shape::rows, true>(n, n, K, native(Y), ldy, native(L), ldl, native(C), ldc, conj);
  }
};

}  // namespace gs::GS_SIMD

#define GS_DENSE_TABLE(name, T)                               \
  namespace gs::GS_SIMD {                                     \
  extern const DenseKernels<T> name;                          \
  const DenseKernels<T> name = {lu_front<T>,                  \
                                cholesky_front<T>,            \
                                lu_forward<T>,                \
                                lu_backward<T>,               \
                                lu_forward_t<T>,              \
                                lu_backward_t<T>,             \
                                cholesky_forward<T>,          \
                                cholesky_backward<T>,         \
                                Routines<T>::lu_panel,        \
                                Routines<T>::swap_rows,       \
                                Routines<T>::swap_upper,      \
                                Routines<T>::solve_left,      \
                                Routines<T>::solve_upper,     \
                                Routines<T>::solve_lower_t,   \
                                Routines<T>::solve_lower_h,   \
                                Routines<T>::update,          \
                                Routines<T>::update_t,        \
                                Routines<T>::update_lower,    \
                                Routines<T>::largest_upper,   \
                                Routines<T>::cholesky_square, \
                                ldlt_small_front<T>,          \
                                ldlt_block<T>,                \
                                Routines<T>::swap_symmetric,  \
                                Routines<T>::solve_unit_h,    \
                                column_sizes<T>,              \
                                divide_by_pivots<T>,          \
                                times_pivots<T>,              \
                                Routines<T>::update_lower_by, \
                                add_columns<T>};              \
  }
