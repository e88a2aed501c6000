// Solves of the column engines by columns/column_solve.cuh, for one right-hand side or four at a time.
#include "columns/column_solve.cuh"

GPUSPLU_KERNEL(solve_columns_1, ColumnSolveArgs, COLUMN_THREADS, is_complex ? 1 : COLUMN_BLOCKS) {
  solve_columns<1, false>(args);
}
GPUSPLU_KERNEL(solve_columns_4, ColumnSolveArgs, COLUMN_THREADS, is_complex ? 1 : COLUMN_BLOCKS) {
  solve_columns<RHS_GROUP, false>(args);
}
GPUSPLU_KERNEL(solve_columns_transposed_1, ColumnSolveArgs, COLUMN_THREADS, is_complex ? 1 : COLUMN_BLOCKS) {
  solve_columns<1, true>(args);
}
GPUSPLU_KERNEL(solve_columns_transposed_4, ColumnSolveArgs, COLUMN_THREADS, is_complex ? 1 : COLUMN_BLOCKS) {
  solve_columns<RHS_GROUP, true>(args);
}
