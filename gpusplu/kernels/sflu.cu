// Synchronization-free left-looking LU refactorization on a static pattern, owner computes (Zhao, Wen, Luo, Jin, Liu
// and Zhou, SFLU: busy waiting on what a column depends on instead of level barriers).
//
// What differs from the paper: a block owns a group of neighbouring columns, a whole small subtree or a chain
// (core/plan/column_groups.hpp), and keeps their values in shared memory, where its warps, a column each, hand finished
// columns to each other; only between groups does a hop go through the second-level cache. Groups are taken by tickets
// in an order in which nobody waits for a higher ticket, so the kernel cannot hang however blocks are scheduled;
// columns are published by release and acquire, and marked by the number of the launch instead of being cleared.
// Positions come from the plan's maps, or are searched where there are none.
//
// A warp: its column's entries of A, then for every j with U(j, k) != 0, ascending: wait for column j,
// column k -= L(:, j) U(j, k); then the pivot. A pivot below `tiny` is replaced by one of that size and its sign.
// Grid: at most as many blocks as are resident together; block: 512 threads; shared memory: 16 bytes, a word a column
// and the scalars of the largest group that has any room. Sums are in the order of the rows of U: bitwise repeatable.
#include "column_groups.cuh"

struct SfluArgs {
  ColumnArrays columns;
  ColumnTickets tickets;
  const int* source;    // canonical value of a place of L + U, or -1: fill
  const double* scale;  // of canonical values; null: ones
  const Scalar* values;
  Scalar* factor;
  unsigned* done;  // of a column: the launch that finished it
  // Columns from here on are updated by those before only, and left unfactored: the dense corner of crisscross LU.
  // Their `diag` is where rows from here on begin. n: there is none.
  int division;
  int capacity;  // scalars of shared memory; larger groups stay in global memory
  int flags;     // most columns of a group
  Status* status;
  double tiny, singular;  // see FactorArgs
};

