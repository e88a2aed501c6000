// Shared by all kernels: the scalar they are compiled for, its arithmetic, and how it is loaded, stored and exchanged.
//
// A kernel file is compiled once per scalar (-DSCALAR_f, _d, _F, _D), kind (-DKIND=0 .. 3) and architecture, by
// NVRTC, or for the tests by a C++ compiler with GPUSPLU_EMULATED, where tests/support/emulator stands in for CUDA.
#pragma once
#include "shared/host_device.hpp"

using namespace gs::gpu;

#define DEVICE __device__ __forceinline__
#ifdef GPUSPLU_EMULATED
#include "cuda_emulator.hpp"
#else
#include "common/instructions.cuh"
// A kernel takes one struct by value.
#define GPUSPLU_KERNEL(name, Args, threads, blocks_per_multiprocessor)             \
  extern "C" __global__ void __launch_bounds__(threads, blocks_per_multiprocessor) \
      name(const __grid_constant__ Args args)
#endif

// Of factorization: 0 LU, 1 Cholesky, 2 LDL^T of a Hermitian matrix, 3 of a complex symmetric one.
#ifndef KIND
#define KIND 0
#endif
constexpr bool CHOLESKY = KIND == 1, LDLT = KIND >= 2, ONE_TRIANGLE = CHOLESKY || LDLT;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define FP64_TENSOR_CORES 16  // rows of the double precision mma
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define FP64_TENSOR_CORES 8
#else
#define FP64_TENSOR_CORES 0
#endif
// Single precision by three products of tf32: where tensor cores are more than three times as fast as multiply-adds,
// which those of graphics cards (8.6, 8.9, 12.0) are not.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ / 100 == 9 || __CUDA_ARCH__ / 100 == 10)
#define TF32_TENSOR_CORES 1
#else
#define TF32_TENSOR_CORES 0
#endif

// Calls work(i, j, ..) for all i < N, j < M, .., the last one fastest. Unrolled, so that arrays stay in registers.
// `outer` are indices of loops around these (NVRTC before 13.1 takes a generic lambda for a function of the host).
template <int N, int... M, class Work, class... Index> DEVICE void for_all(Work&& work, Index... outer) {
#pragma unroll
  for (int i = 0; i < N; i++)
    if constexpr (sizeof...(M) > 0) for_all<M...>(work, outer..., i);
    else work(outer..., i);
}

// All shared memory is dynamic; kernels carve it up themselves.
extern __shared__ __align__(16) unsigned char shared_memory[];

template <class R> struct __align__(2 * sizeof(R)) Complex {
  R re, im;
  Complex() = default;
  __device__ constexpr Complex(R re_, R im_ = 0) : re(re_), im(im_) {}
  __device__ Complex& operator+=(Complex b) {
    re += b.re;
    im += b.im;
    return *this;
  }
  __device__ Complex& operator-=(Complex b) {
    re -= b.re;
    im -= b.im;
    return *this;
  }
};
template <class R> DEVICE Complex<R> operator+(Complex<R> a, Complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> DEVICE Complex<R> operator-(Complex<R> a, Complex<R> b) { return {a.re - b.re, a.im - b.im}; }
template <class R> DEVICE Complex<R> operator-(Complex<R> a) { return {-a.re, -a.im}; }
template <class R> DEVICE Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {fma(a.re, b.re, -a.im * b.im), fma(a.re, b.im, a.im * b.re)};
}
template <class R> DEVICE Complex<R> operator*(R a, Complex<R> b) { return {a * b.re, a * b.im}; }

#if defined(SCALAR_f) || defined(SCALAR_F)
using Real = float;
#else
using Real = double;
#endif
#if defined(SCALAR_F) || defined(SCALAR_D)
constexpr bool is_complex = true;
#else
constexpr bool is_complex = false;
#endif
template <bool FIRST, class T, class U> struct ChoiceOf { using Type = T; };
template <class T, class U> struct ChoiceOf<false, T, U> { using Type = U; };
template <bool FIRST, class T, class U> using Choice = typename ChoiceOf<FIRST, T, U>::Type;
using Scalar = Choice<is_complex, Complex<Real>, Real>;
template <class T> constexpr bool IS_COMPLEX = false;
template <class R> constexpr bool IS_COMPLEX<Complex<R>> = true;

