// Triangular solves with the nodes of a column LU by the arithmetic of SciPy: for factors without rounding errors.
// Compiled without fused multiply-adds: the difference of two equal rounded products is then exactly zero.
#include "simd/column_solve.hpp"

namespace gs::GS_SIMD {

#define GS_DIVIDE true
GS_FOR_SCALARS(GS_SOLVE_COLUMNS)
#undef GS_DIVIDE

}  // namespace gs::GS_SIMD
