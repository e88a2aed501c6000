// Quotients of complex numbers that are almost correctly rounded, and exact where possible, like those of real numbers:
// (x d) / d is x again, so terms of a solve with a triangular matrix that cancel exactly still cancel. No intermediate
// result leaves the range. Local to each object file: kernels of different instruction sets share no code.
#pragma once

namespace gs {

#define GS_LOCAL static inline __attribute__((always_inline))

struct DoublePair {
  double re, im;
};

// a b - c d, without the cancellation of rounding errors (W. Kahan; Jeannerod, Louvet, Muller, Further analysis of
// Kahan's algorithm for the accurate computation of 2 x 2 determinants, Math. Comp. 82 (2013)).
GS_LOCAL double difference_of_products(double a, double b, double c, double d) {
  const double product = c * d;
  return __builtin_fma(a, b, -product) + __builtin_fma(-c, d, product);
}

// a - x c + y d, if the result is as small as the rounding errors of x and y: by exact products and sums.
GS_LOCAL double remainder_of(double a, double x, double c, double y, double d) {
  const double p = x * c, q = y * d, of_products = __builtin_fma(y, d, -q) - __builtin_fma(x, c, -p);
  const double s = a - p, back = s - a, of_s = (a - (s - back)) + (-p - back);
  const double t = s + q, again = t - s, of_t = (s - (t - again)) + (q - again);
  return t + (of_s + of_t + of_products);
}

GS_LOCAL double larger_size(double a, double b) {
  a = __builtin_fabs(a), b = __builtin_fabs(b);
  return a > b ? a : b;
}

// (a + i b) / (c + i d), for a divisor that is finite and not zero.
GS_LOCAL DoublePair quotient_of(double a, double b, double c, double d) {
  constexpr double far = 0x1p250;  // between this and 1 / far no scaling is needed
  const double given = larger_size(a, b), divisor = larger_size(c, d);
  int exponent = 0;
  if (!(given > 1 / far && given < far && divisor > 1 / far && divisor < far)) {
    if (!(given > 0 && given <= 0x1.fffffffffffffp1023)) return {a, b};  // zero, or not finite
    const int of_given = __builtin_ilogb(given), of_divisor = __builtin_ilogb(divisor);
    a = __builtin_ldexp(a, -of_given), b = __builtin_ldexp(b, -of_given);
    c = __builtin_ldexp(c, -of_divisor), d = __builtin_ldexp(d, -of_divisor);
    exponent = of_given - of_divisor;
  }
  const double norm = difference_of_products(c, c, -d, d);
  double re = difference_of_products(a, c, -b, d) / norm, im = difference_of_products(b, c, a, d) / norm;
  const double left_re = remainder_of(a, re, c, im, d), left_im = remainder_of(b, re, d, -im, c);
  re += (left_re * c + left_im * d) / norm, im += (left_im * c - left_re * d) / norm;
  return exponent == 0 ? DoublePair{re, im} : DoublePair{__builtin_ldexp(re, exponent), __builtin_ldexp(im, exponent)};
}

#undef GS_LOCAL

}  // namespace gs