namespace {

constexpr int TOGETHER = 4;  // columns whose update is loaded at a time

struct Group {
  int first, end;   // columns
  long long base;   // place of the first one
  Scalar* work;     // its values
  unsigned* flags;  // finished columns of the group
  unsigned epoch;
};

// L(:, j) as the update of a column needs it.
struct Source {
  long long lower, map;
  int column, count;
};

__device__ __forceinline__ Source shuffle(const Source& s, int lane) {
  return {__shfl_sync(~0u, s.lower, lane), __shfl_sync(~0u, s.map, lane), __shfl_sync(~0u, s.column, lane),
          __shfl_sync(~0u, s.count, lane)};
}

template <bool IN_SHARED> struct Column {
  const SfluArgs& args;
  const Group& group;
  int k, lane;
  int begin, diagonal, end;  // places relative to the group's

  __device__ __forceinline__ Column(const SfluArgs& args_, const Group& group_, int k_)
      : args(args_), group(group_), k(k_), lane(threadIdx.x & 31) {
    const ColumnArrays& c = args.columns;
    begin = (int)(__ldg(c.col_ptr + k) - group.base);
    diagonal = (int)(__ldg(c.diag + k) - group.base);
    end = (int)(__ldg(c.col_ptr + k + 1) - group.base);
  }

  __device__ __forceinline__ void assemble() {
    for (int p = begin + lane; p < end; p += 32) {
      const int source = __ldg(args.source + group.base + p);
      Scalar value(0);
      if (source >= 0) {
        value = load_constant(args.values + source);
        if (args.scale) value = (Real)__ldg(args.scale + source) * value;
      }
      group.work[p] = value;
    }
    __syncwarp();
  }

  __device__ __forceinline__ Source source_of(int u) const {  // u: entry of U in this column
    const ColumnArrays& c = args.columns;
    Source s = {0, 0, 0, 0};
    if (u < diagonal - begin) {
      s.column = __ldg(c.row + group.base + begin + u);
      s.lower = __ldg(c.diag + s.column) + 1;
      s.count = (int)(__ldg(c.col_ptr + s.column + 1) - s.lower);
      s.map = c.map_ptr ? __ldg(c.map_ptr + __ldg(c.u_ptr + k) + u) : 0;
    }
    return s;
  }

  __device__ __forceinline__ bool finished(int j) const {
    if (j >= group.first) return load_acquire_block(group.flags + (j - group.first)) != 0;
    return load_acquire(args.done + j) == group.epoch;
  }

  __device__ __forceinline__ int position(const Source& s, int e, int u) const {
    const ColumnArrays& c = args.columns;
    if (c.map32) return __ldg(c.map32 + s.map + e);
    if (c.map_ptr) return __ldg(c.map16 + s.map + e);
    const int last = end - begin - (s.count - e);
    return find_row(c.row + group.base + begin, __ldg(c.row + s.lower + e), u + 1, last);
  }

  __device__ __forceinline__ Scalar lower_value(const Source& s, int e) const {
    if (IN_SHARED && s.column >= group.first) return group.work[(int)(s.lower - group.base) + e];
    return load_shared_level(args.factor + s.lower + e);
  }

  // Entries from `first` on of L(:, j), four of a lane at a time.
  __device__ __forceinline__ void apply_rest(const Source& s, int first, int u, Scalar x) {
    for (int e0 = first + lane; e0 - lane < s.count; e0 += 32 * TOGETHER) {
      Scalar value[TOGETHER];
      int at[TOGETHER];
#pragma unroll
      for (int r = 0; r < TOGETHER; r++)
        if (e0 + 32 * r < s.count) value[r] = lower_value(s, e0 + 32 * r), at[r] = begin + position(s, e0 + 32 * r, u);
#pragma unroll
      for (int r = 0; r < TOGETHER; r++)
        if (e0 + 32 * r < s.count) group.work[at[r]] = mul_sub(value[r], x, group.work[at[r]]);
    }
  }

  __device__ __forceinline__ void update() {
    const int uppers = diagonal - begin;
    for (int u0 = 0; u0 < uppers; u0 += 32) {
      const Source own = source_of(u0 + lane);
      const int here = min(32, uppers - u0);
      bool mine = lane >= here || finished(own.column);
      unsigned ready = __ballot_sync(~0u, mine);
      __syncwarp();
      for (int t = 0; t < here;) {
        if (ready >> t & 1) {
          const int run = min(min((__ffs(~(ready >> t)) - 1) & 63, here - t), TOGETHER);
          apply_some(own, u0, t, run);
          t += run;
        } else {
          apply_late(own, u0, t, mine, ready);
          t++;
        }
      }
    }
  }

  // The column of entry u0 + t of U, which has to be waited for: what does not depend on it is loaded before.
  __device__ __forceinline__ void apply_late(const Source& own, int u0, int t, bool& mine, unsigned& ready) {
    const Source s = shuffle(own, t);
    const Scalar x = group.work[begin + u0 + t];
    int at[TOGETHER];
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (lane + 32 * r < s.count) at[r] = begin + position(s, lane + 32 * r, u0 + t);
    do {
      if (!mine) mine = finished(own.column);
      ready = __ballot_sync(~0u, mine);
    } while (!(ready >> t & 1));
    __syncwarp();
    Scalar value[TOGETHER];
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (lane + 32 * r < s.count) value[r] = lower_value(s, lane + 32 * r);
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (lane + 32 * r < s.count) group.work[at[r]] = mul_sub(value[r], x, group.work[at[r]]);
    if (s.count > 32 * TOGETHER) apply_rest(s, 32 * TOGETHER, u0 + t, x);
    __syncwarp();
  }

  // `run` finished columns from entry u0 + t of U on; lane r holds the source of entry u0 + r.
  __device__ __forceinline__ void apply_some(const Source& own, int u0, int t, int run) {
    Scalar value[TOGETHER];
    int at[TOGETHER];
#pragma unroll
    for (int r = 0; r < TOGETHER; r++) {
      at[r] = -1;
      if (r < run) {
        const Source s = shuffle(own, t + r);
        if (lane < s.count) value[r] = lower_value(s, lane), at[r] = begin + position(s, lane, u0 + t + r);
      }
    }
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (r < run) {
        const Scalar x = group.work[begin + u0 + t + r];
        if (at[r] >= 0) group.work[at[r]] = mul_sub(value[r], x, group.work[at[r]]);
        if (__shfl_sync(~0u, own.count, t + r) > 32) apply_rest(shuffle(own, t + r), 32, u0 + t + r, x);
        __syncwarp();
      }
  }

  // The reciprocal of the pivot, which is replaced where it is too small.
  __device__ __forceinline__ Scalar pivot_reciprocal() {
    const Scalar pivot = group.work[diagonal];
    const Real tiny = (Real)fmax(args.tiny, LEAST_NORMAL);
    const unsigned bits = magnitude_bits(pivot);
    __syncwarp();
    if (bits >= NAN_BITS && lane == 0) atomicAdd(&args.status->not_finite, 1);
    if (bits >= magnitude_bits(tiny)) return reciprocal(pivot);
    if (lane == 0) {
      atomicAdd(&args.status->n_perturbed, 1);
      if (bits < magnitude_bits((Real)args.singular)) atomicAdd(&args.status->n_tiny, 1);
      group.work[diagonal] = replaced_reciprocal(pivot, tiny);
    }
    __syncwarp();
    return replaced_reciprocal(pivot, reciprocal(tiny));
  }

  // Rows from `division` on of a column of the corner are a column of the Schur complement.
  __device__ __forceinline__ void leave() {
    if (IN_SHARED)
      for (int p = begin + lane; p < end; p += 32) store_shared_level(args.factor + group.base + p, group.work[p]);
  }

  __device__ __forceinline__ void finish() {
    const Scalar inverse = pivot_reciprocal();
    Scalar* to = args.factor + group.base;
    unsigned multiplier_bits = 0;
    for (int p = diagonal + 1 + lane; p < end; p += 32) {
      const Scalar x = group.work[p] * inverse;
      group.work[p] = x;
      if (IN_SHARED) store_shared_level(to + p, x);
      multiplier_bits = max(multiplier_bits, magnitude_bits(x));
    }
    __syncwarp();
    if (IN_SHARED && lane == 0) store_release_block(group.flags + (k - group.first), 1);
    if (IN_SHARED)
      for (int p = begin + lane; p <= diagonal; p += 32) store_shared_level(to + p, group.work[p]);
    __syncwarp();
    if (lane == 0) {
      store_release(args.done + k, group.epoch);
      if (!IN_SHARED) store_release_block(group.flags + (k - group.first), 1);
    }
    report_growth(multiplier_bits, args.status);
  }

  __device__ __forceinline__ void run() {
    assemble();
    update();
    if (k < args.division) finish();
    else leave();
  }
};

}  // namespace

GPUSPLU_KERNEL(factor_sflu, SfluArgs, 512, sizeof(Scalar) == 16 ? 1 : 2) {
  ColumnControl& control = *(ColumnControl*)shared_memory;
  unsigned* flags = (unsigned*)(shared_memory + sizeof(ColumnControl));
  Scalar* work = (Scalar*)(flags + (args.flags + 3 & ~3));
  for (begin_tickets(args.tickets, control); next_ticket(args.tickets, control);) {
    const int2 range = args.tickets.groups[control.ticket];
    Group group = {range.x, range.y, __ldg(args.columns.col_ptr + range.x), work, flags, control.epoch};
    for (int c = threadIdx.x; c < group.end - group.first; c += blockDim.x) flags[c] = 0;
    __syncthreads();
    const bool in_shared = __ldg(args.columns.col_ptr + group.end) - group.base <= args.capacity;
    if (!in_shared) group.work = args.factor + group.base;
    for (;;) {
      const int k = group.first + next_column(control);
      if (k >= group.end) break;
      if (in_shared) Column<true>(args, group, k).run();
      else Column<false>(args, group, k).run();
    }
  }
  end_tickets(args.tickets, control);
}
