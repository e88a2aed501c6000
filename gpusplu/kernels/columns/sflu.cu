// The columns of SFLU (columns/sflu.cuh). Grid: at most as many blocks as are resident together; block: 512 threads.
#include "columns/sflu.cuh"

GPUSPLU_KERNEL(factor_sflu, SfluArgs, 512, sizeof(Scalar) == 16 ? 1 : 2) { factor_groups<true, false>(args); }
GPUSPLU_KERNEL(factor_sflu_search, SfluArgs, 512, sizeof(Scalar) == 16 ? 1 : 2) { factor_groups<false, false>(args); }
