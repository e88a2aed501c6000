#include "matrix/products.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/operation.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"

namespace gs {
namespace {

// Visits the entries of rows [begin, end) column by column. A thread with a slice of the rows skips the columns outside
// it by their first and last row.
template <class F> void for_rows(PatternView A, idx begin, idx end, F&& visit) {
  const bool all = begin == 0 && end == A.n;
  for (idx j = 0; j < A.n; j++) {
    off p = A.ptr[j], p_end = A.ptr[j + 1];
    if (!all) {
      if (p == p_end || A.ind[p] >= end || A.ind[p_end - 1] < begin) continue;
      if (A.ind[p] < begin) p = std::lower_bound(A.ind + p, A.ind + p_end, begin) - A.ind;
      if (A.ind[p_end - 1] >= end) p_end = std::lower_bound(A.ind + p, A.ind + p_end, end) - A.ind;
    }
    visit(j, p, p_end);
  }
}

// y[begin:end] += or -= (op(A) x)[begin:end]
template <bool subtract, class T>
void add_product(PatternView A, const T* values, Trans op, const T* x, T* y, idx begin, idx end) {
  if (op == Trans::none) {
    for_rows(A, begin, end, [&](idx j, off p, off p_end) {
      const T xj = subtract ? -x[j] : x[j];
      for (; p < p_end; p++) y[A.ind[p]] += values[p] * xj;
    });
    return;
  }
  const bool conj = op == Trans::conj_transpose;
  for (idx j = begin; j < end; j++) {
    T sum = 0;
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) sum += conj_if(values[p], conj) * x[A.ind[p]];
    y[j] += subtract ? -sum : sum;
  }
}

// size[begin:end] += (|op(A)| w)[begin:end] with w_j = weight(j).
template <class T, class Weight>
void add_sizes(PatternView A, const T* values, Trans op, Weight&& weight, double* size, idx begin, idx end) {
  if (op == Trans::none) {
    for_rows(A, begin, end, [&](idx j, off p, off p_end) {
      const double w = weight(j);
      for (; p < p_end; p++) size[A.ind[p]] += modulus(values[p]) * w;
    });
    return;
  }
  for (idx j = begin; j < end; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) size[j] += modulus(values[p]) * weight(A.ind[p]);
}

}  // namespace

template <class T> void multiply(PatternView A, const T* values, Trans op, const T* x, T* y, idx nrhs) {
  run_pass(threads_for(A.nnz()), [&](const Team& team) {
    const auto [begin, end] = slice(A.n, team);
    for (idx k = 0; k < nrhs && !must_stop(); k++) {
      const off shift = (off)k * A.n;
      std::fill(y + shift + begin, y + shift + end, T(0));
      add_product<false>(A, values, op, x + shift, y + shift, begin, end);
    }
  });
}

template <class T>
void residual(PatternView A, const T* values, Trans op, const T* x, const T* b, T* r, idx nrhs, ResidualNorms* norms) {
  const int want = threads_for(A.nnz());
  std::vector<ResidualNorms> partial((std::size_t)want * nrhs);
  run_pass(want, [&](const Team& team) {
    const auto [begin, end] = slice(A.n, team);
    for (idx k = 0; k < nrhs && !must_stop(); k++) {
      const off shift = (off)k * A.n;
      std::copy(b + shift + begin, b + shift + end, r + shift + begin);
      add_product<true>(A, values, op, x + shift, r + shift, begin, end);
      partial[(std::size_t)team.rank * nrhs + k] = {largest_modulus(r + shift, begin, end),
                                                    largest_modulus(x + shift, begin, end),
                                                    largest_modulus(b + shift, begin, end)};
    }
  });
  for (idx k = 0; k < nrhs; k++) {
    norms[k] = {};
    for (int rank = 0; rank < want; rank++) {
      const ResidualNorms& part = partial[(std::size_t)rank * nrhs + k];
      norms[k].residual = max_or_nan(norms[k].residual, part.residual);
      norms[k].x = max_or_nan(norms[k].x, part.x);
      norms[k].b = max_or_nan(norms[k].b, part.b);
    }
  }
}

template <class T> void row_sizes(PatternView A, const T* values, Trans op, const T* x, const T* b, double* size) {
  run_pass(threads_for(A.nnz()), [&](const Team& team) {
    const auto [begin, end] = slice(A.n, team);
    for (idx i = begin; i < end; i++) size[i] = modulus(b[i]);
    add_sizes(
        A, values, op, [x](idx j) { return modulus(x[j]); }, size, begin, end);
  });
}

