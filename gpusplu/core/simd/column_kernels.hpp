// Refactorization and triangular solves of a column LU: compiled once per instruction set.
#pragma once
#include "simd/column_program.hpp"

namespace gs {
#define GS_COLUMN_KERNELS(level)                                                                                \
  namespace level {                                                                                             \
  void refactor_columns(const ColumnProgram<float>&, const ColumnTask<float>&, bool, ColumnMonitor<float>&);    \
  void refactor_columns(const ColumnProgram<double>&, const ColumnTask<double>&, bool, ColumnMonitor<double>&); \
  void solve_columns(const ColumnProgram<float>&, const ColumnSolve<float>&, bool);                             \
  void solve_columns(const ColumnProgram<double>&, const ColumnSolve<double>&, bool);                           \
  }
#ifdef GS_ONLY_LEVEL
GS_COLUMN_KERNELS(GS_ONLY_LEVEL)
#else
GS_COLUMN_KERNELS(v2)
GS_COLUMN_KERNELS(v3)
GS_COLUMN_KERNELS(v4)
#endif
#undef GS_COLUMN_KERNELS
}  // namespace gs
