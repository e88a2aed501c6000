// Entries of the inverses of systems in lockstep, from their factors (plan/lockstep/plan.hpp): system by system, front
// by front from the roots down, as numeric/front_inverse.cpp does for one system.
#pragma once
#include <functional>
#include <vector>

#include "plan/lockstep/plan.hpp"

namespace gs {

// Entry (j, i) of the inverse for each entry (i, j) of A, of all systems: `inverse` is (count, nnz). fetch(system,
// factor, values) copies the data of a system, on any thread. Returns the identity errors (numeric/error_checks.hpp).
template <class T> std::vector<double> lockstep_inverse(const gpu::LockstepPlan& plan, PatternView A, idx count,
                                                        const std::function<void(idx, T*, T*)>& fetch, T* inverse);

}  // namespace gs
