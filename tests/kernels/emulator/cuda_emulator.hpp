// Runs CUDA kernels on the CPU, for tests on machines without a GPU: the threads of a block are fibers that change at
// every barrier and warp operation, blocks run one after another. Reports divergent barriers, deadlocks, traps, and
// writes past the shared memory that was asked for. The order of threads and blocks follows a seed: results that depend
// on it are races.
//
// Preconditions of kernels: one struct argument, dynamic shared memory only, full masks, and whoever waits for another
// block waits for one that took its ticket earlier.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __device__
#define __host__
#define __global__
#define __shared__
#define __constant__
#define __restrict__ __restrict
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __launch_bounds__(...)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct __align__(8) int2 {
  int x, y;
};
struct __align__(8) uint2 {
  unsigned x, y;
};
struct int3 {
  int x, y, z;
};
struct __align__(16) int4 {
  int x, y, z, w;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
struct __align__(16) double2 {
  double x, y;
};
struct __align__(16) longlong2 {
  long long x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

namespace emulator {

constexpr size_t shared_limit = 228 * 1024, stack_bytes = 128 * 1024, max_threads = 1024, spin_limit = 100000;
enum class State { ready, at_barrier, at_warp, done };

#if defined(__x86_64__)
extern "C" void emulator_switch(void** save, void* load);
asm(R"(
.pushsection .text
.weak emulator_switch
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.popsection
)");
#endif

struct Fiber {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
  State state = State::done;
  uint3 thread;
  int lane, warp;
};

struct Warp {
  int lanes = 0, arrived = 0, done = 0, operation = 0;
  unsigned generation = 0;
  alignas(16) unsigned char slots[2][32][16];
};

struct Block {
  std::vector<Fiber> fibers = std::vector<Fiber>(max_threads);
  std::vector<Warp> warps = std::vector<Warp>(max_threads / 32);
  unsigned char* stacks = nullptr;
  Fiber* current = nullptr;
  Fiber scheduler;
  uint3 block;
  dim3 grid, size;
  int threads = 0, at_barrier = 0, done = 0, votes = 0, votes_before = 0;
  size_t spins = 0;
  bool spun = false;
  std::string error;
  void (*entry)(const void*) = nullptr;
  const void* args = nullptr;
};
inline Block machine;

inline void switch_to(Fiber& from, Fiber& to) {
#if defined(__x86_64__)
  emulator_switch(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
}
inline void yield() {
  Fiber& self = *machine.current;
  switch_to(self, machine.scheduler);
}
[[noreturn]] inline void fail(const std::string& what) {
  const Fiber& f = *machine.current;
  if (machine.error.empty())
    machine.error =
        what + " (block " + std::to_string(machine.block.x) + ", thread " + std::to_string(f.thread.x) + ")";
  machine.current->state = State::done;
  for (;;) yield();
}
inline void run_thread() {
  machine.entry(machine.args);
  Fiber& self = *machine.current;
  self.state = State::done;
  machine.done++;
  machine.warps[self.warp].done++;
  for (;;) yield();
}
inline void start_fiber(Fiber& f, int index) {
  unsigned char* stack = machine.stacks + (size_t)index * stack_bytes;
#if defined(__x86_64__)
  void** top = (void**)(stack + stack_bytes - 64);
  *--top = nullptr;
  *--top = (void*)&run_thread;
  for (int k = 0; k < 6; k++) *--top = nullptr;
  f.stack_pointer = top;
#else
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = stack;
  f.context.uc_stack.ss_size = stack_bytes;
  f.context.uc_link = nullptr;
  makecontext(&f.context, run_thread, 0);
#endif
}

// One operation of all 32 lanes of a warp; lanes leave their operands in the slots. Operations are told apart by
// `operation`.
template <class T> const unsigned char (*exchange(const T& value, int operation))[16] {
  static_assert(sizeof(T) <= 16);
  Fiber& self = *machine.current;
  Warp& warp = machine.warps[self.warp];
  const unsigned generation = warp.generation;
  if (warp.arrived > 0 && warp.operation != operation) fail("lanes of a warp are at different operations");
  warp.operation = operation;
  memcpy(warp.slots[generation & 1][self.lane], &value, sizeof(T));
  if (++warp.arrived == warp.lanes) {
    warp.arrived = 0;
    warp.generation++;
    for (int k = 0; k < warp.lanes; k++) {
      Fiber& f = machine.fibers[self.warp * 32 + k];
      if (f.state == State::at_warp) f.state = State::ready;
    }
    yield();
  } else {
    self.state = State::at_warp;
    yield();
  }
  return warp.slots[generation & 1];
}
template <class T> T shuffled(T value, int lane) {
  T result;
  memcpy(&result, exchange(value, 1)[lane & 31], sizeof(T));
  return result;
}
inline int barrier(int predicate) {
  Fiber& self = *machine.current;
  machine.votes += predicate != 0;
  machine.at_barrier++;
  self.state = State::at_barrier;
  yield();
  return machine.votes_before;
}
inline unsigned load_acquire(const unsigned* p) {
  if (++machine.spins > spin_limit) fail("waited too long for another block");
  machine.spun = true;
  yield();
  return *(const volatile unsigned*)p;
}

struct Launch {
  unsigned grid, block, shared_bytes, seed;
};

inline void run_block(const Launch& launch, std::mt19937& random) {
  machine.at_barrier = machine.done = machine.votes = 0;
  machine.spins = 0;
  const int warps = (machine.threads + 31) / 32;
  for (int i = 0; i < machine.threads; i++) {
    Fiber& f = machine.fibers[i];
    f.thread = {(unsigned)i, 0, 0};
    f.lane = i & 31;
    f.warp = i >> 5;
    f.state = State::ready;
    start_fiber(f, i);
  }
  for (int w = 0; w < warps; w++) {
    Warp& warp = machine.warps[w];
    warp.lanes = std::min(32, machine.threads - 32 * w);
    warp.arrived = warp.done = 0;
  }
  std::vector<int> order(warps), lanes(32);
  std::iota(order.begin(), order.end(), 0);
  std::iota(lanes.begin(), lanes.end(), 0);
  while (machine.done < machine.threads) {
    bool progress = false;
    if (launch.seed) std::shuffle(order.begin(), order.end(), random);
    for (const int w : order) {
      for (bool again = true; again;) {
        again = machine.spun = false;
        if (launch.seed) std::shuffle(lanes.begin(), lanes.end(), random);
        for (const int lane : lanes) {
          if (lane >= machine.warps[w].lanes) continue;
          Fiber& f = machine.fibers[w * 32 + lane];
          if (f.state != State::ready) continue;
          machine.current = &f;
          switch_to(machine.scheduler, f);
          if (!machine.error.empty()) return;
          again = progress = true;
        }
        if (machine.spun) break;
      }
    }
    if (machine.at_barrier && machine.at_barrier + machine.done == machine.threads) {
      machine.votes_before = machine.votes;
      machine.votes = machine.at_barrier = 0;
      for (int i = 0; i < machine.threads; i++)
        if (machine.fibers[i].state == State::at_barrier) machine.fibers[i].state = State::ready;
      progress = true;
    }
    if (!progress) {
      machine.error = "deadlock in block " + std::to_string(machine.block.x) + ": " +
                      std::to_string(machine.at_barrier) + " of " + std::to_string(machine.threads - machine.done) +
                      " threads are at a barrier, the others wait for their warps";
      return;
    }
  }
}

}  // namespace emulator

inline __align__(128) unsigned char shared_memory[emulator::shared_limit + 4096];

namespace emulator {

// Returns null, or what went wrong.
inline const char* launch(const Launch& l, void (*entry)(const void*), const void* args) {
  machine.error.clear();
  if (l.block == 0 || l.block > max_threads) return "threads of a block: 1 to 1024";
  if (l.shared_bytes > shared_limit) return "more shared memory than any device has";
  if (!machine.stacks)
    machine.stacks = (unsigned char*)mmap(nullptr, max_threads * stack_bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  machine.entry = entry;
  machine.args = args;
  machine.threads = (int)l.block;
  machine.grid = {l.grid, 1, 1};
  machine.size = {l.block, 1, 1};
  std::mt19937 random(l.seed);
  std::vector<unsigned> order(l.grid);
  std::iota(order.begin(), order.end(), 0u);
  if (l.seed) std::shuffle(order.begin(), order.end(), random);
  for (const unsigned b : order) {
    machine.block = {b, 0, 0};
    memset(shared_memory, 0xff, l.shared_bytes + 4096);  // NaN: nothing may be read before it is written
    run_block(l, random);
    for (size_t k = 0; k < 4096 && machine.error.empty(); k++)
      if (shared_memory[l.shared_bytes + k] != 0xff)
        machine.error = "block " + std::to_string(b) + " wrote byte " + std::to_string(l.shared_bytes + k) + " of " +
                        std::to_string(l.shared_bytes) + " bytes of shared memory";
    if (!machine.error.empty()) return machine.error.c_str();
  }
  return nullptr;
}

}  // namespace emulator

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
