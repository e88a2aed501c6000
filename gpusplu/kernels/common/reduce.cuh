// Largest values over a block and over the device. Independent of order, so deterministic with atomics.
#pragma once
#include "common/device.cuh"
#include "shared/values.hpp"

// Accumulators of residuals and norms.
using Wide = Choice<is_complex, Complex<double>, double>;
DEVICE double widen(float a) { return a; }
DEVICE double widen(double a) { return a; }
template <class R> DEVICE Complex<double> widen(Complex<R> a) { return {(double)a.re, (double)a.im}; }
DEVICE void narrow(double a, Scalar& to) { to = Scalar((Real)a); }
template <class T> DEVICE void narrow(Complex<double> a, T& to) { to = T((Real)a.re, (Real)a.im); }

DEVICE double modulus(double a) { return fabs(a); }
DEVICE double modulus(Complex<double> a) {               // scaled, so that squares stay in range
  if (a.re != a.re || a.im != a.im) return a.re + a.im;  // fmax would drop a NaN
  const double larger = fmax(fabs(a.re), fabs(a.im)), smaller = fmin(fabs(a.re), fabs(a.im));
  if (larger == smaller + larger) return larger;
  const double ratio = smaller / larger;
  return larger * sqrt(fma(ratio, ratio, 1.0));
}

struct Determinant {
  double log_size;  // of the modulus
  Wide sign;        // of modulus 1
};
// A number of modulus 1.
DEVICE double phase(double a) { return a < 0 ? -1.0 : 1.0; }
DEVICE Complex<double> phase(Complex<double> a) { return (1.0 / modulus(a)) * a; }

DEVICE double warp_max(double v) {
  return warp_reduce(v, [](double a, double b) { return fmax(a, b); });
}
// Of a block; thread 0 has it. `scratch`: one double a warp; a barrier before it is used again.
DEVICE double block_max(double v, double* scratch) {
  const int warps = blockDim.x / 32, lane = threadIdx.x & 31;
  v = warp_max(v);
  __syncthreads();
  if (lane == 0) scratch[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) v = warp_max(lane < warps ? scratch[lane] : 0.0);
  return v;
}
// Raises *norm to `v`, or to that of thread 0; numbers that are not negative have the order of their bits.
DEVICE void raise_to(double* norm, double v) {
  if (v > 0) atomicMax((unsigned long long*)norm, (unsigned long long)__double_as_longlong(v));
}
DEVICE void join_block(double* norm, double v) {
  if (threadIdx.x == 0) raise_to(norm, v);
}

constexpr double LARGEST = 1.7976931348623157e308;
DEVICE double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
DEVICE double or_infinite(double v) { return v == v ? v : infinity(); }  // fmax drops NaN
// |r| / (|A| |x| + |b|) of norms.
DEVICE double backward_error(double r, double a, double x, double b) {
  return r > LARGEST ? r : r > 0 ? r / fma(a, x, b) : 0.0;
}
