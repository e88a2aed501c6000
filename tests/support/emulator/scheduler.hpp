// The threads of a block as fibers: they change at barriers, warp operations and where they wait for other blocks.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "cuda_types.hpp"

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
  alignas(16) unsigned char slots[2][32][32];
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
template <class T> const unsigned char (*exchange(const T& value, int operation))[32] {
  static_assert(sizeof(T) <= 32);
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

// Somebody got on, so that waiting begins anew.
inline void store_release(unsigned* p, unsigned v) {
  *p = v;
  machine.spins = 0;
}

struct Launch {
  unsigned grid, block, shared_bytes, seed;
};

// Orders by a seed: xorshift (Marsaglia, Journal of Statistical Software 8 (2003)). <random> takes as long to compile
// as many a kernel.
struct Random {
  using result_type = std::uint32_t;
  result_type state;
  explicit Random(unsigned seed) : state(seed * 2654435761u | 1) {}
  static constexpr result_type min() { return 1; }
  static constexpr result_type max() { return ~result_type(0); }
  result_type operator()() {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
  }
};

inline void run_block(const Launch& launch, Random& random) {
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
  Random random(l.seed);
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
