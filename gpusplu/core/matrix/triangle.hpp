// Solves with one triangular factor, extracted from a factorization.
#pragma once
#include "base/types.hpp"

namespace gs {

enum class TriangleSide { lower, upper };

// Solves op(T) x = x in place for nrhs columns that are n apart. Compressed columns of T have their diagonal entry
// first (lower) or last (upper); throws std::invalid_argument if one has not. An interrupt leaves x half solved. Cost:
// a pass over T for each column.
template <class T>
void solve_triangle(TriangleSide side, PatternView triangle, const T* values, Trans op, idx nrhs, T* x);

}  // namespace gs