template <class R> DEVICE R conj(R a) { return a; }
template <class R> DEVICE Complex<R> conj(Complex<R> a) { return {a.re, -a.im}; }
template <class R> DEVICE R real(R a) { return a; }
template <class R> DEVICE R real(Complex<R> a) { return a.re; }
// Entry (j, i) where one triangle stands for both and entry (i, j) is `a`.
DEVICE Scalar mirrored(Scalar a) { return KIND == 3 ? a : conj(a); }
// Size of a pivot or an entry: |re| + |im| (Higham, Accuracy and Stability, 2002, 9.1: as good as the modulus in
// pivoting).
template <class R> DEVICE R size1(R a) { return fabs(a); }
template <class R> DEVICE R size1(Complex<R> a) { return fabs(a.re) + fabs(a.im); }
// c + a b and c - a b
DEVICE float mul_add(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE double mul_add(double a, double b, double c) { return fma(a, b, c); }
template <class R> DEVICE Complex<R> mul_add(Complex<R> a, Complex<R> b, Complex<R> c) {
  return {fma(-a.im, b.im, fma(a.re, b.re, c.re)), fma(a.im, b.re, fma(a.re, b.im, c.im))};
}
template <class T> DEVICE T mul_sub(T a, T b, T c) { return mul_add(-a, b, c); }

// ---- reciprocals of normal numbers
DEVICE float reciprocal(float x) { return 1.0f / x; }
template <class R> DEVICE Complex<R> reciprocal(Complex<R> x) {  // Smith's scaling keeps the square in range
  const R scale = reciprocal(fabs(x.re) + fabs(x.im)), re = x.re * scale, im = x.im * scale;
  const R inverse = scale * reciprocal(fma(re, re, im * im));
  return {re * inverse, -im * inverse};
}
DEVICE float reciprocal_root(float x) { return rsqrtf(x); }

// ---- exchange inside a warp; always by all 32 lanes
template <class T> DEVICE T shuffle(T x, int lane) {
  if constexpr (IS_COMPLEX<T>) return {shuffle(x.re, lane), shuffle(x.im, lane)};
  else return __shfl_sync(~0u, x, lane);
}
template <class T> DEVICE T shuffle_xor(T x, int mask) {
  if constexpr (IS_COMPLEX<T>) return {shuffle_xor(x.re, mask), shuffle_xor(x.im, mask)};
  else return __shfl_xor_sync(~0u, x, mask);
}

// x of every LANES neighbouring lanes joined, in all of these: join(x, that of another lane).
template <int LANES = WARP_SIZE, class T, class Join> DEVICE T warp_reduce(T x, Join&& join) {
#pragma unroll
  for (int mask = LANES / 2; mask; mask /= 2) x = join(x, shuffle_xor(x, mask));
  return x;
}
template <int LANES = WARP_SIZE, class T> DEVICE T warp_sum(T x) {
  return warp_reduce<LANES>(x, [](T a, T b) { return a + b; });
}
template <class T> DEVICE T warp_max(T x) {  // int or unsigned
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return warp_reduce(x, [](T a, T b) { return max(a, b); });
#else
  return __reduce_max_sync(~0u, x);
#endif
}

// The first of from, from + 1, .., last for which before(k) does not hold, by bisection.
template <class Index, class Before> DEVICE Index bisect(Index from, Index last, Before&& before) {
  while (from < last) {
    const Index middle = (from + last) >> 1;
    if (before(middle)) from = middle + 1;
    else last = middle;
  }
  return from;
}

// ---- tickets: the next number of a counter, of a warp, or of a block by way of shared memory
template <class T> DEVICE int warp_ticket(T* counter) {
  int ticket = 0;
  if ((threadIdx.x & 31) == 0) ticket = (int)atomicAdd(counter, T(1));
  return shuffle(ticket, 0);
}
DEVICE int block_ticket(unsigned* counter, int* shared = (int*)shared_memory) {
  __syncthreads();
  if (threadIdx.x == 0) *shared = (int)atomicAdd(counter, 1u);
  __syncthreads();
  return *shared;
}

// ---- loads and stores by an instruction of CUDA's, of a complex number as a vector
template <class T> using Vector = Choice<IS_COMPLEX<T>, Choice<sizeof(T) == sizeof(float2), float2, double2>, T>;
template <class R, class V> DEVICE R from_vector(V v) {
  if constexpr (IS_COMPLEX<R>) return {v.x, v.y};
  else return v;
}
// Global memory that other blocks of the same launch write: past the first-level cache.
template <class T> DEVICE T load_l2(const T* p) { return from_vector<T>(__ldcg((const Vector<T>*)p)); }
template <class T> DEVICE void store_l2(T* p, T v) {
  if constexpr (IS_COMPLEX<T>) __stcg((Vector<T>*)p, Vector<T>{v.re, v.im});
  else __stcg(p, v);
}
// Global memory that no block of the launch writes.
template <class T> DEVICE T load_constant(const T* p) { return from_vector<T>(__ldg((const Vector<T>*)p)); }

// A struct, 8 or 16 bytes at a time: one that no block of the launch writes, and one that other blocks read.
template <class T> using Part = Choice<sizeof(T) % sizeof(int4) == 0, int4, int2>;
template <class T> DEVICE T load_record(const T* from) {
  T record;
  for_all<sizeof(T) / sizeof(Part<T>)>([&](int k) { ((Part<T>*)&record)[k] = __ldg((const Part<T>*)from + k); });
  return record;
}
template <class T> DEVICE void store_record(T* to, const T& record) {
  for_all<sizeof(T) / sizeof(Part<T>)>([&](int k) { __stcg((Part<T>*)to + k, ((const Part<T>*)&record)[k]); });
}

// Words that other blocks write at any time; single accesses in their own right.
DEVICE void store_word(unsigned long long* p, unsigned long long v) { *(volatile unsigned long long*)p = v; }
DEVICE unsigned long long load_word(const unsigned long long* p) { return *(const volatile unsigned long long*)p; }
// ---- C (16 x 8) += A (16 x 4) B (4 x 8) by one warp. Lane (g, t) = (lane / 4, lane % 4) holds
// a0 = A(g, t), a1 = A(g + 8, t), b = B(t, g), c = C(g, 2t), C(g, 2t + 1), C(g + 8, 2t), C(g + 8, 2t + 1).
template <class T> DEVICE void mma(T (&c)[4], T a0, T a1, T b) {
  const int lane = threadIdx.x & 31, row = lane & ~3, col = (lane & 3) * 8;
  for_all<4>([&](int k) {
    const T b0 = shuffle(b, col + k), b1 = shuffle(b, col + 4 + k), x0 = shuffle(a0, row + k),
            x1 = shuffle(a1, row + k);
    c[0] = mul_add(x0, b0, c[0]);
    c[1] = mul_add(x0, b1, c[1]);
    c[2] = mul_add(x1, b0, c[2]);
    c[3] = mul_add(x1, b1, c[3]);
  });
}
#if FP64_TENSOR_CORES == 16
template <> DEVICE void mma(double (&c)[4], double a0, double a1, double b) {
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a0), "d"(a1), "d"(b));
}
#elif FP64_TENSOR_CORES == 8
template <> DEVICE void mma(double (&c)[4], double a0, double a1, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a0), "d"(b));
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(c[2]), "+d"(c[3])
               : "d"(a1), "d"(b));
}
#endif

