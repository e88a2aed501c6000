// Crisscross LU but for the corner's own factorization: the columns before the division as in SFLU (columns/sflu.cuh),
// and what those of the corner take from them (columns/trailing_columns.cuh). Grid: at most as many blocks as are
// resident together; block: 512 threads.
#include "columns/sflu.cuh"

GPUSPLU_KERNEL(factor_crisscross, SfluArgs, 512, sizeof(Scalar) == 16 ? 1 : 2) { factor_groups<true, true>(args); }
GPUSPLU_KERNEL(factor_crisscross_search, SfluArgs, 512, sizeof(Scalar) == 16 ? 1 : 2) {
  factor_groups<false, true>(args);
}
