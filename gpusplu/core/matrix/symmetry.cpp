#include "matrix/symmetry.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/parallel.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "shared/values.hpp"

namespace gs {
namespace {

struct Sums {
  off matched_pairs = 0, off_diagonal = 0;
  double largest = 0, symmetric = 0, hermitian = 0;
  bool positive_diagonal = true, diagonally_dominant = true;

  void merge(const Sums& other) {
    matched_pairs += other.matched_pairs;
    off_diagonal += other.off_diagonal;
    largest = std::max(largest, other.largest);
    symmetric = std::max(symmetric, other.symmetric);
    hermitian = std::max(hermitian, other.hermitian);
    positive_diagonal &= other.positive_diagonal;
    diagonally_dominant &= other.diagonally_dominant;
  }
};

template <class T> void add_column(PatternView A, const T* values, idx j, Sums& out) {
  T diagonal = 0;
  double others = 0;
  for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
    const double size = modulus(values[p]);
    out.largest = std::max(out.largest, size);
    if (A.ind[p] == j) diagonal = values[p];
    else others += size, out.off_diagonal++;
  }
  out.diagonally_dominant &= modulus(diagonal) >= others;
  if constexpr (is_complex<T>) out.positive_diagonal &= diagonal.real() > 0 && diagonal.imag() == 0;
  else out.positive_diagonal &= diagonal > 0;
}

template <class T> void add_pairs(PatternView A, const T* values, Slice<idx> range, Sums& out) {
  visit_pairs(A, range, [&](off p, off q) {
    const T one = values[p], other = q < 0 ? T(0) : values[q];
    out.matched_pairs += q >= 0 && p != q;
    out.symmetric = std::max(out.symmetric, modulus(one - other));
    out.hermitian = std::max(out.hermitian, modulus(one - conj_if(other, true)));
    return true;
  });
}

}  // namespace

template <class T> SymmetryTraits symmetry_traits(PatternView A, const T* values) {
  Sums all;
  std::mutex mutex;
  run_pass(threads_for(A.nnz()), [&](const Team& team) {
    const Slice<idx> range = slice(A.n, team);
    Sums mine;
    for (idx j = range.begin; j < range.end; j++) add_column(A, values, j, mine);
    add_pairs(A, values, range, mine);
    const std::lock_guard lock(mutex);
    all.merge(mine);
  });
  SymmetryTraits traits;
  if (all.off_diagonal > 0) traits.pattern_symmetry = 2.0 * (double)all.matched_pairs / (double)all.off_diagonal;
  if (all.largest > 0) {
    traits.symmetric_error = all.symmetric / all.largest;
    traits.hermitian_error = all.hermitian / all.largest;
  }
  traits.positive_diagonal = all.positive_diagonal;
  traits.diagonally_dominant = all.diagonally_dominant;
  return traits;
}

