// Whether an analysis made for other values is valid for these.
#pragma once
#include "analysis/symbolic.hpp"

namespace gs {

// Its matching or its scales fit; and if it is of LDL^T although the caller wants LU (`symmetric`), the values are
// symmetric. Cost: a pass over the values, or two.
template <class T>
bool analysis_is_compatible(PatternView A, const T* values, const Symbolic& symbolic, bool symmetric);

}  // namespace gs
