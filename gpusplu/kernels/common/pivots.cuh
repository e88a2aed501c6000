// How pivots and multipliers are compared, and the replacement of a pivot that is too small.
#pragma once
#include "common/device.cuh"
#include "shared/values.hpp"

// The leading bits of a number, with its sign if it is real, and without, ordered like the modulus; NaN is the largest.
DEVICE unsigned leading_bits(float x) { return __float_as_uint(x); }
DEVICE unsigned leading_bits(double x) { return (unsigned)__double2hiint(x); }
template <class R> DEVICE unsigned leading_bits(Complex<R> x) { return leading_bits(size1(x)); }
template <class T> DEVICE unsigned magnitude_bits(T x) { return leading_bits(x) & 0x7fffffffu; }
DEVICE double from_magnitude_bits(unsigned bits) {
  return sizeof(Real) == 4 ? (double)__uint_as_float(bits) : __hiloint2double((int)bits, 0);
}
constexpr unsigned NAN_BITS = sizeof(Real) == 4 ? 0x7f800000u : 0x7ff00000u;  // Inf and NaN are not below

constexpr double LEAST_NORMAL = sizeof(Real) == 4 ? 1.17549435e-38 : 2.2250738585072014e-308;
constexpr unsigned REPORTED_MULTIPLIER = sizeof(Real) == 4 ? 0x42800000u : 0x40500000u;  // 64

// By all lanes of a warp: the largest entry of |X|. Smaller ones than 64 are not worth an atomic operation.
DEVICE void report_growth(unsigned multiplier_bits, Status* status) {
  multiplier_bits = warp_max(multiplier_bits);
  if ((threadIdx.x & 31) != 0 || multiplier_bits < REPORTED_MULTIPLIER) return;
  const double size = from_magnitude_bits(multiplier_bits);  // positive doubles are ordered like their bits
  atomicMax((unsigned long long*)&status->growth, (unsigned long long)__double_as_longlong(size));
}

DEVICE float replaced_reciprocal(float p, Real largest) { return copysignf((float)largest, p); }
DEVICE double replaced_reciprocal(double p, Real largest) { return copysign((double)largest, p); }
template <class R> DEVICE Complex<R> replaced_reciprocal(Complex<R> p, Real largest) {
  return {(R)copysign(largest, p.re), 0};
}