template <class T> double rowwise_error(PatternView A, const T* values, Trans op, const T* x, const T* b, const T* r,
                                        const double* scale, idx nrhs) {
  std::vector<double> size(A.n);
  double worst = 0;
  for (idx k = 0; k < nrhs; k++, x += A.n, b += A.n, r += A.n) {
    row_sizes(A, values, op, x, b, size.data());
    double largest = 0;
    for (idx i = 0; i < A.n; i++) largest = max_or_nan(largest, scale ? size[i] *= scale[i] : size[i]);
    if (largest == std::numeric_limits<double>::infinity()) return largest;  // no error can be computed
    const double noise = 100 * (double)std::numeric_limits<real_t<T>>::epsilon() * largest;
    for (idx i = 0; i < A.n; i++) {
      const double residual = scale ? modulus(r[i]) * scale[i] : modulus(r[i]);
      if (residual != 0) worst = max_or_nan(worst, residual / (size[i] > noise ? size[i] : largest));
    }
  }
  return worst;
}

template <class T> double relative_size(const T* step, const T* x, idx n, idx nrhs) {
  double largest = 0;
  for (off k = 0; k < nrhs; k++) {
    const double size = largest_modulus(step, k * n, (k + 1) * n);
    if (size != 0) largest = max_or_nan(largest, size / largest_modulus(x, k * n, (k + 1) * n));
  }
  return largest;
}

template <class T> double norm_inf(PatternView A, const T* values, Trans op) {
  std::vector<double> sum(A.n);
  run_pass(threads_for(A.nnz()), [&](const Team& team) {
    const auto [begin, end] = slice(A.n, team);
    add_sizes(
        A, values, op, [](idx) { return 1.0; }, sum.data(), begin, end);
  });
  double largest = 0;
  for (const double s : sum) largest = max_or_nan(largest, s);
  return largest;
}

double backward_error(const ResidualNorms& norms, double norm_op_A) {
  if (norms.residual == 0) return norms.x + norms.b == norms.x + norms.b ? 0 : std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  if (norms.residual == infinity || norms.x == infinity) return infinity;
  const double size = norm_op_A * norms.x + norms.b;
  if (size < infinity || std::isnan(size)) return norms.residual / size;
  const double norm = std::min(norm_op_A, std::numeric_limits<double>::max());  // the error is at most overestimated
  return norms.residual / norm / (norms.x + norms.b / norm);
}

// ---- solves with a triangle

namespace {

template <class T> struct Columns {
  const bool lower;
  const PatternView triangle;
  const T* const values;

  off diagonal(idx j) const { return lower ? triangle.ptr[j] : triangle.ptr[j + 1] - 1; }
  // Entries off the diagonal.
  off begin(idx j) const { return triangle.ptr[j] + lower; }
  off end(idx j) const { return triangle.ptr[j + 1] - !lower; }

  void check() const {
    for (idx j = 0; j < triangle.n; j++)
      require(triangle.ptr[j] < triangle.ptr[j + 1] && triangle.ind[diagonal(j)] == j,
              "a column of the triangle has no diagonal entry");
  }
  void subtract(idx j, T* x) const {
    x[j] /= values[diagonal(j)];
    for (off p = begin(j); p < end(j); p++) x[triangle.ind[p]] -= values[p] * x[j];
  }
  void gather(idx j, bool conj, T* x) const {
    T sum = x[j];
    for (off p = begin(j); p < end(j); p++) sum -= conj_if(values[p], conj) * x[triangle.ind[p]];
    x[j] = sum / conj_if(values[diagonal(j)], conj);
  }
};

template <class Visit> void for_columns(idx n, bool ascending, Visit&& visit) {
  for (idx k = 0; k < n; k++) visit(ascending ? k : n - 1 - k);
}

}  // namespace

template <class T>
void solve_triangle(TriangleSide side, PatternView triangle, const T* values, Trans op, idx nrhs, T* x) {
  const Columns<T> columns{side == TriangleSide::lower, triangle, values};
  columns.check();
  const bool ascending = columns.lower == (op == Trans::none);
  begin_phase("solve", nrhs);
  Pace pace;
  for (idx r = 0; r < nrhs; r++, x += triangle.n, have_done(1))
    for_columns(triangle.n, ascending, [&](idx j) {
      if (op == Trans::none) columns.subtract(j, x);
      else columns.gather(j, op == Trans::conj_transpose, x);
      pace.go_on(triangle.ptr[j + 1] - triangle.ptr[j]);
    });
}

#define GS_INSTANTIATE(T)                                                                                        \
  template void multiply(PatternView, const T*, Trans, const T*, T*, idx);                                       \
  template void residual(PatternView, const T*, Trans, const T*, const T*, T*, idx, ResidualNorms*);             \
  template void row_sizes(PatternView, const T*, Trans, const T*, const T*, double*);                            \
  template double rowwise_error(PatternView, const T*, Trans, const T*, const T*, const T*, const double*, idx); \
  template double relative_size(const T*, const T*, idx, idx);                                                   \
  template double norm_inf(PatternView, const T*, Trans);                                                        \
  template void solve_triangle(TriangleSide, PatternView, const T*, Trans, idx, T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
