// Cholesky of one front by recursion on its columns; only lower triangles are read and written.
#pragma once
#include "simd/triangular.hpp"

namespace gs::GS_SIMD {

// Unblocked, n <= 8. Returns -1 or the first bad column.
template <class S> static idx cholesky_panel(idx n, S* A, off lda, S* inverse_diagonal) {
  using R = real<S>;
  for (idx k = 0; k < n; k++) {
    S* column = A + k * lda;
    const R d = real_part(column[k]);
    if (!(d > 0) || !(d < R(__builtin_huge_val()))) return k;
    const R root = square_root(d), inverse_root = 1 / root;
    column[k] = from_real<S>(root);
    inverse_diagonal[k] = from_real<S>(inverse_root);
    for (idx i = k + 1; i < n; i++) column[i] = scaled(column[i], inverse_root);
    for (idx j = k + 1; j < n; j++) {
      const S l = conjugate<true>(column[j]);
      for (idx i = j; i < n; i++) A[i + j * lda] = sub_times(A[i + j * lda], column[i], l);
    }
  }
  return -1;
}

template <class S> static idx cholesky_square(idx n, S* A, off lda) {
  if (n <= block_columns) {
    S inverse_diagonal[block_columns];
    return cholesky_panel(n, A, lda, inverse_diagonal);
  }
  const idx n1 = (n / 2 + block_columns - 1) / block_columns * block_columns, n2 = n - n1;
  S* rest = A + n1 + n1 * lda;
  Largest<S> unused;
  idx bad = cholesky_square(n1, A, lda);
  if (bad >= 0) return bad;
  solve_right<S, Shape::rows, false>(n2, n1, A + n1, lda, A, lda, true, unused);
  update<S, Shape::rows, true>(n2, n2, n1, A + n1, lda, A + n1, lda, rest, lda, true);
  bad = cholesky_square(n2, rest, lda);
  return bad < 0 ? bad : bad + n1;
}

template <class S> static idx cholesky_front(idx W, idx H, S* L, off ldl, Strips<S> C) {
  Largest<S> unused;
  if (W <= block_columns) {
    S inverse_diagonal[block_columns];
    const idx bad = cholesky_panel(W, L, ldl, inverse_diagonal);
    if (bad >= 0) return bad;
    if (H > 0) solve_block<S, false>(W, H, L + W, ldl, L, ldl, 1, inverse_diagonal, true, unused);
  } else {
    const idx bad = cholesky_square(W, L, ldl);
    if (bad >= 0) return bad;
    solve_right<S, Shape::rows, false>(H, W, L + W, ldl, L, ldl, true, unused);
  }
  update_strips(0, H, 0, H, W, L + W, ldl, L + W, ldl, C, true);
  return -1;
}

}  // namespace gs::GS_SIMD
