// Triangular solves with the nodes of a column LU, for 1, 2, 4 or 8 interleaved right-hand sides: sweeps over some of
// the nodes (numeric/column_sweeps.hpp has their order). Transposed sweeps use dot products.
//
// Divide: divides by pivots instead of multiplying by their reciprocals, and rounds products before subtracting them if
// the including file is compiled without fused multiply-adds (column_division.cpp).
#pragma once
#include "base/quotient.hpp"
#include "simd/column_row.hpp"
#include "simd/select.hpp"

namespace gs::GS_SIMD {
namespace {

template <class Real, bool Complex, int Rhs, bool Divide> class Solver {
 public:
  Solver(const ColumnProgram<Real>& program, Real* y) : P(program), y_(y) {}

  void run(const ColumnSolve<Real>& task) {
    const ColumnRun *run = task.runs, *end = run + task.n_runs;
    switch (task.sweep) {
      case ColumnSweep::forward:
        return ascending(task, [&](auto w, const ColumnNode* node) { forward<w.value>(node); });
      case ColumnSweep::backward:
        return descending(task, [&](auto w, const ColumnNode* node) { backward<w.value>(node, node[1].upper_row); });
      case ColumnSweep::backward_inner:
      case ColumnSweep::backward_runs:
        return descending(task, [&](auto w, const ColumnNode* node) {
          const bool inner = task.sweep == ColumnSweep::backward_inner;
          backward<w.value>(node, inner ? node[1].upper_row - node->n_outer : node->upper_row);
          for (; run < end && P.node + run->node == node; run++) subtract<w.value>(node, run->begin, run->end);
        });
      case ColumnSweep::runs:
        for (; run < end; run++)
          with_width(P.node + run->node, [&](auto w) { subtract<w.value>(P.node + run->node, run->begin, run->end); });
        return;
      case ColumnSweep::forward_transposed:
        return ascending(task, [&](auto w, const ColumnNode* node) { forward_transposed<w.value>(node); });
      case ColumnSweep::backward_transposed:
        return descending(task, [&](auto w, const ColumnNode* node) { backward_transposed<w.value>(node); });
    }
  }

 private:
  using R = Row<Real, Complex, Rhs>;
  using V = typename R::Vector;
  static constexpr int numbers = Complex ? 2 : 1;
  const ColumnProgram<Real>& P;
  Real* y_;

  template <class F> static void with_width(const ColumnNode* node, F&& body) {
    switch (node[1].first - node[0].first) {
      case 1:
        body(Constant<1>());
        break;
      case 2:
        body(Constant<2>());
        break;
      case 4:
        body(Constant<4>());
        break;
      default:
        body(Constant<8>());
    }
  }

  template <class F> void ascending(const ColumnSolve<Real>& task, F&& visit) const {
    for (const NodeRange* range = task.ranges; range < task.ranges + task.n_ranges; range++)
      for (const ColumnNode* node = P.node + range->begin; node < P.node + range->end; node++)
        with_width(node, [&](auto w) { visit(w, node); });
  }
  template <class F> void descending(const ColumnSolve<Real>& task, F&& visit) const {
    for (const NodeRange* range = task.ranges + task.n_ranges; range-- > task.ranges;)
      for (const ColumnNode* node = P.node + range->end; node-- > P.node + range->begin;)
        with_width(node, [&](auto w) { visit(w, node); });
  }

  Real* at(idx row) const { return y_ + (off)row * R::size; }
  template <int Width> const Real* lower_panel(const ColumnNode* node) const {
    return P.lower + (node->lower_value + (Width > 1 ? Width * Width : 0)) * numbers;
  }
  const Real* block(const ColumnNode* node, int i, int c, int width) const {
    return P.lower + (node->lower_value + i * width + c) * numbers;
  }
  inline __attribute__((always_inline)) V over_pivot(idx k, V v) const {
    const Real *inverse = P.inverse_pivot + (off)k * numbers, *pivot = P.pivot + (off)k * numbers;
    if constexpr (Divide && Complex) {
      for (int q = 0; q < Rhs; q++) {
        const DoublePair x = quotient_of(v[2 * q], v[2 * q + 1], pivot[0], pivot[1]);
        v[2 * q] = (Real)x.re, v[2 * q + 1] = (Real)x.im;
      }
      return v;
    } else if constexpr (Divide) return v / pivot[0];
    else if constexpr (Complex) return inverse[0] * v + inverse[1] * R::rotate(v);
    else return inverse[0] * v;
  }

  // acc - l v, with `turned` = i v
  static inline __attribute__((always_inline)) V minus_product(V acc, const Real* l, V v, V turned) {
    if constexpr (Divide && Complex) return acc - (l[0] * v + l[1] * turned);
    else return R::subtract(acc, l, v, turned);
  }

  // y[row] -= sum_c panel[row][c] v[c]
  template <int Width> void update(const idx* row, const idx* end, const Real* panel, const V* v) {
    V turned[Width];
    for (int c = 0; c < Width; c++) turned[c] = R::rotate(v[c]);
#pragma GCC unroll 2
    for (; row < end; row++, panel += Width * numbers) {
      V acc = R::load(at(*row));
#pragma GCC unroll 8
      for (int c = 0; c < Width; c++) acc = minus_product(acc, panel + c * numbers, v[c], turned[c]);
      R::store(at(*row), acc);
    }
  }
  // v[c] -= sum_row panel[row][c] y[row]
  template <int Width> void gather(const idx* row, const idx* end, const Real* panel, V* v) {
    V sum[Width];
    for (int c = 0; c < Width; c++) sum[c] = v[c];
    for (; row < end; row++, panel += Width * numbers) {
      const V x = R::load(at(*row)), turned = R::rotate(x);
#pragma GCC unroll 8
      for (int c = 0; c < Width; c++) sum[c] = minus_product(sum[c], panel + c * numbers, x, turned);
    }
    for (int c = 0; c < Width; c++) v[c] = sum[c];
  }

  template <int Width> void forward(const ColumnNode* node) {
    if (Width == 1 && node->n_lower == 0) return;
    V v[Width];
    for (int i = 0; i < Width; i++) {
      v[i] = R::load(at(node->first + i));
      for (int c = 0; c < i; c++) v[i] = minus_product(v[i], block(node, i, c, Width), v[c], R::rotate(v[c]));
      R::store(at(node->first + i), v[i]);
    }
    const idx* row = P.lower_row + node->lower_row;
    update<Width>(row, row + node->n_lower, lower_panel<Width>(node), v);
  }

  // Subtracts from the rows of U before place `end`.
  template <int Width> GS_INLINE_MEMBER void backward(const ColumnNode* node, off end) {
    V v[Width];
    for (int i = Width - 1; i >= 0; i--) {
      v[i] = R::load(at(node->first + i));
      for (int c = i + 1; c < Width; c++) v[i] = minus_product(v[i], block(node, i, c, Width), v[c], R::rotate(v[c]));
      v[i] = over_pivot(node->first + i, v[i]);
      R::store(at(node->first + i), v[i]);
    }
    update<Width>(P.upper_row + node->upper_row, P.upper_row + end, P.upper + node->upper_value * numbers, v);
  }

  template <int Width> void subtract(const ColumnNode* node, off begin, off end) {
    V v[Width];
    for (int i = 0; i < Width; i++) v[i] = R::load(at(node->first + i));
    update<Width>(P.upper_row + begin, P.upper_row + end,
                  P.upper + (node->upper_value + (begin - node->upper_row) * Width) * numbers, v);
  }

  template <int Width> void forward_transposed(const ColumnNode* node) {
    V v[Width];
    for (int c = 0; c < Width; c++) v[c] = R::load(at(node->first + c));
    gather<Width>(P.upper_row + node[0].upper_row, P.upper_row + node[1].upper_row,
                  P.upper + node->upper_value * numbers, v);
    for (int c = 0; c < Width; c++) {
      for (int i = 0; i < c; i++) v[c] = minus_product(v[c], block(node, i, c, Width), v[i], R::rotate(v[i]));
      v[c] = over_pivot(node->first + c, v[c]);
      R::store(at(node->first + c), v[c]);
    }
  }

  template <int Width> void backward_transposed(const ColumnNode* node) {
    if (Width == 1 && node->n_lower == 0) return;
    V v[Width];
    for (int c = 0; c < Width; c++) v[c] = R::load(at(node->first + c));
    const idx* row = P.lower_row + node->lower_row;
    gather<Width>(row, row + node->n_lower, lower_panel<Width>(node), v);
    for (int c = Width - 1; c >= 0; c--) {
      for (int i = c + 1; i < Width; i++) v[c] = minus_product(v[c], block(node, i, c, Width), v[i], R::rotate(v[i]));
      R::store(at(node->first + c), v[c]);
    }
  }
};

}  // namespace

template <class T, bool divide>
void Kernels::solve_columns(const ColumnProgram<real_t<T>>& program, const ColumnSolve<real_t<T>>& task) {
  with_constant<1, 2, 4, 8>(task.n_rhs, [&](auto n_rhs) {
    Solver<real_t<T>, is_complex<T>, n_rhs.value, divide> solver(program, task.y);
    solver.run(task);
  });
}

#define GS_SOLVE_COLUMNS(T) \
  template void Kernels::solve_columns<T, GS_DIVIDE>(const ColumnProgram<real_t<T>>&, const ColumnSolve<real_t<T>>&);

}  // namespace gs::GS_SIMD
