// Triangular solves with the nodes of a column LU by reciprocals of pivots.
#include "simd/column_solve.hpp"

namespace gs::GS_SIMD {

void solve_columns(const ColumnProgram<float>& program, const ColumnSolve<float>& task, bool is_complex) {
  solve_interleaved<float, false>(program, task, is_complex);
}
void solve_columns(const ColumnProgram<double>& program, const ColumnSolve<double>& task, bool is_complex) {
  solve_interleaved<double, false>(program, task, is_complex);
}

}  // namespace gs::GS_SIMD
