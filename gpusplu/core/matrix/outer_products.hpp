// What C C^H, of low rank, adds to the values of a matrix.
#pragma once
#include <optional>
#include <vector>

#include "base/types.hpp"

namespace gs {

template <class T> struct EntryChange {
  off place;  // canonical
  T before, after;
};

// Entries of A + sign C C^H where it differs from A, each once; nothing where A's pattern has no place for one. C has
// as many columns as its pattern's n says, of A's rows, each at most once in a column.
// Cost: a search for every pair of entries of a column.
template <class T>
std::optional<std::vector<EntryChange<T>>> outer_products(PatternView A, const T* values, const Matrix<T>& C, int sign);

}  // namespace gs
