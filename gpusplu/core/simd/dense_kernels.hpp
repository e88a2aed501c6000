// The table of dense kernels that is compiled once per instruction set (simd/*.cpp) and chosen at run time
// (simd/select.hpp). Plain data only: no function here, so nothing the linker could merge across instruction sets.
//
// A front has W fully summed columns and H further rows, in column-major blocks (R = W + H):
//   L   R x W (ldl >= R)  [A11; A21], becomes L11 (unit lower for LU) over U11, and L21
//   Ut  H x W (ldu >= H)  A12^T, becomes U12^T (LU only)
//   C   H x H (ldc >= H)  the contribution block: receives C -= L21 U12 (LU) or C -= L21 L21^H (Cholesky, lower,
//   Strips)
// Operands of one call never overlap.
#pragma once
#include "base/types.hpp"

namespace gs {

// Treatment of small pivots. The matrix is scaled to about 1, so the bounds are absolute. The size of a complex pivot
// is |re| + |im|.
struct PivotRule {
  double perturb_below = 0;  // smaller pivots are replaced by a value of this size and the same sign or phase
  double tiny_below = 0;     // smaller pivots (before the replacement) are counted as tiny: possibly singular
};

// Accumulated over fronts; one for each thread, merged by merge(). Complex entries count as two real ones.
struct PivotStats {
  idx n_perturbed = 0, n_tiny = 0;
  double min_pivot = 1e300;   // smallest |pivot| before the replacement
  double max_multiplier = 0;  // largest |L21|; pivoting limits multipliers within L11 to 1
  double max_upper = 0;       // largest |U|
  bool finite = true;         // false after an Inf, a NaN or a zero pivot
};

// The lower triangle of a square block in consecutive strips of `width` columns each. A strip has the rows from its
// first column j on, and so ld - j entries per column; it begins j ld - j (j - width) / 2 entries from the first.
template <class T> struct Strips {
  T* data;
  off ld;
  idx width;
};

constexpr idx ldlt_small_columns = 32, ldlt_block_columns = 64;  // most columns of a small front and of a block

template <class T> struct DenseKernels {
  // One front on one thread without BLAS. pivots[k] >= k is the row of A11 exchanged with row k, in order.
  void (*lu_front)(idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc, idx* pivots, const PivotRule& rule,
                   PivotStats& stats);
  // Returns -1, or the first column with a nonpositive or NaN pivot. Reads and writes lower triangles only.
  idx (*cholesky_front)(idx W, idx H, T* L, off ldl, Strips<T> C);

  // Solves with one front: x is W x nrhs (ldx), y is H x nrhs (ldy), both column-major. M is the diagonal block of L, B
  // is L21 or Ut. conj: with the conjugated factor, except for `lu_forward` and `lu_backward`.
  using Forward = void (*)(idx W, idx H, idx nrhs, const T* M, off ldm, const T* B, off ldb, T* x, off ldx, T* y,
                           off ldy, bool conj);
  using Backward = void (*)(idx W, idx H, idx nrhs, const T* M, off ldm, const T* B, off ldb, T* x, off ldx, const T* y,
                            off ldy, bool conj);
  Forward lu_forward;          // A = L U:    x = L11^-1 x,   y -= L21 x    (x after the row interchanges)
  Backward lu_backward;        // A = L U:    x = U11^-1 (x - Ut^T y)
  Forward lu_forward_t;        // A^T:        x = U11^-T x,   y -= Ut x
  Backward lu_backward_t;      // A^T:        x = L11^-T (x - L21^T y)      (the row interchanges follow, last first)
  Forward cholesky_forward;    // A = L L^H:  x = L11^-1 x,   y -= L21 x
  Backward cholesky_backward;  // A = L L^H:  x = L11^-T (x - L21^T y)

  // Products of which a team solves with one large front (numeric/front_solve.cpp): Y (m x n) -= A X or A^T X, K terms.
  // Every entry is computed by the same operations however rows of Y are split over calls, by multiples of 8.
  using Product = void (*)(idx m, idx n, idx K, const T* A, off lda, const T* X, off ldx, T* Y, off ldy, bool conj);
  Product subtract_product, subtract_product_t;

  // Kernels from which a team builds one large front (numeric/dense_front.cpp). Every entry is computed by the same
  // operations in the same order however rows and columns are split over calls.
  void (*lu_panel)(idx m, idx n, T* A, off lda, idx* pivots, const PivotRule& rule,
                   PivotStats& stats);                                         // m x n, m >= n
  void (*swap_rows)(idx n, T* A, off lda, idx k0, idx k1, const idx* pivots);  // row k with pivots[k], k0 <= k < k1
  void (*swap_upper)(idx W, idx H, T* Ut, off ldu, const idx* pivots);         // columns of Ut, all W interchanges
  void (*solve_left)(idx n, idx columns, T* X, off ldx, const T* L, off ldl);  // X = L^-1 X, unit lower L
  void (*solve_upper)(idx m, idx n, T* X, off ldx, const T* U, off ldu, PivotStats& stats);    // X U^-1: multipliers
  void (*solve_lower_t)(idx m, idx n, T* X, off ldx, const T* L, off ldl, PivotStats& stats);  // X L^-T, unit: upper
  void (*solve_lower_h)(idx m, idx n, T* X, off ldx, const T* L, off ldl, bool conj);          // X L^-H or X L^-T
  void (*solve_unit_h)(idx m, idx n, T* X, off ldx, const T* L, off ldl, bool conj);           // the same, unit L
  void (*update)(idx m, idx n, idx K, const T* A, off lda, const T* B, off ldb, T* C, off ldc, bool conj);  // C -= A B
  void (*update_t)(idx m, idx n, idx K, const T* A, off lda, const T* B, off ldb, T* C, off ldc, bool conj);  // A B^T
  void (*update_lower)(idx n, idx K, const T* A, off lda, const T* B, off ldb, T* C, off ldc,
                       bool conj);  // lower triangle of C -= A B^H or A B^T
  // The same for rows i .. i + m - 1 of columns begin .. end - 1 of C, where a strip begins at `begin`. A has these
  // rows, B those from 0 on.
  void (*update_strips)(idx i, idx m, idx begin, idx end, idx K, const T* A, off lda, const T* B, off ldb, Strips<T> C,
                        bool conj);
  void (*largest_upper)(idx j0, idx j1, const T* L, off ldl, PivotStats& stats);  // entries on and above the diagonal
  idx (*cholesky_square)(idx n, T* A, off lda);                                   // as cholesky_front

  // An LDL^T front of W <= ldlt_small_columns columns in one call: simd/ldlt_small.hpp. Row and column order[k] became
  // number k.
  bool (*ldlt_small_front)(idx W, idx H, T* L, off ldl, Strips<T> C, T* d, T* e, idx* order, T* Y, double stop,
                           double most, bool hermitian, PivotStats& stats);
  // Kernels for other LDL^T fronts (numeric/ldlt_front.cpp), with D in two arrays: simd/ldlt.hpp. Searches the whole
  // block for pivots as long as an entry is above `stop`; returns their number. Row and column k were exchanged with
  // swaps[k], in order; work has 2 n entries.
  idx (*ldlt_block)(idx n, T* A, off lda, T* d, T* e, idx* swaps, T* work, double stop, bool hermitian,
                    PivotStats& stats);
  void (*swap_symmetric)(idx n, T* A, off lda, idx p, idx q, bool hermitian);  // rows and columns p <= q of A, lower
  void (*column_sizes)(idx m, idx n, const T* X, off ldx, double* sizes);      // maxima of magnitudes and old sizes
  void (*divide_by_pivots)(idx m, idx n, const T* Y, off ldy, const T* d, const T* e, T* X, off ldx, bool hermitian,
                           PivotStats& stats);  // X = Y D^-1: multipliers
  void (*times_pivots)(idx m, idx n, const T* X, off ldx, const T* d, const T* e, T* Y, off ldy,
                       bool hermitian);  // Y = X D

  // to[rel[i] + rel[j] ldto] += from[i + j ldfrom], or = that, for columns begin <= j < end and their rows i < n_rows
  // from first_row on, if `lower` from max(first_row, j) on; rel ascends: simd/assembly.hpp.
  void (*add_columns)(idx begin, idx end, idx first_row, bool lower, idx n_rows, const idx* rel, const T* from,
                      off ldfrom, T* to, off ldto, bool assign);
};

}  // namespace gs
