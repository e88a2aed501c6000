// U12 and the Schur complement of crisscross LU: the updates of the columns of the dense trailing block by the columns
// before it.
//
// A block owns a column of the block. Every entry is a sum of terms that the plan lists (core/plan/columns/
// trailing_terms.hpp), in a fixed order: bitwise repeatable. First come the entries of U12, step by step. The operands
// of a batch of steps are staged in shared memory together, so that a step needs no access to global memory. Then come
// all rows of the Schur complement together, except those with very many terms, which all warps sum together. Tickets
// of these blocks follow those of all other columns, so that these blocks can wait for the columns, batch by batch,
// while the last columns are computed.
#pragma once
#include "columns/sflu_args.cuh"

namespace {

constexpr int TOGETHER = 4;  // loads of a lane that are under way together

// A column, and the batch of its terms that is staged.
struct TrailingColumn {
  const SfluArgs& args;
  unsigned epoch;
  long long begin;         // place of the column
  const long long* terms;  // of its entries, by rank
  int uppers, length, huge;
  const int *order, *step, *batch;
  const long long* need_ptr;  // of the batches, then of the trailing block's entries
  int batches, available;
  bool in_shared;
  Scalar *partial, *values, *multipliers;  // partial: a scalar a warp
  int first;                               // rank of the first entry of the batch
  int *positions, *begins, *targets;

  DEVICE TrailingColumn(const SfluArgs& args_, unsigned epoch_, int k, unsigned char* memory)
      : args(args_), epoch(epoch_) {
    const ColumnArrays& all = args.columns;
    const TrailingArrays& a = args.trailing;
    const int c = k - args.division;
    begin = __ldg(all.col_ptr + k);
    const long long entry = begin - __ldg(all.col_ptr + args.division);
    terms = a.term_ptr + entry;
    order = a.order + entry;
    uppers = (int)(__ldg(all.diag + k) - begin);
    length = (int)(__ldg(all.col_ptr + k + 1) - begin);
    huge = __ldg(a.huge + c);
    step = a.step + __ldg(a.step_ptr + c);
    const long long first_batch = __ldg(a.batch_ptr + c);
    batch = a.batch + first_batch;
    need_ptr = a.need_ptr + first_batch + c;
    batches = (int)(__ldg(a.batch_ptr + c + 1) - first_batch);
    in_shared = length <= a.kept;
    partial = (Scalar*)memory;
    Scalar* rest = partial + COLUMN_WARPS;
    values = in_shared ? rest : args.factor + begin;
    multipliers = rest + (in_shared ? length : 0);
    available = a.capacity - (in_shared ? length * (int)sizeof(Scalar) : 0);
  }

  // Waits until the columns that a batch needs are finished. One lane of a warp polls, so that waiting warps leave the
  // cache to working ones.
  DEVICE void wait_for(int batch_number) const {
    const long long from = __ldg(need_ptr + batch_number), end = __ldg(need_ptr + batch_number + 1);
    const int lane = threadIdx.x & 31;
    for (long long q = from + threadIdx.x; q - lane < end; q += blockDim.x) {
      const unsigned* flag = args.done + (q < end ? __ldg(args.trailing.need + q) : 0);
      bool ready = q >= end || load_relaxed(flag) == epoch;
      while (const unsigned missing = __ballot_sync(~0u, !ready)) {
        if (lane == __ffs(missing) - 1)
          while (load_relaxed(flag) != epoch) __nanosleep(64);
        __syncwarp();
        if (!ready) ready = load_relaxed(flag) == epoch;
      }
    }
    __threadfence();
    __syncthreads();
  }