namespace {

template <class T> constexpr double tolerance = gpu::SYMMETRY_UNITS* std::numeric_limits<real_t<T>>::epsilon();

// Weight of a pair for the number of threads. A thread gets little work, some microseconds, but the factorization that
// follows wakes the same threads anyway.
constexpr off entries_per_pair = 16;

// mirror_triangle marks entries that are the conjugate of another entry, or equal to it, like this.
bool is_given_by_triangle(const Canonical& canonical) {
  return std::any_of(canonical.source.begin(), canonical.source.end(), [](off source) { return source < 0; });
}

constexpr double alike = 8;  // units of the precision

template <class T> bool are_alike(T one, T other) {
  constexpr double most = alike * std::numeric_limits<real_t<T>>::epsilon();
  return one == other || modulus(one - other) <= most * modulus(other);
}

// Whether an entry and its counterpart, itself on the diagonal, are of a Hermitian or a symmetric matrix.
template <class T> bool are_mirrored(const T* values, off p, off q, bool hermitian) {
  if (p == q) return !hermitian || std::imag(values[p]) == 0;
  return are_alike(values[p], conj_if(values[q], hermitian));
}

// Whether holds(first, second) for all pairs; false if they are not listed.
template <class Holds> bool all_hold(const SymmetricPairs& pairs, Holds&& holds) {
  std::atomic<bool> differ{!pairs.listed};
  const std::size_t count = pairs.first.size();
  over_range(count, entries_per_pair * (off)count, [&](std::size_t begin, std::size_t end) {
    std::size_t k = begin;
    while (k < end && holds(pairs.first[k], pairs.second[k])) k++;
    if (k < end) differ = true;
  });
  return !differ;
}

// Whether the first entries above the diagonal have counterparts below it: rejects most unsymmetric matrices early.
template <class T> bool seems_mirrored(PatternView A, const T* values) {
  constexpr off few = 64;
  off seen = 0;
  for (idx j = 0; j < A.n && seen < few; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1] && A.ind[p] < j; p++, seen++) {
      const idx i = A.ind[p];
      const off q = std::lower_bound(A.ind + A.ptr[i], A.ind + A.ptr[i + 1], j) - A.ind;
      if (q >= A.ptr[i + 1] || A.ind[q] != j) return false;
      const double size = modulus(values[p]), other = modulus(values[q]);
      if (std::abs(size - other) > 1e-3 * other) return false;
    }
  return true;
}

}  // namespace

SymmetricPairs::SymmetricPairs(const Canonical& canonical, bool hermitian, bool complex) : hermitian(hermitian) {
  list(canonical.pattern.view(), !is_given_by_triangle(canonical), hermitian && complex);
}

void SymmetricPairs::list(PatternView A, bool off_diagonal, bool diagonal) {
  listed = A.nnz() < (off)none;
  if (!listed || !(off_diagonal || diagonal)) return;
  if (off_diagonal) first.reserve(A.nnz() / 2 + 1), second.reserve(A.nnz() / 2 + 1);
  visit_pairs(A, [&](off p, off q) {
    if (p == q ? diagonal : off_diagonal)
      first.push_back((std::uint32_t)p), second.push_back(q < 0 ? none : (std::uint32_t)q);
    return true;
  });
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
  const auto are_near = [&](std::uint32_t p, std::uint32_t q) {
    const T other = q == SymmetricPairs::none ? T(0) : values[q];
    const T difference = values[p] - conj_if(other, pairs.hermitian);
    return std::abs(std::real(difference)) + std::abs(std::imag(difference)) <= bound;
  };
  return all_hold(pairs, are_near) || are_symmetric(A, values, pairs.hermitian);
}

template <class T> Symmetry symmetry_of(const SymmetricPairs& pairs, const T* values) {
  const auto is_kind = [&](bool hermitian) {
    return all_hold(pairs, [&](std::uint32_t p, std::uint32_t q) {
      return q != SymmetricPairs::none && are_mirrored(values, p, q, hermitian);
    });
  };
  if (is_kind(true)) return Symmetry::hermitian;
  return is_complex<T> && is_kind(false) ? Symmetry::complex_symmetric : Symmetry::none;
}

template <class T> Symmetry symmetry_of(PatternView A, const T* values) {
  if (!seems_mirrored(A, values)) return Symmetry::none;
  bool hermitian = true, symmetric = is_complex<T>;
  const auto compare = [&](off p, off q) {
    hermitian = hermitian && q >= 0 && are_mirrored(values, p, q, true);
    symmetric = symmetric && q >= 0 && are_mirrored(values, p, q, false);
    return hermitian || symmetric;
  };
  if (!visit_pairs(A, compare)) return Symmetry::none;
  return hermitian ? Symmetry::hermitian : Symmetry::complex_symmetric;
}

#define GS_INSTANTIATE(T)                                                            \
  template SymmetryTraits symmetry_traits(PatternView, const T*);                    \
  template bool are_symmetric(PatternView, const T*, bool);                          \
  template bool are_symmetric(const SymmetricPairs&, PatternView, const T*, double); \
  template Symmetry symmetry_of(const SymmetricPairs&, const T*);                    \
  template Symmetry symmetry_of(PatternView, const T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
