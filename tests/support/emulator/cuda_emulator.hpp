// Runs CUDA kernels on the CPU, for tests on machines without a GPU: the threads of a block are fibers that change at
// every barrier and warp operation, blocks run one after another. Reports divergent barriers, deadlocks, traps, and
// writes past the shared memory that was asked for. The order of threads and blocks follows a seed: results that depend
// on it are races.
//
// Preconditions of kernels: one struct argument, dynamic shared memory only, full masks, and whoever waits for another
// block waits for one that took its ticket earlier.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "scheduler.hpp"

#define threadIdx (emulator::machine.current->thread)
#define blockIdx (emulator::machine.block)
#define blockDim (emulator::machine.size)
#define gridDim (emulator::machine.grid)

#define GPUSPLU_KERNEL(name, Args, threads, blocks_per_multiprocessor)                      \
  static void name(const Args args);                                                        \
  extern "C" const char* emulate_##name(const emulator::Launch* launch, const void* args) { \
    return emulator::launch(                                                                \
        *launch, [](const void* a) { name(*(const Args*)a); }, args);                       \
  }                                                                                         \
  extern "C" int args_bytes_##name() { return (int)sizeof(Args); }                          \
  static void name(const Args args)

inline void __syncthreads() { emulator::barrier(0); }
inline int __syncthreads_count(int p) { return emulator::barrier(p); }
inline int __syncthreads_or(int p) { return emulator::barrier(p) != 0; }
inline int __syncthreads_and(int p) { return emulator::barrier(!p) == 0; }
inline void __syncwarp(unsigned = ~0u) { emulator::exchange(0, 2); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { emulator::fail("trap"); }
inline long long clock64() { return 0; }

template <class T> T __shfl_sync(unsigned, T x, int lane, int width = 32) {
  const int self = threadIdx.x & 31;
  return emulator::shuffled(x, (self & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned, T x, int mask) {
  return emulator::shuffled(x, (threadIdx.x & 31) ^ mask);
}
template <class T> T __shfl_down_sync(unsigned, T x, int by, int width = 32) {
  const int self = threadIdx.x & 31, from = self + by;
  return emulator::shuffled(x, from / width == self / width ? from : self);
}
template <class T> T __shfl_up_sync(unsigned, T x, int by, int width = 32) {
  const int self = threadIdx.x & 31, from = self - by;
  return emulator::shuffled(x, from >= 0 && from / width == self / width ? from : self);
}
template <class T, class Combine> T emulator_reduce(T x, Combine combine, int operation) {
  const auto* slots = emulator::exchange(x, operation);
  T result, next;
  memcpy(&result, slots[0], sizeof(T));
  for (int k = 1; k < 32; k++) {
    memcpy(&next, slots[k], sizeof(T));
    result = combine(result, next);
  }
  return result;
}
inline int __reduce_max_sync(unsigned, int x) {
  return emulator_reduce(
      x, [](int a, int b) { return std::max(a, b); }, 3);
}
inline int __reduce_min_sync(unsigned, int x) {
  return emulator_reduce(
      x, [](int a, int b) { return std::min(a, b); }, 4);
}
inline unsigned __reduce_max_sync(unsigned, unsigned x) {
  return emulator_reduce(
      x, [](unsigned a, unsigned b) { return std::max(a, b); }, 3);
}
inline unsigned __reduce_min_sync(unsigned, unsigned x) {
  return emulator_reduce(
      x, [](unsigned a, unsigned b) { return std::min(a, b); }, 4);
}
inline int __reduce_add_sync(unsigned, int x) {
  return emulator_reduce(
      x, [](int a, int b) { return a + b; }, 5);
}
inline unsigned __ballot_sync(unsigned, int p) {
  return emulator_reduce(
      p ? 1u << (threadIdx.x & 31) : 0u, [](unsigned a, unsigned b) { return a | b; }, 6);
}
inline int __all_sync(unsigned, int p) {
  return emulator_reduce((int)(p != 0), [](int a, int b) { return a & b; }, 7);
}
inline int __any_sync(unsigned, int p) {
  return emulator_reduce((int)(p != 0), [](int a, int b) { return a | b; }, 8);
}

// In double precision one operation, as on tensor cores. The bits are those of the shuffles that other scalars take.
inline void mma(double (&c)[4], double a0, double a1, double b) {
  struct Operands {
    double a0, a1, b;
  } at_row, at_col[2];
  const auto* slots = emulator::exchange(Operands{a0, a1, b}, 9);
  const int lane = threadIdx.x & 31, row = lane & ~3, col = (lane & 3) * 8;
  for (int k = 0; k < 4; k++) {
    memcpy(&at_row, slots[row + k], sizeof(Operands));
    for (int j = 0; j < 2; j++) {
      memcpy(&at_col[j], slots[col + 4 * j + k], sizeof(Operands));
      c[j] = fma(at_row.a0, at_col[j].b, c[j]);
      c[2 + j] = fma(at_row.a1, at_col[j].b, c[2 + j]);
    }
  }
}

template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T, class U> void __stcg(T* p, U v) { *p = v; }
template <class T, class U> void __stcs(T* p, U v) { *p = v; }
template <class T, class U> T atomicAdd(T* p, U v) {
  const T old = *p;
  *p = (T)(old + v);
  return old;
}
template <class T, class U> T atomicSub(T* p, U v) {
  const T old = *p;
  *p = (T)(old - v);
  return old;
}
template <class T, class U> T atomicMin(T* p, U v) {
  const T old = *p;
  *p = std::min(old, (T)v);
  return old;
}
template <class T, class U> T atomicMax(T* p, U v) {
  const T old = *p;
  *p = std::max(old, (T)v);
  return old;
}
template <class T, class U> T atomicOr(T* p, U v) {
  const T old = *p;
  *p = old | v;
  return old;
}
template <class T, class U> T atomicExch(T* p, U v) {
  const T old = *p;
  *p = v;
  return old;
}
template <class T, class U, class V> T atomicCAS(T* p, U compare, V v) {
  const T old = *p;
  if (old == (T)compare) *p = v;
  return old;
}

template <class A, class B> auto min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return (T)a < (T)b ? (T)a : (T)b;
}
template <class A, class B> auto max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return (T)a > (T)b ? (T)a : (T)b;
}
using std::abs;
using std::copysign;
using std::fabs;
using std::fma;
using std::fmax;
using std::fmin;
using std::isfinite;
using std::isnan;
using std::sqrt;
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class To, class From> To emulator_bits(From x) {
  To to;
  static_assert(sizeof(To) == sizeof(From));
  memcpy(&to, &x, sizeof to);
  return to;
}
inline int __float_as_int(float x) { return emulator_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emulator_bits<unsigned>(x); }
inline float __int_as_float(int x) { return emulator_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emulator_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulator_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator_bits<double>(x); }
inline int __double2hiint(double x) { return (int)(emulator_bits<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return (int)(uint32_t)emulator_bits<uint64_t>(x); }
inline double __hiloint2double(int hi, int lo) {
  return emulator_bits<double>((uint64_t)(uint32_t)hi << 32 | (uint32_t)lo);
}

// What common/instructions.cuh has for a GPU.
inline double reciprocal(double x) { return 1.0 / x; }
inline float reciprocal_start(float x) { return 1.0f / x; }
inline double reciprocal_start(double x) { return (double)(float)(1.0 / x); }
inline double reciprocal_root(double x) { return 1.0 / sqrt(x); }
inline int load_short(const unsigned short* p) { return *p; }
inline unsigned load_acquire(const unsigned* p) { return emulator::load_acquire(p); }
inline unsigned load_relaxed(const unsigned* p) { return emulator::load_acquire(p); }
inline void store_release(unsigned* p, unsigned v) { emulator::store_release(p, v); }
inline unsigned load_acquire_block(const unsigned* p) { return emulator::load_acquire(p); }
inline void store_release_block(unsigned* p, unsigned v) { *p = v; }
inline unsigned add_acquire_release(unsigned* p, unsigned v) { return atomicAdd(p, v); }
inline void wait_for_count(const unsigned* count, unsigned value) {
  while (load_acquire(count) < value) {
  }
}
inline void prefetch(const void* p) { (void)*(const volatile char*)p; }
inline void allow_next_kernel() {}
inline void wait_for_previous_kernel() {}
inline void before_looking_again(const unsigned long long* p, bool) {
  emulator::load_acquire((const unsigned*)p);  // lets others run
}
inline void store_words(unsigned long long* p, unsigned long long a, unsigned long long b) { p[0] = a, p[1] = b; }
inline void load_words(const unsigned long long* p, unsigned long long& a, unsigned long long& b) {
  a = p[0], b = p[1];
}
inline void check_alignment(const void* p, int bytes) {
  if ((unsigned long long)p % bytes) emulator::fail("misaligned address");
}
template <int SIZE> void copy_async(void* to, const void* from, int bytes) {
  check_alignment(to, SIZE);
  if (bytes) check_alignment(from, SIZE);
  for (int k = 0; k < SIZE / 4; k++) ((unsigned*)to)[k] = 4 * k < bytes ? ((const unsigned*)from)[k] : 0u;
}
inline void copy_commit() {}
template <int N> void copy_wait() {}
