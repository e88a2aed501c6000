// Columns with many entries of U, which a whole block processes (core/plan/columns/long_columns.hpp): the values of
// their shallow entries, and the contributions of these to the others. One thread sums each shallow entry, all entries
// of a depth in parallel; only a barrier and shared memory lie between two depths, because all other operands are
// loaded rounds before. The columns of all shallow entries are finished before. A sum has its terms in the order of the
// plan: bitwise repeatable.
#pragma once
#include "columns/sflu_args.cuh"

namespace {

struct LongSums {
  static constexpr int TOGETHER = 4;  // terms that a thread loads at a time
  const LongArrays& arrays;
  const LongColumn& part;
  const Scalar* factor;
  Scalar *work, *partial;  // the column; a scalar a warp

  // Targets of a depth, from `first` on one a thread.
  struct Round {
    int depth, first, end;
  };
  // Operands of a thread in a round.
  struct Sum {
    int target, begin, count;
    int2 term[TOGETHER];
    Scalar value[TOGETHER];
  };

  DEVICE int depth_end(int depth) const { return depth < part.depths ? __ldg(arrays.level + part.level + depth) : 0; }
  DEVICE Round after(const Round& r) const {
    if (r.first + (int)blockDim.x < r.end) return {r.depth, r.first + (int)blockDim.x, r.end};
    return {r.depth + 1, r.end, depth_end(r.depth + 1)};
  }

  DEVICE void load_target(Sum& s, const Round& r) const {
    const int i = r.first + (int)threadIdx.x, safe = max(min(i, r.end - 1), part.target);
    s.target = __ldg(arrays.target + safe);
    s.begin = __ldg(arrays.term_ptr + safe);
    s.count = i < r.end ? __ldg(arrays.term_ptr + safe + 1) - s.begin : 0;
  }
  DEVICE void load_terms(Sum& s) const {
    for_all<TOGETHER>(
        [&](int r) { s.term[r] = __ldg((const int2*)arrays.term + s.begin + max(min(r, s.count - 1), 0)); });
  }
  DEVICE void load_values(Sum& s) const {
    for_all<TOGETHER>([&](int r) { s.value[r] = factor[s.term[r].x]; });
  }
  DEVICE void add(Sum& s) const {
    if (!s.count) return;
    Scalar sum = work[s.target];
    for (int q = 0;;) {
      for_all<TOGETHER>([&](int r) {
        if (q + r < s.count) sum = mul_sub(s.value[r], work[s.term[r].y], sum);
      });
      q += TOGETHER;
      if (q >= s.count) break;
      for_all<TOGETHER>(
          [&](int r) { s.term[r] = __ldg((const int2*)arrays.term + s.begin + min(q + r, s.count - 1)); });
      load_values(s);
    }
    work[s.target] = sum;
  }

  // Shallow entries, depth by depth.
  DEVICE void solve_shallow() const {
    if (!part.depths) return;
    Round round = {0, part.target, depth_end(0)}, next = after(round);
    Sum sum, ahead;
    load_target(sum, round);
    load_terms(sum);
    load_values(sum);
    load_target(ahead, next);
    for (;;) {
      load_terms(ahead);
      const Round later = after(next);
      Sum behind;
      load_target(behind, later);
      add(sum);
      if (next.depth != round.depth) __syncthreads();
      if (next.depth >= part.depths) break;
      load_values(ahead);
      sum = ahead;
      ahead.target = behind.target, ahead.begin = behind.begin, ahead.count = behind.count;
      round = next, next = later;
    }
  }

  // minus the sum of every `stride`-th term of a target from the `from`-th on, of this thread
  DEVICE Scalar sum_terms(int i, int from, int stride) const {
    const int begin = __ldg(arrays.term_ptr + i), end = __ldg(arrays.term_ptr + i + 1);
    return ::sum_terms(begin + from, end, stride, factor, work,
                       [&](int q) { return __ldg((const int2*)arrays.term + q); });
  }

  // All other entries: those with most terms by the block, others by a warp each.
  DEVICE void sum_deep() const {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int i = part.depths ? depth_end(part.depths - 1) : part.target;
    for (; i < part.huge_end; i++) {
      const Scalar sum = sum_terms(i, threadIdx.x, blockDim.x);
      add_block_sum(work + __ldg(arrays.target + i), sum, partial);
    }
    for (i += warp; i < part.deep_end; i += COLUMN_WARPS) {
      const Scalar sum = warp_sum(sum_terms(i, lane, 32));
      if (lane == 0) work[__ldg(arrays.target + i)] += sum;
    }
    __syncthreads();
  }
};

}  // namespace
