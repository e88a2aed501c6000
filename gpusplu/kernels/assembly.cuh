// A front in shared memory: cleared, A's entries, and the children's contribution blocks.
#pragma once
#include "front.cuh"

// At least the rows, and 4 mod 8: the operands of mma are read without bank conflicts.
__device__ __forceinline__ int front_ld(int rows) { return ((rows + 3) & ~7) + 4; }

// A warp for THREADS == 32, else the block.
template <int THREADS> __device__ __forceinline__ void team_sync() {
  if constexpr (THREADS == 32) __syncwarp();
  else __syncthreads();
}

// A's entries of a front: four independent chains of dependent loads are under way, none of them behind a branch.
template <int THREADS>
__device__ __forceinline__ void add_entries(const FactorArgs& d, const Front& f, Scalar* F, int ld, int thread) {
  for (int k0 = thread; k0 < f.entry_count; k0 += 4 * THREADS) {
    unsigned place[4];
    Scalar value[4];
    double scale[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
      const long long k = f.entry_begin + min(k0 + q * THREADS, f.entry_count - 1);
      place[q] = __ldg(d.entry_place + k);
      value[q] = d.values[__ldg(d.entry_source + k)];
      scale[q] = d.entry_scale ? __ldg(d.entry_scale + k) : 1.0;
    }
#pragma unroll
    for (int q = 0; q < 4; q++)
      if (k0 + q * THREADS < f.entry_count) F[(place[q] & 0xffff) + (place[q] >> 16) * ld] = (Real)scale[q] * value[q];
  }
}

// Groups of 8 lanes own columns of the front and add their items in the plan's order. Control flow is the same for all
// lanes of a warp: groups that diverge would wait for memory one after another.
template <int BATCH>
__device__ __forceinline__ void add_children(const FactorArgs& d, const Front& f, Scalar* F, int ld, int group) {
  const int lane = threadIdx.x & 7, shift = 8 * (lane & 3);
  const int begin = __ldg(d.owner_ptr + f.owner_begin + group),
            count = __ldg(d.owner_ptr + f.owner_begin + group + 1) - begin;
  const int most = warp_max(count);
  const Scalar* blocks = d.blocks + f.block_base;
  int4 next[BATCH];
#pragma unroll
  for (int q = 0; q < BATCH; q++) next[q] = q < count ? __ldg(d.items + begin + q) : make_int4(0, 0, 0, 0);
  for (int b = 0; b < most; b += BATCH) {
    Scalar value[BATCH];
    int to[BATCH];
#pragma unroll
    for (int q = 0; q < BATCH; q++) {
      const int4 item = next[q];
      const bool mine = lane < item.y >> 16;
      value[q] = mine ? load_shared_level(blocks + item.x + lane) : Scalar(0);
      to[q] = mine ? (((lane < 4 ? item.z : item.w) >> shift) & 255) + (item.y & 0xffff) * ld : -1;
    }
#pragma unroll
    for (int q = 0; q < BATCH; q++)
      next[q] = b + BATCH + q < count ? __ldg(d.items + begin + b + BATCH + q) : make_int4(0, 0, 0, 0);
#pragma unroll
    for (int q = 0; q < BATCH; q++) {
      if (to[q] >= 0) F[to[q]] += value[q];
      __syncwarp();
    }
  }
}

template <int THREADS>
__device__ __forceinline__ void assemble(const FactorArgs& d, const Front& f, Scalar* F, int ld, int thread) {
  const int partials = THREADS == 32 ? 0 : f.partial_count;
  for (int i = thread; i < ld * (f.rows + partials); i += THREADS) F[i] = Scalar(0);
  team_sync<THREADS>();
  add_entries<THREADS>(d, f, F, ld, thread);
  team_sync<THREADS>();
  if (f.children) {
    add_children<THREADS == 32 ? 4 : 8>(d, f, F, ld, thread >> 3);
    team_sync<THREADS>();
  }
  if (partials) {  // sums of the further parts of crowded columns, in this order
    const int lane = thread & 31, home = lane < partials ? __ldg(d.partial + f.partial_begin + lane) : 0;
    for (int i0 = thread - lane; i0 < f.rows; i0 += THREADS)
      for (int e = 0; e < partials; e++) {
        const int j = shuffle(home, e), i = i0 + lane;
        if (i < f.rows) F[i + j * ld] += F[i + (f.rows + e) * ld];
      }
    team_sync<THREADS>();
  }
}

// Whoever completes the parent's last child goes on with the parent: the next front or -1, the same in all threads.
template <int THREADS> __device__ __forceinline__ int climb(const FactorArgs& d, const Front& f, int* next_of_block) {
  int next = -1;
  team_sync<THREADS>();
  if (!d.walk || f.climb < 0) return next;
  if ((THREADS == 32 ? threadIdx.x & 31 : threadIdx.x) == 0) {
    __threadfence();
    if (atomicAdd(d.counters + f.climb, 1u) + 1 == (unsigned)__ldg(&d.fronts[f.climb].pending)) {
      next = f.climb;
      d.counters[next] = 0;
      __threadfence();
    }
    if (THREADS != 32) *next_of_block = next;
  }
  if (THREADS == 32) return shuffle(next, 0);
  __syncthreads();
  return *next_of_block;
}
