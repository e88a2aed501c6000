// Numbers of double precision with exponents of unlimited range.
#pragma once
#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <limits>

#include "base/quotient.hpp"
#include "base/types.hpp"

namespace gs {

inline double quotient(double a, double b) { return a / b; }
inline float quotient(float a, float b) { return a / b; }
template <class R> inline std::complex<R> quotient(std::complex<R> a, std::complex<R> b) {
  const DoublePair q = quotient_of(a.real(), a.imag(), b.real(), b.imag());
  return {(R)q.re, (R)q.im};
}

// mantissa times 2^exponent, S a double or a complex of it. The larger part of a nonzero mantissa is in [1, 2): no
// operation on two mantissas leaves the range of a double, and a part that underflows relative to the other, or a term
// relative to another, is far below the precision. Some ten times slower than S.
template <class S> struct Wide {
  S mantissa;
  std::int64_t exponent;

  Wide() = default;
  explicit Wide(S v) {
    const double size = largest_part(v);
    const int shift = size < 0x1p-900 ? -100 : size > 0x1p900 ? 100 : 0;  // as far as one step can normalize
    *this = Wide(scaled(v, power(-shift)), shift);
  }
  Wide(S v, std::int64_t e) : mantissa(v), exponent(e) {
    const int excess = exponent_of(largest_part(v));
    if (v == S(0)) exponent = 0;
    else mantissa = scaled(v, power(-excess)), exponent += excess;
  }

  friend Wide operator+(Wide a, Wide b) {
    if (b.mantissa == S(0)) return a;
    if (a.mantissa == S(0)) return b;
    if (a.exponent < b.exponent) std::swap(a, b);
    const std::int64_t distance = std::min<std::int64_t>(a.exponent - b.exponent, 1000);
    return Wide(a.mantissa + scaled(b.mantissa, power(-(int)distance)), a.exponent);
  }
  friend Wide operator-(Wide a) {
    a.mantissa = -a.mantissa;
    return a;
  }
  friend Wide operator-(Wide a, Wide b) { return a + -b; }
  friend Wide operator*(Wide a, Wide b) { return Wide(a.mantissa * b.mantissa, a.exponent + b.exponent); }
  friend Wide operator/(Wide a, Wide b) { return Wide(quotient(a.mantissa, b.mantissa), a.exponent - b.exponent); }
  friend Wide quotient(Wide a, Wide b) { return a / b; }
  friend Wide operator*(double a, Wide b) { return Wide(scaled(b.mantissa, a), b.exponent); }  // `a` of moderate size
  Wide& operator-=(Wide b) { return *this = *this - b; }
  Wide& operator*=(Wide b) { return *this = *this * b; }
  friend bool operator==(Wide a, Wide b) { return a.mantissa == b.mantissa && a.exponent == b.exponent; }

  // For real numbers.
  friend bool operator<(Wide a, Wide b) { return (a - b).mantissa < 0; }
  friend bool operator>(Wide a, Wide b) { return b < a; }
  friend bool operator<=(Wide a, Wide b) { return !(b < a); }
  friend bool operator>=(Wide a, Wide b) { return !(a < b); }

  // Zero or infinite if out of range. In two steps, so that a subnormal result is rounded once.
  explicit operator S() const {
    const int e = (int)std::clamp<std::int64_t>(exponent, -1200, 1200), half = e < -1000 ? -600 : e / 2;
    return scaled(scaled(mantissa, std::ldexp(1.0, half)), std::ldexp(1.0, e - half));
  }

 private:
  static double power(int exponent) { return std::bit_cast<double>((std::int64_t)(exponent + 1023) << 52); }
  static int exponent_of(double v) { return (int)(std::bit_cast<std::int64_t>(v) >> 52) - 1023; }
  static double largest_part(S v) {
    if constexpr (is_complex<S>) return std::max(std::abs(v.real()), std::abs(v.imag()));
    else return std::abs(v);
  }
};

template <class S> struct real_of<Wide<S>> { using type = Wide<double>; };

template <class S> inline Wide<double> abs1(Wide<S> v) { return Wide<double>(abs1(v.mantissa), v.exponent); }

template <class S> inline Wide<S> conj_if(Wide<S> v, bool conj) {
  v.mantissa = conj_if(v.mantissa, conj);
  return v;
}

template <class S> inline Wide<S> scaled(Wide<S> v, double by) { return by * v; }

// The number type for values of type T.
template <class T> struct WideOf { using type = Wide<double>; };
template <class R> struct WideOf<std::complex<R>> { using type = Wide<std::complex<double>>; };
template <class T> using wide_t = typename WideOf<T>::type;

}  // namespace gs

template <> struct std::numeric_limits<gs::Wide<double>> {
  static gs::Wide<double> max() { return gs::Wide<double>(1.0, std::numeric_limits<std::int64_t>::max() / 4); }
};
