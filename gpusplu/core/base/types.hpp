// Index types, pattern views and scalar helpers used by every stage.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
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

// ---- Number types that are known at run time only. Control flow is compiled once, for a `Dtype`

enum class Dtype { float32, float64, complex64, complex128 };
template <class T>
constexpr Dtype dtype_of = (Dtype)((is_complex<T> ? 2 : 0) + (std::is_same_v<real_t<T>, double> ? 1 : 0));

// f(T()) for the number type T.
template <class F> decltype(auto) with_scalar(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::float32:
      return f(float());
    case Dtype::complex64:
      return f(std::complex<float>());
    case Dtype::complex128:
      return f(std::complex<double>());
    default:
      return f(double());
  }
}

// Properties of a type and its real type.
struct Precision {
  bool is_complex;
  std::size_t bytes;  // of a number
  double eps, least_normal, least, largest;
  int min_exponent, max_exponent;
};
template <class T> constexpr Precision precision_of = {is_complex<T>,
                                                       sizeof(T),
                                                       std::numeric_limits<real_t<T>>::epsilon(),
                                                       std::numeric_limits<real_t<T>>::min(),
                                                       std::numeric_limits<real_t<T>>::denorm_min(),
                                                       std::numeric_limits<real_t<T>>::max(),
                                                       std::numeric_limits<real_t<T>>::min_exponent,
                                                       std::numeric_limits<real_t<T>>::max_exponent};

// Numbers of a type known at run time, in the order of Dtype.
using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::complex<float>>,
                            std::vector<std::complex<double>>>;
inline Dtype type_of(const Values& values) { return (Dtype)values.index(); }
inline Values zeros(Dtype dtype, std::size_t n) {
  return with_scalar(dtype, [n]<class T>(T) -> Values { return std::vector<T>(n); });
}
inline const void* data_of(const Values& values) {
  return std::visit([](const auto& v) -> const void* { return v.data(); }, values);
}
inline void* data_of(Values& values) {
  return std::visit([](auto& v) -> void* { return v.data(); }, values);
}

// Compressed columns of such numbers.
struct AnyMatrix {
  Pattern pattern;
  Values values;
  AnyMatrix() = default;
  AnyMatrix(Pattern pattern, Values values) : pattern(std::move(pattern)), values(std::move(values)) {}
  template <class T> AnyMatrix(Matrix<T>&& A) : pattern(std::move(A.pattern)), values(std::move(A.values)) {}
};

// ---- Checks of arguments from outside; a failed one is a ValueError in Python

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace gs
