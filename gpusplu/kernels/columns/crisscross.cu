// Crisscross LU without the factorization of the trailing block: the columns before the division as in SFLU
// (columns/sflu.cuh), and the updates of the trailing block by them (columns/trailing_columns.cuh). Grid: at most as
// many blocks as are resident together; block: COLUMN_THREADS.
#include "columns/sflu.cuh"

GPUSPLU_KERNEL(factor_crisscross, SfluArgs, COLUMN_THREADS, RESIDENT) { factor_groups<true, true>(args); }
GPUSPLU_KERNEL(factor_crisscross_search, SfluArgs, COLUMN_THREADS, RESIDENT) { factor_groups<false, true>(args); }
