// Checks of an analysis that was pickled: all properties on which engines and plans rely. They throw
// std::invalid_argument with a description of the error.
#pragma once
#include "analysis/symbolic.hpp"

namespace gs {

// Checks the analysis by itself. Cost: O(structure).
void validate(const Symbolic& symbolic);

// Checks it for a matrix with the pattern `A`: every entry has a place in the structure. Cost: O(entries log rows of a
// front).
void validate(const Symbolic& symbolic, PatternView A);

}  // namespace gs
