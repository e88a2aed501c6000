#include "matrix/triangle.hpp"

#include <complex>

#include "base/operation.hpp"
#include "base/require.hpp"
#include "base/scalars.hpp"
#include "matrix/modulus.hpp"

namespace gs {
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

#define GS_INSTANTIATE(T) template void solve_triangle(TriangleSide, PatternView, const T*, Trans, idx, T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
