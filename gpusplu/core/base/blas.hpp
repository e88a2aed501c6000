// Nothing is loaded: the dense kernels (simd/) are as fast as SciPy's OpenBLAS on fronts (asv_bench/peers/dense.py),
// give the same bits with any number of threads and any SciPy, and need neither the GIL nor control over BLAS's
// threads.
#pragma once

namespace gs {

void ensure_blas();  // does nothing; callers may drop it

}  // namespace gs
