// Defines the table of one scalar type; one file each, so that they compile in parallel.
#pragma once
#include "simd/assembly.hpp"
#include "simd/cholesky.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/ldlt_small.hpp"
#include "simd/lu.hpp"
#include "simd/select.hpp"
#include "simd/solve.hpp"

namespace gs::GS_SIMD {

template <class S> static void solve_upper(idx m, idx n, S* X, off ldx, const S* U, off ldu, PivotStats& stats) {
  Largest<S> largest;
  solve_right<S, Shape::cols, false>(m, n, X, ldx, U, ldu, false, largest);
  add_largest(largest, stats.max_multiplier, stats);
}
template <class S> static void solve_lower_t(idx m, idx n, S* X, off ldx, const S* L, off ldl, PivotStats& stats) {
  Largest<S> largest;
  solve_right<S, Shape::rows, true>(m, n, X, ldx, L, ldl, false, largest);
  add_largest(largest, stats.max_upper, stats);
}
template <class S, bool unit> static void solve_lower_h(idx m, idx n, S* X, off ldx, const S* L, off ldl, bool conj) {
  Largest<S> unused;
  solve_right<S, Shape::rows, unit>(m, n, X, ldx, L, ldl, conj, unused);
}
template <class S>
static void update_lower(idx n, idx K, const S* A, off lda, const S* B, off ldb, S* C, off ldc, bool conj) {
  update<S, Shape::rows, true>(n, n, K, A, lda, B, ldb, C, ldc, conj);
}

template <class R> GS_INLINE Strips<Pair<R>> native(Strips<std::complex<R>> C) {
  return {native(C.data), C.ld, C.width};
}

// A kernel as an entry of the table, where complex numbers are std::complex.
template <auto kernel> struct Entry {
  template <class Result, class... Args> using Pointer = Result (*)(Args...);
  template <class Result, class... Args> constexpr operator Pointer<Result, Args...>() const {
    return [](Args... args) -> Result { return kernel(native(args)...); };
  }
};

template <class S, class T> constexpr DenseKernels<T> dense_kernels() {
  return {.lu_front = Entry<lu_front<S>>(),
          .cholesky_front = Entry<cholesky_front<S>>(),
          .lu_forward = Entry<front_forward<S, true, false>>(),
          .lu_backward = Entry<front_backward<S, false, false>>(),
          .lu_forward_t = Entry<front_forward<S, false, true>>(),
          .lu_backward_t = Entry<front_backward<S, true, true>>(),
          .cholesky_forward = Entry<front_forward<S, false, false>>(),
          .cholesky_backward = Entry<front_backward<S, false, true>>(),
          .subtract_product = Entry<subtract_product<S, false>>(),
          .subtract_product_t = Entry<subtract_product<S, true>>(),
          .lu_panel = Entry<lu_block<S>>(),
          .swap_rows = Entry<swap_rows<S>>(),
          .swap_upper = Entry<swap_upper<S>>(),
          .solve_left = Entry<solve_left_unit<S>>(),
          .solve_upper = Entry<solve_upper<S>>(),
          .solve_lower_t = Entry<solve_lower_t<S>>(),
          .solve_lower_h = Entry<solve_lower_h<S, false>>(),
          .solve_unit_h = Entry<solve_lower_h<S, true>>(),
          .update = Entry<update<S, Shape::cols, false>>(),
          .update_t = Entry<update<S, Shape::rows, false>>(),
          .update_lower = Entry<update_lower<S>>(),
          .update_strips = Entry<update_strips<S>>(),
          .largest_upper = Entry<add_upper_triangle<S>>(),
          .cholesky_square = Entry<cholesky_square<S>>(),
          .ldlt_small_front = Entry<ldlt_small_front<S>>(),
          .ldlt_block = Entry<ldlt_block<S>>(),
          .swap_symmetric = Entry<swap_symmetric<S>>(),
          .column_sizes = Entry<column_sizes<S>>(),
          .divide_by_pivots = Entry<divide_by_pivots<S>>(),
          .times_pivots = Entry<times_pivots<S>>(),
          .add_columns = Entry<add_columns<S>>()};
}

}  // namespace gs::GS_SIMD

#define GS_DENSE_TABLE(T)                                                           \
  template <> const gs::DenseKernels<T>& gs::GS_SIMD::Kernels::dense<T>() {         \
    static constinit const DenseKernels<T> table = dense_kernels<native_t<T>, T>(); \
    return table;                                                                   \
  }
