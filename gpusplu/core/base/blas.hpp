// BLAS and LAPACK of SciPy, found at run time through the capsules of scipy.linalg.cython_blas / cython_lapack, so that
// we neither ship nor link one. Everything is Fortran: pointers, column-major, int dimensions, no hidden lengths.
#pragma once
#include "base/types.hpp"

namespace gs {

// Loads SciPy's BLAS once. Needs the GIL; imports scipy.linalg, so call it where a factorization starts, not at import.
void ensure_blas();
bool blas_loaded();

}  // namespace gs
