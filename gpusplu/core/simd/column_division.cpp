// Triangular solves with the nodes of a column LU by the arithmetic of SciPy: for factors without rounding errors.
// Compiled without fused multiply-adds: the difference of two equal rounded products is then exactly zero.
#include "simd/column_solve.hpp"

namespace gs::GS_SIMD {

void solve_columns_dividing(const ColumnProgram<float>& program, const ColumnSolve<float>& task, bool is_complex) {
  solve_interleaved<float, true>(program, task, is_complex);
}
void solve_columns_dividing(const ColumnProgram<double>& program, const ColumnSolve<double>& task, bool is_complex) {
  solve_interleaved<double, true>(program, task, is_complex);
}

}  // namespace gs::GS_SIMD