// ---- The same of one or two fours of columns of A and of rows of B: a[0], a[1] and b[0] as above,
// a[2], a[3] = A(g, t + 4), A(g + 8, t + 4), b[1] = B(t + 4, g).
template <class T> DEVICE void mma(T (&c)[4], const T (&a)[2], const T (&b)[1]) { mma(c, a[0], a[1], b[0]); }
template <class T> DEVICE void mma(T (&c)[4], const T (&a)[4], const T (&b)[2]) {
  mma(c, a[0], a[1], b[0]);
  mma(c, a[2], a[3], b[1]);
}
#if TF32_TENSOR_CORES
// x = high + low, up to 2^-22 |x|: eleven bits each. A value that is not finite stays so in one of them.
struct Tf32Parts {
  unsigned high, low;
  DEVICE Tf32Parts(float x) {
    high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high)) & 0xffffe000u;
  }
};
DEVICE void mma_tf32(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// The small products first. Tensor cores truncate their sums; so sums of eight are added by an addition, which rounds:
// backward errors are three to five times as large without.
template <> DEVICE void mma(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  const Tf32Parts p0(a[0]), p1(a[1]), p2(a[2]), p3(a[3]), q0(b[0]), q1(b[1]);
  float sum[4] = {};
  mma_tf32(sum, p0.low, p1.low, p2.low, p3.low, q0.high, q1.high);
  mma_tf32(sum, p0.high, p1.high, p2.high, p3.high, q0.low, q1.low);
  mma_tf32(sum, p0.high, p1.high, p2.high, p3.high, q0.high, q1.high);
  for_all<4>([&](int q) { c[q] += sum[q]; });
}
#endif
