// Changes of a matrix's values by a low-rank term C C^H.
#pragma once
#include <optional>
#include <vector>

#include "base/types.hpp"

namespace gs {

template <class T> struct EntryChange {
  off place;  // in canonical order
  T before, after;
};

// Entries of A + sign C C^H that differ from A, each once; empty if A's pattern lacks one of them. C has as many
// columns as its pattern's n, with rows of A, each at most once per column. Cost: a search for every pair of entries of
// a column.
template <class T>
std::optional<std::vector<EntryChange<T>>> outer_products(PatternView A, const T* values, const Matrix<T>& C, int sign);

}  // namespace gs
