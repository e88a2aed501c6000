// Instructions that CUDA C++ does not expose, or not with this memory order. The emulator of the tests implements them
// too (tests/support/emulator).
#pragma once

// ---- reciprocals of normal numbers
DEVICE double reciprocal_start(double x) {  // 2^-20
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
DEVICE float reciprocal_start(float x) {  // 1 ulp
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE double reciprocal(double x) {  // 20 bits from the table, one cubic step: within 1-2 ulp
  const double y = reciprocal_start(x), e = fma(-x, y, 1.0);
  return fma(y, fma(e, e, e), y);
}
DEVICE double reciprocal_root(double x) {  // 1 / sqrt(x), x normal and positive, 1-2 ulp
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x * y, y, 1.0);
  return fma(y * e, fma(e, 0.375, 0.5), y);
}

// A word of 16 bits as a register of 32 from the start: the compiler moves halves of registers about, and a move waits
// for the load.
DEVICE int load_short(const unsigned short* p) {
  int v;
  asm volatile("ld.global.u16 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

// ---- flags and counters for which other blocks wait
DEVICE unsigned load_acquire(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
// Without order, for polling: an acquire empties the first-level cache.
DEVICE unsigned load_relaxed(const unsigned* p) {
  unsigned v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEVICE void store_release(unsigned* p, unsigned v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
// The same between the warps of a block, for words in shared memory.
DEVICE unsigned load_acquire_block(const unsigned* p) {
  unsigned v;
  const unsigned address = (unsigned)__cvta_generic_to_shared(p);
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
DEVICE void store_release_block(unsigned* p, unsigned v) {
  const unsigned address = (unsigned)__cvta_generic_to_shared(p);
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}
// Waits until a count is reached; polls without order, which keeps the first-level cache for others.
DEVICE void wait_for_count(const unsigned* count, unsigned value) {
  while (load_relaxed(count) < value) __nanosleep(32);
  load_acquire(count);
}
// Adds with release and acquire order: a thread that adds later sees what this thread (and, after a barrier, its block)
// wrote.
DEVICE unsigned add_acquire_release(unsigned* p, unsigned v) {
  unsigned old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}

// ---- programmatic dependent launch: a kernel that was launched so may begin when every block of the previous kernel
// has begun and allows it; it must wait before it uses what that kernel writes.
DEVICE void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
DEVICE void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Between two polls of a word that another block writes; the emulator runs that block meanwhile.
DEVICE void before_looking_again(const unsigned long long* p, bool pause) {
  if (pause) __nanosleep(64);
}

// Two words in one access, aligned to 16 bytes; each is whole, the pair need not be of one moment.
DEVICE void store_words(unsigned long long* p, unsigned long long a, unsigned long long b) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
DEVICE void load_words(const unsigned long long* p, unsigned long long& a, unsigned long long& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}

// Into the second-level cache.
DEVICE void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// ---- asynchronous copies from global to shared memory of SIZE bytes, 4, 8 or 16, of which `bytes` come from the
// source and the rest is zero
template <int SIZE> DEVICE void copy_async(void* to, const void* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = (unsigned)__cvta_generic_to_shared(to);
  if constexpr (SIZE == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(address), "l"(from), "r"(bytes), "n"(SIZE)
                 : "memory");
#else
  for (int k = 0; k < SIZE / 4; k++) ((unsigned*)to)[k] = 4 * k < bytes ? __ldcg((const unsigned*)from + k) : 0u;
#endif
}
DEVICE void copy_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> DEVICE void copy_wait() {  // until at most N groups are under way
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
