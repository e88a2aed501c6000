// Number types that are known at run time only. Control flow is compiled once, for a `Dtype`; `with_scalar` leads from
// it to the templates.
#pragma once
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/types.hpp"

namespace gs {

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

}  // namespace gs
