// Refactorization and triangular solves of a column LU: compiled once per instruction set.
#pragma once
#include <levels.hpp>

#include "simd/column_program.hpp"

namespace gs {
#define GS_COLUMN_KERNELS(number, level)                                                                        \
  namespace level {                                                                                             \
  void refactor_columns(const ColumnProgram<float>&, const ColumnTask<float>&, bool, ColumnMonitor<float>&);    \
  void refactor_columns(const ColumnProgram<double>&, const ColumnTask<double>&, bool, ColumnMonitor<double>&); \
  void solve_columns(const ColumnProgram<float>&, const ColumnSolve<float>&, bool);                             \
  void solve_columns(const ColumnProgram<double>&, const ColumnSolve<double>&, bool);                           \
  void solve_columns_dividing(const ColumnProgram<float>&, const ColumnSolve<float>&, bool);                    \
  void solve_columns_dividing(const ColumnProgram<double>&, const ColumnSolve<double>&, bool);                  \
  }
GS_LEVELS(GS_COLUMN_KERNELS)
#undef GS_COLUMN_KERNELS
}  // namespace gs
