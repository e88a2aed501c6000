// Predicted memory of a factorization by the CPU engine, from the analysis alone.
#pragma once
#include "analysis/symbolic.hpp"
#include "base/types.hpp"

namespace gs {

// Bytes that a first factorization has in use at its peak, beside the analysis and the pattern: the factor, its plan,
// the values, scratch, and for fronts the contribution blocks, by a simulation of the threads. Exact for one thread,
// except that columns may choose pivots that fill more. Time: O(n), and O(fronts log threads).
off peak_bytes(const Symbolic& symbolic, Dtype dtype, int threads);

// About the bytes that an analysis needs at its peak, beside its result and the pattern, values included.
off analysis_bytes(const Symbolic& symbolic, int threads);

// Throws HostMemoryShort if a first factorization needs more memory than is free.
void require_host_memory(const Symbolic& symbolic, Dtype dtype);

}  // namespace gs
