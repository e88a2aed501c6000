// Solves in A's own numbering: permute and scale into interleaved right-hand sides, solve with the nodes, and back.
#include <cstdlib>

#include "base/operation.hpp"
#include "base/scalars.hpp"
#include "numeric/column_lu.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/column_wide.hpp"
#include "simd/column_kernels.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

template <class Real>
void solve_columns(const ColumnProgram<Real>& program, const ColumnSolve<Real>& task, bool is_complex, bool divide) {
#define GS_CASE(number, level)                                               \
  case number:                                                               \
    return divide ? level::solve_columns_dividing(program, task, is_complex) \
                  : level::solve_columns(program, task, is_complex);
  switch (simd_level()) { GS_LEVELS(GS_CASE) }
#undef GS_CASE
}

}  // namespace

template <class T> void ColumnLU<T>::solve(Trans trans, idx nrhs, const void* from_b, void* to_x) const {
  using Real = real_t<T>;
  const T* b = (const T*)from_b;
  T* x = (T*)to_x;
  const bool transpose = trans != Trans::none, conjugate = trans == Trans::conj_transpose;
  const Real* row_scale = scale_row_.empty() ? nullptr : scale_row_.data();
  const Real* col_scale = scale_col_.empty() ? nullptr : scale_col_.data();
  const idx* from = (transpose ? col_perm_ : row_perm_).data();
  const idx* to = (transpose ? row_perm_ : col_perm_).data();
  if (wide_) {
    for (idx k = 0; k < nrhs; k++, go_on()) wide_->solve(block_ptr_, trans, from, b + (off)k * n_, to, x + (off)k * n_);
    return;
  }
  const Real* scale_in = transpose ? col_scale : row_scale;
  const Real* scale_out = transpose ? row_scale : col_scale;
  const ColumnProgram<Real> program = nodes_->program(pattern_, row_scale, col_scale);
  std::unique_ptr<RawVector<T>> kept = scratch_.take();
  if (!kept) kept = std::make_unique<RawVector<T>>();
  RawVector<T>& scratch = *kept;
  begin_phase("solve", nrhs);
  for (idx done = 0; done < nrhs;) {
    go_on();
    int width = 8;
    while (width > nrhs - done) width /= 2;
    if (scratch.size() < (std::size_t)n_ * width) scratch.resize((std::size_t)n_ * width);
    T* y = scratch.data();
    for (int q = 0; q < width; q++) {
      const T* column = b + (off)(done + q) * n_;
      for (idx k = 0; k < n_; k++) {
        const T v = conj_if(column[from[k]], conjugate);
        y[(off)k * width + q] = scale_in ? v * scale_in[k] : v;
      }
    }
    solve_columns(program, {reinterpret_cast<Real*>(y), width, transpose}, is_complex<T>, divides_);
    for (int q = 0; q < width; q++) {
      T* column = x + (off)(done + q) * n_;
      for (idx k = 0; k < n_; k++) {
        const T v = y[(off)k * width + q];
        column[to[k]] = conj_if(scale_out ? v * scale_out[k] : v, conjugate);
      }
    }
    done += width;
    have_done(width);
  }
  scratch_.keep(std::move(kept));
}

#define GS_INSTANTIATE(T) template void ColumnLU<T>::solve(Trans, idx, const void*, void*) const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
