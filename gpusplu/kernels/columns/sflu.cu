// The columns of SFLU (columns/sflu.cuh). Grid: at most as many blocks as are resident together; block: COLUMN_THREADS.
#include "columns/sflu.cuh"

GPUSPLU_KERNEL(factor_sflu, SfluArgs, COLUMN_THREADS, RESIDENT) { factor_groups<true, false>(args); }
GPUSPLU_KERNEL(factor_sflu_search, SfluArgs, COLUMN_THREADS, RESIDENT) { factor_groups<false, false>(args); }
