// Index types, pattern views and scalar helpers used by every stage.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/raw_vector.hpp"

// M(T) for each number type, to instantiate templates.
#define GS_FOR_SCALARS(M) M(float) M(double) M(std::complex<float>) M(std::complex<double>)

namespace gs {

using idx = std::int32_t;  // row, column and supernode numbers
using off = std::int64_t;  // offsets into index and value arrays: always 64 bits

// Compressed columns: the rows of column j are ind[ptr[j]] .. ind[ptr[j+1]-1]. Square, n x n.
// Canonical means sorted rows without duplicates; graphs (symmetric patterns) hold no diagonal unless said otherwise.
struct PatternView {
  idx n = 0;
  const off* ptr = nullptr;
  const idx* ind = nullptr;
  off nnz() const { return n ? ptr[n] : 0; }
};

struct Pattern {
  idx n = 0;
  std::vector<off> ptr;
  RawVector<idx> ind;
  PatternView view() const { return {n, ptr.data(), ind.data()}; }
};

// A sparse matrix with values, compressed columns.
template <class T> struct Matrix {
  Pattern pattern;
  std::vector<T> values;
};

template <class T> struct real_of { using type = T; };
template <class R> struct real_of<std::complex<R>> { using type = R; };
template <class T> using real_t = typename real_of<T>::type;
template <class T> inline constexpr bool is_complex = !std::is_same_v<T, real_t<T>>;

template <class T> inline constexpr double eps = std::numeric_limits<real_t<T>>::epsilon();

template <class T> inline T conj_if(T v, bool conj) {
  if constexpr (is_complex<T>) return conj ? std::conj(v) : v;
  else return v;
}
// |re| + |im|: within sqrt(2) of the modulus and much cheaper; what LAPACK's izamax uses to choose pivots.
template <class T> inline real_t<T> abs1(T v) {
  if constexpr (is_complex<T>) return std::abs(v.real()) + std::abs(v.imag());
  else return std::abs(v);
}

// v * by, where the power of two `by` may be out of range although the product is not.
template <class T> inline T scaled(T v, double by) {
  if constexpr (is_complex<T>) return T(real_t<T>(v.real() * by), real_t<T>(v.imag() * by));
  else return T(v * by);
}

enum class Trans { none, transpose, conj_transpose };

}  // namespace gs
