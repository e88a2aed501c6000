// Shared by the kernels of batches: where a lane's entries lie, how entries are assembled, and the recorded data of
// pivots.
//
// A lane reads and writes data of its own system only, so a warp needs no internal synchronization.
#pragma once
#include "common/pivots.cuh"
#include "shared/lanes.hpp"
#include "shared/lockstep.hpp"

constexpr int RESIDENT = sizeof(Scalar) == 16 ? LANE_BLOCKS_WIDE : LANE_BLOCKS;  // blocks a multiprocessor

DEVICE int lane_of() { return threadIdx.x & (WARP_SIZE - 1); }
DEVICE int warp_of() { return threadIdx.x / WARP_SIZE; }

// Warps that process a front together: one, or those of a block.
struct Single {
  static constexpr int rank = 0, size = 1;
  DEVICE void sync() const {}
};
template <int WARPS> struct Team {
  int rank;
  static constexpr int size = WARPS;
  DEVICE void sync() const { __syncthreads(); }
};
// The first number from k on, and the last one up to k, that are a member's: every size-th.
template <class Member> DEVICE int first_from(const Member& team, int k) {
  return k + (team.rank + team.size - k % team.size) % team.size;
}
template <class Member> DEVICE int last_until(const Member& team, int k) {
  return k - (k + team.size - team.rank) % team.size;
}

// Entry 0 of this lane in an array of `size` entries a system.
template <class T> DEVICE T* lane_entries(T* array, int group, long long size) {
  return array + (size * group * WARP_SIZE + lane_of());
}

// Contributions to a tile: for every place, by ascending place, an entry of A first, then those of the children's
// blocks, child by child.
struct Items {
  const int* ptr;       // of tiles or parts of tiles
  const int2* item;     // x: entry of A, or ~entry of a block; y: place in the tile, IS_ENTRY added to those of A
  const double* scale;  // of entries of A; null: ones
};

struct LaneStatus {
  unsigned multiplier = 0, upper = 0, entry = 0;
  int n_perturbed = 0, n_tiny = 0, failed = 0;

  DEVICE void publish(LaneReport* report) const {
    if (multiplier > load_relaxed(&report->multiplier)) atomicMax(&report->multiplier, multiplier);
    if (upper > load_relaxed(&report->upper)) atomicMax(&report->upper, upper);
    if (entry > load_relaxed(&report->entry)) atomicMax(&report->entry, entry);
    if (n_perturbed) atomicAdd(&report->n_perturbed, n_perturbed);
    if (n_tiny) atomicAdd(&report->n_tiny, n_tiny);
    if (failed) atomicMax(&report->failed, failed);
  }
};

// Pivots of one factorization.
struct LanePivots {
  int n;
  Real tiny, singular;
  DEVICE LanePivots(int n_, double tiny_, double singular_)
      : n(n_), tiny((Real)fmax(tiny_, LEAST_NORMAL)), singular((Real)singular_) {}

  // Reciprocal of the pivot at `position`, or for Cholesky of its root; comparisons are such that NaN fails them.
  DEVICE Scalar reciprocal_of(Scalar p, int position, LaneStatus& status) const {
    if constexpr (CHOLESKY) {
      const Real size = real(p);
      const bool good = size >= (Real)LEAST_NORMAL && magnitude_bits(size) < NAN_BITS;
      status.n_perturbed += !good;
      status.failed = good ? status.failed : max(status.failed, n - position);
      return Scalar(reciprocal_root(good ? size : (Real)1));
    } else {
      const Real size = size1(p);
      const bool good = size >= tiny, bad = !(size >= singular);
      status.n_perturbed += !good;
      status.n_tiny += bad;
      status.failed = bad ? max(status.failed, n - position) : status.failed;
      return good ? reciprocal(p) : replaced_reciprocal(p, reciprocal(tiny));
    }
  }
};

// Items first .. of a tile, up to WARP_SIZE of them, one a lane.
struct ItemsInLanes {
  int source, place;
  double scale;
  DEVICE void load(const Items& items, int first, int end) {
    const int mine = min(first + lane_of(), end - 1);
    const int2 item = __ldg(items.item + mine);
    source = item.x, place = item.y;
    scale = items.scale ? __ldg(items.scale + mine) : 1.0;
  }
  // Where item k is, of this lane; `values` and `blocks` are.
  DEVICE const Scalar* at(int k, const Scalar* values, const Scalar* blocks) const {
    const int from = shuffle(source, k);
    return from < 0 ? blocks + (long long)~from * WARP_SIZE : values + (long long)from * WARP_SIZE;
  }
};

// Sums of items with one place after the other, each put into the tile when the next begins. `tile`: of this lane.
struct RunningSum {
  Scalar* tile;
  Scalar sum;
  int place = -1;

  DEVICE void add(const Items& items, const ItemsInLanes& lanes, int k, Scalar value, LaneStatus& status) {
    const int next = shuffle(lanes.place, k);
    if (next & IS_ENTRY) {  // the first of its place
      put();
      sum = items.scale ? (Real)shuffle(lanes.scale, k) * value : value, place = next - IS_ENTRY;
      status.entry = max(status.entry, magnitude_bits(sum));
    } else if (next != place) {
      put();
      sum = value, place = next;
    } else {
      sum += value;
    }
  }
  DEVICE void put() const {
    if (place >= 0) tile[place * WARP_SIZE] = sum;
  }
};

template <int COUNT> DEVICE void clear_tile(Scalar* tile) {
  for_all<COUNT>([&](int k) { tile[k * WARP_SIZE] = Scalar(0); });
}

// The COUNT entries of a tile, WARP_SIZE apart: the sum of items begin .. end - 1, of which `lanes` has the first if
// they are LOADED. `tile`, `values` and `blocks`: of this lane.
template <int COUNT, bool LOADED> DEVICE void assemble(const Items& items, int begin, int end, ItemsInLanes lanes,
                                                       const Scalar* values, const Scalar* blocks, Scalar* tile,
                                                       LaneStatus& status) {
  constexpr int TOGETHER = sizeof(Scalar) == 16 ? 4 : 8;
  clear_tile<COUNT>(tile);
  RunningSum sum{tile};
  for (int first = begin; first < end; first += WARP_SIZE) {
    const int some = min(WARP_SIZE, end - first);
    if (!LOADED || first > begin) lanes.load(items, first, end);
    for (int k = 0; k < some; k += TOGETHER) {
      Scalar value[TOGETHER];
      for_all<TOGETHER>([&](int q) {
        if (k + q < some) value[q] = *lanes.at(k + q, values, blocks);
      });
      for_all<TOGETHER>([&](int q) {
        if (k + q < some) sum.add(items, lanes, k + q, value[q], status);
      });
    }
  }
  sum.put();
}
