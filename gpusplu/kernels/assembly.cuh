// Assembly of fronts in shared memory: entries of A, and the children's contribution blocks in the order of the plan.
//
// Both are split into finding (indices), loading (values) and adding, so that a front's first loads can be under way
// while the front below it is stored. All loads are unconditional with clamped or predicated indices: a branch around a
// load would wait for it.
#pragma once
#include "front.cuh"

// Entries of A, N for each of THREADS threads.
template <int THREADS, int N> struct Entries {
  int source[N];
  unsigned place[N];
  Scalar value[N];

  // Indices of entries first, first + THREADS, .. of the front.
  __device__ __forceinline__ void find(const FactorArgs& args, const Front& f, int first) {
    if (f.entry_count == 0) return;
#pragma unroll
    for (int q = 0; q < N; q++) {
      const long long k = f.entry_begin + min(first + q * THREADS, f.entry_count - 1);
      source[q] = __ldg(args.entry_source + k), place[q] = __ldg(args.entry_place + k);
    }
  }
  __device__ __forceinline__ void load(const FactorArgs& args, const Front& f, int first) {
    if (f.entry_count == 0) return;
#pragma unroll
    for (int q = 0; q < N; q++) value[q] = load_value(args.values + source[q]);
    if (args.entry_scale == nullptr) return;
#pragma unroll
    for (int q = 0; q < N; q++) {
      const long long k = f.entry_begin + min(first + q * THREADS, f.entry_count - 1);
      value[q] = (Real)__ldg(args.entry_scale + k) * value[q];
    }
  }
  __device__ __forceinline__ void put(const Front& f, int first, Scalar* front, int ld) const {
#pragma unroll
    for (int q = 0; q < N; q++)
      if (first + q * THREADS < f.entry_count) front[(place[q] & 0xffff) + (int)(place[q] >> 16) * ld] = value[q];
  }

 private:
  static __device__ __forceinline__ float load_value(const float* p) { return __ldg(p); }
  static __device__ __forceinline__ double load_value(const double* p) { return __ldg(p); }
  static __device__ __forceinline__ Complex<float> load_value(const Complex<float>* p) {
    const float2 v = __ldg((const float2*)p);
    return {v.x, v.y};
  }
  static __device__ __forceinline__ Complex<double> load_value(const Complex<double>* p) {
    const double2 v = __ldg((const double2*)p);
    return {v.x, v.y};
  }
};

// The items of one group of 8 lanes, in batches of N. Control flow is uniform in the warp: groups that went their own
// ways would serialize their latencies.
template <int N> struct Items {
  int next, end;
  int4 item[N];

  __device__ __forceinline__ void find(const FactorArgs& args, const Front& f, int group) {
    next = end = 0;
    if (f.children == 0) return;
    next = __ldg(args.owner_ptr + f.owner_begin + group), end = __ldg(args.owner_ptr + f.owner_begin + group + 1);
  }
  __device__ __forceinline__ void load(const FactorArgs& args) {
#pragma unroll
    for (int q = 0; q < N; q++) item[q] = next + q < end ? __ldg(args.items + next + q) : make_int4(0, 0, 0, 0);
    next += N;
  }
};

// Entries of contribution blocks that are on their way into the front.
template <int N> struct Contributions {
  Scalar value[N];
  int to[N];  // -1: none

  __device__ __forceinline__ void load(const Items<N>& items, const Scalar* blocks, int ld) {
    const int lane = threadIdx.x & 7, shift = 8 * (lane & 3);
#pragma unroll
    for (int q = 0; q < N; q++) {
      const int4 it = items.item[q];
      const bool used = lane < it.y >> 16;
      value[q] = used ? load_shared_level(blocks + it.x + lane) : Scalar(0);
      const int row = (lane < 4 ? it.z : it.w) >> shift & 255;
      to[q] = used ? row + (it.y & 0xffff) * ld : -1;
    }
  }
  __device__ __forceinline__ void add(Scalar* front) const {
#pragma unroll
    for (int q = 0; q < N; q++) {  // the next item may hold the same entry for another lane
      if (to[q] >= 0) front[to[q]] += value[q];
      __syncwarp();
    }
  }
};

// Adds all items of a group, of which the first batch has been loaded; the loads of a batch are under way while the
// batch before it is added.
template <int N> __device__ __forceinline__ void add_items(const FactorArgs& args, const Front& f, Items<N>& items,
                                                           Scalar* front, int ld) {
  const Scalar* blocks = args.blocks + f.block_base;
  const int most = (int)warp_max((unsigned)(items.end - items.next + N));
  if (most <= 0) return;
  Contributions<N> even, odd;
  even.load(items, blocks, ld);
  items.load(args);
  for (int done = 0;;) {
    odd.load(items, blocks, ld);
    items.load(args);
    even.add(front);
    if ((done += N) >= most) break;
    even.load(items, blocks, ld);
    items.load(args);
    odd.add(front);
    if ((done += N) >= most) break;
  }
}
