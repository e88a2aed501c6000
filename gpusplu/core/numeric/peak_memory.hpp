// Predicted memory of a factorization by the CPU engine, from the analysis alone.
#pragma once
#include "analysis/symbolic.hpp"
#include "base/types.hpp"

namespace gs {

// Bytes that a first factorization has in use at its peak, beside the analysis and the pattern: the factor, its plan,
// the values, scratch, and for fronts the contribution blocks, by a simulation of the threads. Exact for one thread,
// except that columns may choose pivots that fill more. Time: O(n), and O(fronts log threads).
off peak_bytes(const Symbolic& symbolic, Dtype dtype, int threads);

}  // namespace gs
