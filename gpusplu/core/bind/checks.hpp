// Checks of arrays before the core reads them: every length that it relies on. A failed check is a ValueError.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/types.hpp"
#include "bind/bind.hpp"
#include "bind/options.hpp"

namespace gs {

// At least `least` entries in an array called `name`.
template <class Array> void require_entries(const Array& array, off least, const char* name) {
  if ((off)array.shape(0) < least)
    throw std::invalid_argument(std::string("too few ") + name + ": " + std::to_string(array.shape(0)) + ", and " +
                                std::to_string(least) + " are needed");
}

template <class Array> void require_length(const Array& array, off length, const char* name) {
  if ((off)array.shape(0) != length)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.shape(0)) + " entries, not " +
                                std::to_string(length));
}

// Reads constants of predictions, structs of numbers only, from arrays. False if an array has another number of them,
// or one that is not finite or is negative.
template <class Constants> bool take_numbers(const In<double>& numbers, Constants& constants) {
  const double *begin = numbers.data(), *end = begin + numbers.shape(0);
  if (numbers.shape(0) != sizeof(Constants) / sizeof(double) ||
      !std::all_of(begin, end, [](double c) { return std::isfinite(c) && c >= 0; }))
    return false;
  std::memcpy(&constants, begin, sizeof(Constants));
  return true;
}
template <class Constants> NumPy<double> numbers_of(const Constants& constants) {
  std::vector<double> numbers(sizeof(Constants) / sizeof(double));
  std::memcpy(numbers.data(), &constants, sizeof(Constants));
  return to_numpy(std::move(numbers));
}

inline PatternView pattern_view(const In<off>& ptr, const In<idx>& ind) {
  const off n = (off)ptr.shape(0) - 1;
  require(n >= 0 && n <= std::numeric_limits<idx>::max(), "ptr must have n + 1 entries");
  require(ptr.data()[0] == 0, "ptr must start with 0");
  require_entries(ind, ptr.data()[n], "ind");
  return {(idx)n, ptr.data(), ind.data()};
}

template <class T> PatternView matrix_view(const In<off>& ptr, const In<idx>& ind, const In<T>& values) {
  const PatternView A = pattern_view(ptr, ind);
  require_entries(values, A.nnz(), "values");
  return A;
}

inline void require_permutation(const In<idx>& perm, idx n, const char* name) {
  std::vector<char> seen(n, 0);
  bool valid = (off)perm.shape(0) == n;
  for (idx j = 0; valid && j < n; ++j) {
    const idx i = perm.data()[j];
    valid = i >= 0 && i < n && !seen[i];
    if (valid) seen[i] = 1;
  }
  if (!valid)
    throw std::invalid_argument(std::string(name) + " is not a permutation of 0 .. " + std::to_string((off)n - 1));
}

// Rejects an analysis of another matrix, and one without permutations, which only tests make.
inline void require_structure_of(PatternView A, const Symbolic& symbolic) {
  require(symbolic.n == A.n, "the analysis is of a matrix of another order");
  const bool complete = (off)symbolic.row_perm.size() == A.n && (off)symbolic.col_perm.size() == A.n;
  require(complete || symbolic.structural_rank < symbolic.n, "the analysis has no permutations");
}

// The same, for an analysis that eliminates all columns.
inline void require_analysis_of(PatternView A, const Symbolic& symbolic) {
  require_structure_of(A, symbolic);
  require(symbolic.n_interface == 0, "the analysis leaves an interface");
}

// Index arrays of an n x n matrix; like SciPy, this ignores further pointers.
template <class I> void require_indices(Format format, off n, const In<I>& first, const In<I>& second) {
  if (format != Format::coordinates) require(n >= 0 && (off)first.shape(0) > n, "indptr must have n + 1 entries");
  else require(n >= 0 && first.shape(0) == second.shape(0), "row and col must have the same length");
}
inline Format format_of(const std::string& name) {
  return option_of<Format>("format", name,
                           {{"csc", Format::columns}, {"csr", Format::rows}, {"coo", Format::coordinates}});
}

inline Trans trans_of(const std::string& name) {
  if (name == "N") return Trans::none;
  if (name == "T") return Trans::transpose;
  if (name == "H") return Trans::conj_transpose;
  throw std::invalid_argument("trans must be N, T, or H");
}

// Number of consecutive right-hand sides of n rows each.
template <class Array> idx columns_of(const Array& x, idx n, const char* name) {
  if (n ? x.shape(0) % (std::size_t)n != 0 : x.shape(0) != 0)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(x.shape(0)) +
                                " entries, which is no multiple of " + std::to_string(n));
  return n ? (idx)(x.shape(0) / (std::size_t)n) : 0;
}

}  // namespace gs
