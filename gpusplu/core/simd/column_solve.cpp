// Triangular solves with the nodes of a column LU, for 1, 2, 4 or 8 interleaved right-hand sides.
//
// Diagonal blocks from the last to the first: L forwards, U backwards, and the entries above the blocks on the way
// (they are stored with U). Transposed: from the first to the last, U^T forwards, L^T backwards, by dot products.
#include "simd/column_kernels.hpp"
#include "simd/column_row.hpp"

namespace gs {
namespace GS_SIMD {
namespace {

template <class Real, bool Complex, int Rhs> class Solver {
 public:
  Solver(const ColumnProgram<Real>& program, Real* y) : P(program), y_(y) {}

  void solve() {
    for (idx i = P.n_phases - 1; i >= 0; i--) {
      const ColumnPhase& phase = P.phase[i];
      if (phase.has_lower)
        for (idx s = phase.begin; s < phase.end; s++)
          with_width(P.node + s, [&](auto w) { forward<w.value>(P.node + s); });
      for (idx s = phase.end - 1; s >= phase.begin; s--)
        with_width(P.node + s, [&](auto w) { backward<w.value>(P.node + s); });
    }
  }

  void solve_transposed() {
    for (idx i = 0; i < P.n_phases; i++) {
      const ColumnPhase& phase = P.phase[i];
      for (idx s = phase.begin; s < phase.end; s++)
        with_width(P.node + s, [&](auto w) { forward_transposed<w.value>(P.node + s); });
      if (phase.has_lower)
        for (idx s = phase.end - 1; s >= phase.begin; s--)
          with_width(P.node + s, [&](auto w) { backward_transposed<w.value>(P.node + s); });
    }
  }

 private:
  using R = Row<Real, Complex, Rhs>;
  using V = typename R::Vector;
  static constexpr int numbers = Complex ? 2 : 1;
  template <int W> struct Constant { static constexpr int value = W; };
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

  Real* at(idx row) const { return y_ + (off)row * R::size; }
  template <int Width> const Real* lower_panel(const ColumnNode* node) const {
    return P.lower + (node->lower_value + (Width > 1 ? Width * Width : 0)) * numbers;
  }
  const Real* block(const ColumnNode* node, int i, int c, int width) const {
    return P.lower + (node->lower_value + i * width + c) * numbers;
  }
  inline __attribute__((always_inline)) V times_inverse(idx k, V v) const {
    const Real* inverse = P.inverse_pivot + (off)k * numbers;
    if constexpr (Complex) return inverse[0] * v + inverse[1] * R::rotate(v);
    else return inverse[0] * v;
  }

  // y[row] -= sum_c panel[row][c] v[c]
  template <int Width> void update(const idx* row, const idx* end, const Real* panel, const V* v) {
    V turned[Width];
    for (int c = 0; c < Width; c++) turned[c] = R::rotate(v[c]);
#pragma GCC unroll 2
    for (; row < end; row++, panel += Width * numbers) {
      V acc = R::load(at(*row));
#pragma GCC unroll 8
      for (int c = 0; c < Width; c++) acc = R::subtract(acc, panel + c * numbers, v[c], turned[c]);
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
      for (int c = 0; c < Width; c++) sum[c] = R::subtract(sum[c], panel + c * numbers, x, turned);
    }
    for (int c = 0; c < Width; c++) v[c] = sum[c];
  }

  template <int Width> void forward(const ColumnNode* node) {
    if (Width == 1 && node->n_lower == 0) return;
    V v[Width];
    for (int i = 0; i < Width; i++) {
      v[i] = R::load(at(node->first + i));
      for (int c = 0; c < i; c++) v[i] = R::subtract(v[i], block(node, i, c, Width), v[c], R::rotate(v[c]));
      R::store(at(node->first + i), v[i]);
    }
    const idx* row = P.lower_row + node->lower_row;
    update<Width>(row, row + node->n_lower, lower_panel<Width>(node), v);
  }

  template <int Width> void backward(const ColumnNode* node) {
    V v[Width];
    for (int i = Width - 1; i >= 0; i--) {
      v[i] = R::load(at(node->first + i));
      for (int c = i + 1; c < Width; c++) v[i] = R::subtract(v[i], block(node, i, c, Width), v[c], R::rotate(v[c]));
      v[i] = times_inverse(node->first + i, v[i]);
      R::store(at(node->first + i), v[i]);
    }
    update<Width>(P.upper_row + node[0].upper_row, P.upper_row + node[1].upper_row,
                  P.upper + node->upper_value * numbers, v);
  }

  template <int Width> void forward_transposed(const ColumnNode* node) {
    V v[Width];
    for (int c = 0; c < Width; c++) v[c] = R::load(at(node->first + c));
    gather<Width>(P.upper_row + node[0].upper_row, P.upper_row + node[1].upper_row,
                  P.upper + node->upper_value * numbers, v);
    for (int c = 0; c < Width; c++) {
      for (int i = 0; i < c; i++) v[c] = R::subtract(v[c], block(node, i, c, Width), v[i], R::rotate(v[i]));
      v[c] = times_inverse(node->first + c, v[c]);
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
      for (int i = c + 1; i < Width; i++) v[c] = R::subtract(v[c], block(node, i, c, Width), v[i], R::rotate(v[i]));
      R::store(at(node->first + c), v[c]);
    }
  }
};

template <class Real, bool Complex, int Rhs>
void solve_with(const ColumnProgram<Real>& program, const ColumnSolve<Real>& task) {
  Solver<Real, Complex, Rhs> solver(program, task.y);
  if (task.transpose) solver.solve_transposed();
  else solver.solve();
}

template <class Real, bool Complex> void solve(const ColumnProgram<Real>& program, const ColumnSolve<Real>& task) {
  switch (task.n_rhs) {
    case 1:
      return solve_with<Real, Complex, 1>(program, task);
    case 2:
      return solve_with<Real, Complex, 2>(program, task);
    case 4:
      return solve_with<Real, Complex, 4>(program, task);
    default:
      return solve_with<Real, Complex, 8>(program, task);
  }
}

}  // namespace

void solve_columns(const ColumnProgram<float>& program, const ColumnSolve<float>& task, bool is_complex) {
  is_complex ? solve<float, true>(program, task) : solve<float, false>(program, task);
}
void solve_columns(const ColumnProgram<double>& program, const ColumnSolve<double>& task, bool is_complex) {
  is_complex ? solve<double, true>(program, task) : solve<double, false>(program, task);
}

}  // namespace GS_SIMD
}  // namespace gs