  // Entries of ranks `first_rank` .. end - 1, if they fit.
  DEVICE bool stage(int first_rank, int end) {
    first = first_rank;
    const long long from = __ldg(terms + first), count = __ldg(terms + end) - from;
    if (batch_bytes(end - first, count, sizeof(Scalar)) > available) return false;
    positions = (int*)(multipliers + count);
    begins = positions + count;
    targets = begins + (end - first) + 1;
    for (int q0 = threadIdx.x; q0 < (int)count; q0 += blockDim.x * TOGETHER) {
      int place[TOGETHER], position[TOGETHER];
      Scalar multiplier[TOGETHER];
      for_all<TOGETHER>([&](int r) {
        const long long q = from + min(q0 + r * (int)blockDim.x, (int)count - 1);
        place[r] = __ldg(args.trailing.place + q), position[r] = __ldg(args.trailing.position + q);
      });
      for_all<TOGETHER>([&](int r) { multiplier[r] = args.factor[place[r]]; });
      for_all<TOGETHER>([&](int r) {
        const int q = q0 + r * (int)blockDim.x;
        if (q < (int)count) multipliers[q] = multiplier[r], positions[q] = position[r];
      });
    }
    for (int r = threadIdx.x; r <= end - first; r += blockDim.x) begins[r] = (int)(__ldg(terms + first + r) - from);
    for (int r = threadIdx.x; r < end - first; r += blockDim.x) targets[r] = __ldg(order + first + r);
    return true;
  }

  // minus the sum of a lane's terms among those of the entry of rank r, `LANES` lanes to an entry
  template <int LANES> DEVICE Scalar staged_sum(int r, int lane) const {
    const int end = begins[r - first + 1];
    Scalar sum(0);
    for (int q = begins[r - first] + lane; q < end; q += LANES)
      sum = mul_sub(multipliers[q], values[positions[q]], sum);
    return sum;
  }
  // the same of terms in memory
  DEVICE Scalar listed_sum(int r, int lane, int lanes) const {
    return sum_terms(__ldg(terms + r) + lane, __ldg(terms + r + 1), lanes, args.factor, values, [&](long long q) {
      return make_int2(__ldg(args.trailing.place + q), __ldg(args.trailing.position + q));
    });
  }

  // Entries of ranks from .. end - 1, none of which is a term of another; target(r) is the position of the entry of
  // rank r.
  template <int LANES, bool STAGED, class Target> DEVICE void take(int from, int end, Target&& target) const {
    const int lane = threadIdx.x & (LANES - 1), in_warp = (threadIdx.x & 31) / LANES;
    for (int r0 = from + (threadIdx.x >> 5) * (32 / LANES); r0 < end; r0 += blockDim.x / LANES) {
      const int r = r0 + in_warp;
      Scalar sum(0);
      if (r < end) sum = STAGED ? staged_sum<LANES>(r, lane) : listed_sum(r, lane, LANES);
      sum = warp_sum<LANES>(sum);
      if (r < end && lane == 0) values[target(r)] += sum;
    }
  }

  // Many short sums at a time, or few long ones.
  DEVICE void take_staged(int from, int end) const {
    const auto target = [&](int r) { return targets[r - first]; };
    const int entries = end - from, count = begins[end - first] - begins[from - first];
    if (entries * 32 <= (int)blockDim.x || count >= 32 * entries) take<32, true>(from, end, target);
    else take<4, true>(from, end, target);
  }

  DEVICE void solve_upper() {
    int from = __ldg(step);  // entries of depth 0 have no terms
    for (int b = 0, s = 1; b < batches; b++) {
      const int last = __ldg(batch + b);
      wait_for(b);
      const bool staged = stage(from, __ldg(step + last - 1));
      __syncthreads();
      for (; s < last; s++) {
        const int end = __ldg(step + s);
        if (staged) take_staged(from, end);
        else take<32, false>(from, end, [&](int r) { return __ldg(order + r); });
        from = end;
        __syncthreads();
      }
    }
  }

  DEVICE void take_huge() const {
    for (int r = uppers; r < uppers + huge; r++)
      add_block_sum(values + __ldg(order + r), listed_sum(r, threadIdx.x, blockDim.x), partial);
  }

  DEVICE void run() {
    assemble_places<int>(args, begin, threadIdx.x, length, blockDim.x, values);
    __syncthreads();
    solve_upper();
    wait_for(batches);
    take_huge();
    take<8, false>(uppers + huge, length, [&](int r) { return __ldg(order + r); });
    if (!in_shared) return;
    __syncthreads();
    for (int t = threadIdx.x; t < length; t += blockDim.x) args.factor[begin + t] = values[t];
  }
};

}  // namespace
