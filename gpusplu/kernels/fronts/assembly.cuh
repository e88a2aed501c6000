// Assembly of fronts in shared memory: entries of A, and the children's contribution blocks in the order of the plan.
//
// Both are split into finding (indices), loading (values) and adding, so that a front's first loads can be under way
// while the front below it is stored. All loads are unconditional with clamped or predicated indices: a branch around a
// load would wait for it.
#pragma once
#include "fronts/front.cuh"

// Entries of A, N for each of THREADS threads.
template <int THREADS, int N> struct Entries {
  int source[N];
  unsigned place[N];
  Scalar value[N];

  // Indices of entries first, first + THREADS, .. of the front. All registers are set for every front; otherwise the
  // compiler would keep them through the elimination before.
  DEVICE void find(const FactorArgs& args, const Front& f, int first) {
    for_all<N>([&](int q) {
      const long long k = f.entry_begin + min(first + q * THREADS, f.entry_count - 1);
      source[q] = f.entry_count > 0 ? __ldg(args.entry_source + k) : 0;
      place[q] = f.entry_count > 0 ? __ldg(args.entry_place + k) : 0;
    });
  }
  DEVICE void load(const FactorArgs& args, const Front& f, int first) {
    for_all<N>([&](int q) { value[q] = load_constant(args.values + source[q]); });
    if (args.entry_scale == nullptr || f.entry_count == 0) return;
    for_all<N>([&](int q) {
      const long long k = f.entry_begin + min(first + q * THREADS, f.entry_count - 1);
      value[q] = (Real)__ldg(args.entry_scale + k) * value[q];
    });
  }
  DEVICE void put(const Front& f, int first, Scalar* front, int ld) const {
    for_all<N>([&](int q) {
      if (first + q * THREADS < f.entry_count) front[(place[q] & 0xffff) + (int)(place[q] >> 16) * ld] = value[q];
    });
  }
};

// The entries from first on: values of one batch and indices of the next are under way together.
template <int THREADS, int N>
DEVICE void add_entries(const FactorArgs& args, const Front& f, int first, Scalar* front, int ld) {
  constexpr int BATCH = N * THREADS;
  const int thread = threadIdx.x & (THREADS - 1);
  if (first - thread >= f.entry_count) return;
  Entries<THREADS, N> even, odd;
  even.find(args, f, first);
  for (;; first += 2 * BATCH) {
    even.load(args, f, first);
    odd.find(args, f, first + BATCH);
    even.put(f, first, front, ld);
    if (first + BATCH - thread >= f.entry_count) return;
    odd.load(args, f, first + BATCH);
    even.find(args, f, first + 2 * BATCH);
    odd.put(f, first + BATCH, front, ld);
    if (first + 2 * BATCH - thread >= f.entry_count) return;
  }
}

// The items of one group of 8 lanes, two batches of N: lane k of the group holds item k of a batch.
template <int N> struct Items {
  int next, end;  // items from next on are not requested yet
  int4 batch[2];

  DEVICE void find(const FactorArgs& args, const Front& f, int group) {
    next = end = 0;
    if (f.children == 0) return;
    next = __ldg(args.owner_ptr + f.owner_begin + group), end = __ldg(args.owner_ptr + f.owner_begin + group + 1);
  }
  template <int B> DEVICE void load(const FactorArgs& args) {
    const int k = threadIdx.x & (ITEM_ENTRIES - 1);
    batch[B] = k < N && next + k < end ? __ldg((const int4*)args.items + next + k) : make_int4(0, 0, 0, 0);
    next += N;
  }
};

// Entries of contribution blocks that are on their way into the front.
template <int N> struct Contributions {
  Scalar value[N];
  int to[N];  // -1: none

  DEVICE void load(const int4& batch, const Scalar* blocks, int ld) {
    const int lane = threadIdx.x & (ITEM_ENTRIES - 1), shift = 8 * (lane & 3);
    for_all<N>([&](int q) {
      const int source = (int)(threadIdx.x & 24) | q, x = shuffle(batch.x, source), y = shuffle(batch.y, source),
                z = shuffle(batch.z, source), w = shuffle(batch.w, source);
      const bool used = lane < y >> 16;
      value[q] = used ? load_l2(blocks + x + lane) : Scalar(0);
      to[q] = used ? ((lane < 4 ? z : w) >> shift & 255) + (y & 0xffff) * ld : -1;
    });
  }
  DEVICE void add(Scalar* front) const {
    for_all<N>([&](int q) {
      // the next item may hold the same entry for another lane
      if (to[q] >= 0) front[to[q]] += value[q];
      __syncwarp();
    });
  }
};

// Adds all items of a group, of which two batches have been loaded; one batch of entries and two of items are under way
// while a batch is added. Control flow is uniform in the warp: divergent groups would serialize their latencies.
template <int N> DEVICE void add_items(const FactorArgs& args, const Front& f, Items<N>& items, Scalar* front, int ld) {
  const Scalar* blocks = args.blocks + f.block_base;
  const int most = warp_max(items.end - items.next + 2 * N);
  if (most <= 0) return;
  Contributions<N> even, odd;
  even.load(items.batch[0], blocks, ld);
  items.template load<0>(args);
  for (int done = 0;;) {
    odd.load(items.batch[1], blocks, ld);
    items.template load<1>(args);
    even.add(front);
    if ((done += N) >= most) break;
    even.load(items.batch[0], blocks, ld);
    items.template load<0>(args);
    odd.add(front);
    if ((done += N) >= most) break;
  }
}
