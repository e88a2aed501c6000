#include "matrix/symmetry.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "base/parallel.hpp"
#include "base/scalars.hpp"
#include "base/slices.hpp"
#include "matrix/modulus.hpp"
#include "matrix/visit_pairs.hpp"

namespace gs {
namespace {

struct Partial {
  off matched_pairs = 0, off_diagonal = 0, below = 0, met = 0;  // met: those below that match_pairs visited
  double largest = 0, symmetric = 0, hermitian = 0;
  bool positive_diagonal = true, diagonally_dominant = true;

  void merge(const Partial& other) {
    matched_pairs += other.matched_pairs, below += other.below, met += other.met;
    off_diagonal += other.off_diagonal;
    largest = std::max(largest, other.largest);
    symmetric = std::max(symmetric, other.symmetric);
    hermitian = std::max(hermitian, other.hermitian);
    positive_diagonal &= other.positive_diagonal;
    diagonally_dominant &= other.diagonally_dominant;
  }
};

template <class T> void visit_column(PatternView A, const T* values, idx j, Partial& out) {
  T diagonal = 0;
  double others = 0;
  for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
    const double size = modulus(values[p]);
    out.largest = std::max(out.largest, size);
    if (A.ind[p] == j) {
      diagonal = values[p];
      out.hermitian = std::max(out.hermitian, modulus(diagonal - conj_if(diagonal, true)));
    } else {
      others += size;
      out.off_diagonal++;
      out.below += A.ind[p] > j;
    }
  }
  out.diagonally_dominant &= modulus(diagonal) >= others;
  if constexpr (is_complex<T>) out.positive_diagonal &= diagonal.real() > 0 && diagonal.imag() == 0;
  else out.positive_diagonal &= diagonal > 0;
}

// Compares the entries (i, j) below the diagonal, i in [begin, end), with the entries (j, i) above it: columns j come
// in order, so a cursor in each column i suffices. Skips columns before `first`.
template <class T>
void match_pairs(PatternView A, const T* values, idx begin, idx end, idx first, off* next, Partial& out) {
  const auto differ = [&](T a, T b) {
    out.symmetric = std::max(out.symmetric, modulus(a - b));
    out.hermitian = std::max(out.hermitian, modulus(a - conj_if(b, true)));
  };
  for (idx i = begin; i < end; i++) next[i] = A.ptr[i];
  for (idx j = first; j < end; j++) {
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
      const idx i = A.ind[p];
      if (i <= j || i < begin || i >= end) continue;
      out.met++;
      off& q = next[i];
      for (; q < A.ptr[i + 1] && A.ind[q] < j; q++) differ(values[q], T(0));
      if (q < A.ptr[i + 1] && A.ind[q] == j) {
        out.matched_pairs++;
        differ(values[p], values[q++]);
      } else {
        differ(values[p], T(0));
      }
    }
  }
  for (idx i = begin; i < end; i++)
    for (off q = next[i]; q < A.ptr[i + 1] && A.ind[q] < i; q++) differ(values[q], T(0));
}

// The first column with entries of a symmetric matrix in the rows [begin, end): the first row of these columns.
idx first_column(PatternView A, idx begin, idx end) {
  idx first = begin;
  for (idx i = begin; i < end; i++)
    if (A.ptr[i] < A.ptr[i + 1]) first = std::min(first, A.ind[A.ptr[i]]);
  return first;
}

off count_diagonal(PatternView A) {
  off count = 0;
  for (idx j = 0; j < A.n; j++) count += std::binary_search(A.ind + A.ptr[j], A.ind + A.ptr[j + 1], j);
  return count;
}

// Visits all entries; `narrow`: assumes a symmetric pattern, which saves every thread most columns.
template <class T> Partial visit_all(PatternView A, const T* values, bool narrow) {
  const int want = threads_for(A.nnz());
  std::vector<off> next(A.n);
  std::vector<Partial> partial(want);
  run_pass(want, [&](const Team& team) {
    const auto [begin, end] = slice(A.n, team);
    Partial mine;
    for (idx j = begin; j < end; j++) visit_column(A, values, j, mine);
    match_pairs(A, values, begin, end, narrow ? first_column(A, begin, end) : 0, next.data(), mine);
    partial[team.rank] = mine;
  });
  Partial all;
  for (const Partial& p : partial) all.merge(p);
  return all;
}

}  // namespace

template <class T> SymmetryTraits symmetry_traits(PatternView A, const T* values) {
  Partial all = visit_all(A, values, true);
  if (all.met != all.below) all = visit_all(A, values, false);
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

Mirror::Mirror(PatternView A) {
  const off off_diagonal = A.nnz() - count_diagonal(A);
  if (off_diagonal % 2 || A.nnz() > (off)std::numeric_limits<std::uint32_t>::max()) return;
  above.reserve(off_diagonal / 2), below.reserve(off_diagonal / 2);
  const auto keep = [&](off p, off q) {
    above.push_back((std::uint32_t)p), below.push_back((std::uint32_t)q);
    return true;
  };
  const bool met = visit_pairs(A, keep, [&](off p) { diagonal.push_back((std::uint32_t)p); });
  whole = met && 2 * (off)above.size() == off_diagonal;
}

namespace {

constexpr double alike = 8;  // units of the precision

template <class T> bool are_alike(T one, T other) {
  constexpr double tolerance = alike * std::numeric_limits<real_t<T>>::epsilon();
  return one == other || modulus(one - other) <= tolerance * modulus(other);
}

template <class T> bool is_mirrored(const Mirror& mirror, const T* values, bool hermitian) {
  const std::size_t pairs = mirror.above.size();
  std::atomic<bool> differs{false};
  over_range(pairs, (off)pairs, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; k++) {
      if (!are_alike(values[mirror.above[k]], conj_if(values[mirror.below[k]], hermitian))) {
        differs = true;
        return;
      }
    }
  });
  if (differs) return false;
  const auto is_real = [&](std::uint32_t k) { return std::imag(values[k]) == 0; };
  return !is_complex<T> || !hermitian || std::all_of(mirror.diagonal.begin(), mirror.diagonal.end(), is_real);
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

template <class T> Symmetry symmetry_of(const Mirror& mirror, const T* values) {
  if (!mirror.whole) return Symmetry::none;
  if (is_mirrored(mirror, values, true)) return Symmetry::hermitian;
  if (is_complex<T> && is_mirrored(mirror, values, false)) return Symmetry::complex_symmetric;
  return Symmetry::none;
}

template <class T> Symmetry symmetry_of(PatternView A, const T* values) {
  if (!seems_mirrored(A, values)) return Symmetry::none;
  bool hermitian = true, symmetric = is_complex<T>;
  off pairs = 0, on_diagonal = 0;
  const auto compare = [&](off p, off q) {
    pairs++;
    hermitian = hermitian && are_alike(values[p], conj_if(values[q], true));
    symmetric = symmetric && are_alike(values[p], values[q]);
    return hermitian || symmetric;
  };
  const auto check_if_real = [&](off p) {
    on_diagonal++;
    hermitian = hermitian && std::imag(values[p]) == 0;
  };
  if (!visit_pairs(A, compare, check_if_real) || 2 * pairs + on_diagonal != A.nnz()) return Symmetry::none;
  return hermitian ? Symmetry::hermitian : symmetric ? Symmetry::complex_symmetric : Symmetry::none;
}

#define GS_INSTANTIATE(T)                                         \
  template SymmetryTraits symmetry_traits(PatternView, const T*); \
  template Symmetry symmetry_of(const Mirror&, const T*);         \
  template Symmetry symmetry_of(PatternView, const T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
