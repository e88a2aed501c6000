#include "matrix/symmetric_pairs.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "base/scalars.hpp"
#include "matrix/symmetry.hpp"
#include "matrix/visit_pairs.hpp"
#include "shared/values.hpp"

namespace gs {
namespace {

template <class T> constexpr double tolerance = gpu::SYMMETRY_UNITS* std::numeric_limits<real_t<T>>::epsilon();

// Weight of a pair for the number of threads. A thread gets little work, some microseconds, but the factorization that
// follows wakes the same threads anyway.
constexpr off entries_per_pair = 16;

// mirror_triangle marks entries that are the conjugate of another entry, or equal to it, like this.
bool is_mirrored(const Canonical& canonical) {
  return std::any_of(canonical.source.begin(), canonical.source.end(), [](off source) { return source < 0; });
}

}  // namespace

SymmetricPairs::SymmetricPairs(const Canonical& canonical, bool hermitian, bool complex) : hermitian(hermitian) {
  const PatternView A = canonical.pattern.view();
  listed = A.nnz() < (off)none;
  if (!listed) return;
  const bool checks_diagonal = hermitian && complex, given_whole = !is_mirrored(canonical);
  if (!given_whole && !checks_diagonal) return;
  const auto add = [&](off p, off q) {
    first.push_back((std::uint32_t)p), second.push_back((std::uint32_t)q);
    return true;
  };
  const auto add_diagonal = [&](off p) {
    if (checks_diagonal) add(p, p);
  };
  if (given_whole) first.reserve(A.nnz() / 2 + 1), second.reserve(A.nnz() / 2 + 1);
  off above = 0, on_diagonal = 0;
  const auto pair = [&](off p, off q) {
    above++;
    return !given_whole || add(p, q);
  };
  const auto diagonal = [&](off p) {
    on_diagonal++;
    add_diagonal(p);
  };
  if (visit_pairs(A, pair, diagonal) && 2 * above + on_diagonal == A.nnz()) return;
  first.clear(), second.clear();
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
      const idx i = A.ind[p];
      if (i == j) {
        add_diagonal(p);
        continue;
      }
      const off q = std::lower_bound(A.ind + A.ptr[i], A.ind + A.ptr[i + 1], j) - A.ind;
      const bool has_other = q < A.ptr[i + 1] && A.ind[q] == j;
      if (!has_other) add(p, none);
      else if (i < j) add(p, q);
    }
}

template <class T> bool are_symmetric(PatternView A, const T* values, bool hermitian) {
  const SymmetryTraits traits = symmetry_traits(A, values);
  return (hermitian ? traits.hermitian_error : traits.symmetric_error) <= tolerance<T>;
}

// The sum of the parts is an upper bound of the modulus, and the largest part a lower bound of the largest one; so
// differences that this pass accepts are small enough.
template <class T>
bool are_symmetric(const SymmetricPairs& pairs, PatternView A, const T* values, double largest_part) {
  constexpr double rounding = 1 - 1e-9;  // of this comparison and of the exact one
  const real_t<T> bound = (real_t<T>)(tolerance<T> * rounding * largest_part);
  const std::size_t count = pairs.first.size();
  const std::uint32_t *first = pairs.first.data(), *second = pairs.second.data();
  std::atomic<bool> differ{!pairs.listed};
  const auto compare = [&](std::size_t begin, std::size_t end) {
    bool near = true;
    for (std::size_t k = begin; k < end && near; k++) {
      const T other = second[k] == SymmetricPairs::none ? T(0) : values[second[k]];
      const T difference = values[first[k]] - conj_if(other, pairs.hermitian);
      near = std::abs(std::real(difference)) + std::abs(std::imag(difference)) <= bound;
    }
    if (!near) differ = true;
  };
  if (pairs.listed) over_range(count, entries_per_pair * (off)count, compare);
  return !differ || are_symmetric(A, values, pairs.hermitian);
}

#define GS_INSTANTIATE(T)                                   \
  template bool are_symmetric(PatternView, const T*, bool); \
  template bool are_symmetric(const SymmetricPairs&, PatternView, const T*, double);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
