// Triangular solves with the nodes of a column LU by reciprocals of pivots.
#include "simd/column_solve.hpp"

namespace gs::GS_SIMD {

#define GS_DIVIDE false
GS_FOR_SCALARS(GS_SOLVE_COLUMNS)
#undef GS_DIVIDE

}  // namespace gs::GS_SIMD
