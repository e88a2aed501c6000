// Products with a sparse matrix and its transposes, residuals, and the norms a backward error needs.
//
// Right-hand sides are columns of n consecutive entries. All sums run in a fixed order for any number of threads, in
// the working precision. Threaded above some 200 thousand entries.
#pragma once
#include "base/types.hpp"

namespace gs {

// y = op(A) x, for nrhs columns.
template <class T> void multiply(PatternView A, const T* values, Trans op, const T* x, T* y, idx nrhs);

// Largest entries by modulus of one right-hand side; NaN where there is a NaN.
struct ResidualNorms {
  double residual = 0, x = 0, b = 0;
};

// r = b - op(A) x, for nrhs columns; norms has nrhs entries. r must not overlap x or b.
template <class T>
void residual(PatternView A, const T* values, Trans op, const T* x, const T* b, T* r, idx nrhs, ResidualNorms* norms);

// size_i = (|op(A)| |x| + |b|)_i for one column: the reference size for the residual of a row.
template <class T> void row_sizes(PatternView A, const T* values, Trans op, const T* x, const T* b, double* size);

// The largest |r_i| / (|op(A)| |x| + |b|)_i, for nrhs columns (Oettli and Prager, Numer. Math. 6 (1964)): it shows
// errors of a row that a norm hides because other rows or unknowns are much larger. Rows with nothing but rounding
// errors, where the denominator times scale[i] is below 100 eps of the largest, are divided by that largest one, as
// Arioli, Demmel and Duff (SIAM J. Matrix Anal. Appl. 10 (1989), section 2) do. `scale` may be null; NaN if anything is
// NaN.
template <class T> double rowwise_error(PatternView A, const T* values, Trans op, const T* x, const T* b, const T* r,
                                        const double* scale, idx nrhs);

// Largest entry of a step by modulus relative to that of the solution after it, the largest over nrhs columns of n.
template <class T> double relative_size(const T* step, const T* x, idx n, idx nrhs);

// The largest row sum of |op(A)|: the infinity norm of op(A), the one-norm of op(A)^T.
template <class T> double norm_inf(PatternView A, const T* values, Trans op);

// ||r|| / (||op(A)|| ||x|| + ||b||) in the infinity norm (Rigal and Gaches, J. ACM 14 (1967)); 0 when r is 0, NaN when
// anything is NaN, infinity when x or b overflowed.
double backward_error(const ResidualNorms& norms, double norm_op_A);

// ---- Solves with one triangular factor, extracted from a factorization

enum class TriangleSide { lower, upper };

// Solves op(T) x = x in place for nrhs columns that are n apart. Compressed columns of T have their diagonal entry
// first (lower) or last (upper); throws std::invalid_argument if one has not. An interrupt leaves x half solved. Cost:
// a pass over T for each column.
template <class T>
void solve_triangle(TriangleSide side, PatternView triangle, const T* values, Trans op, idx nrhs, T* x);

}  // namespace gs
