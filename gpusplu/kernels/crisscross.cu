// U12 and the Schur complement of crisscross LU: what the columns of the dense corner take from those before.
//
// After the sparse kernel has factored the columns before the division. A block owns a column of the corner. Every
// entry is a sum of terms that the plan lists (core/plan/columns/corner_terms.hpp), in a fixed order: bitwise
// repeatable. First come the entries of U12, depth by depth, a warp each, with all they need staged in shared memory,
// so that a depth costs no trip to memory; then all rows of the Schur complement at once, eight lanes each.
//
// Grid: any; block: 256 threads; shared memory: `capacity` bytes, at least 16. A column whose entries have no room
// stays in global memory, terms of U12 that have none are read there.
#include "columns.cuh"

struct CornerArgs {
  const long long* col_ptr;   // of the corner's columns, `count` + 1
  const long long* diag;      // where their rows of the corner begin
  const long long* term_ptr;  // by entry, from the first of the corner's columns on
  const int *place, *position;
  const long long *order_ptr, *level_ptr;
  const int *order, *level;
  const int* source;  // as in SfluArgs
  const double* scale;
  const Scalar* values;
  Scalar* factor;
  int count, capacity;
};

namespace {

constexpr int TOGETHER = 4;

// A column, and U12's part of it where it is read from: shared memory, or the plan's arrays.
struct CornerColumn {
  const CornerArgs& args;
  long long begin;         // place of the column
  const long long* terms;  // of its entries
  int uppers, length, levels;
  const int *order, *level;
  bool in_shared, staged;
  Scalar *values, *multipliers;
  int *positions, *begins, *own_order, *own_level;

  __device__ __forceinline__ CornerColumn(const CornerArgs& a, int c) : args(a), begin(__ldg(a.col_ptr + c)) {
    terms = a.term_ptr + (begin - __ldg(a.col_ptr));
    uppers = (int)(__ldg(a.diag + c) - begin);
    length = (int)(__ldg(a.col_ptr + c + 1) - begin);
    order = a.order + __ldg(a.order_ptr + c);
    const long long first_level = __ldg(a.level_ptr + c);
    level = a.level + first_level;
    levels = (int)(__ldg(a.level_ptr + c + 1) - first_level);
    const long long count = upper_terms(), scalars = length + count, ints = count + 2 * uppers + 1 + levels;
    in_shared = length * (long long)sizeof(Scalar) <= a.capacity;
    staged = scalars * (long long)sizeof(Scalar) + ints * 4 <= a.capacity;
    values = in_shared ? (Scalar*)shared_memory : a.factor + begin;
    multipliers = (Scalar*)shared_memory + length;
    positions = (int*)(multipliers + count);
    begins = positions + count;
    own_order = begins + uppers + 1;
    own_level = own_order + uppers;
  }
  __device__ __forceinline__ long long upper_terms() const { return __ldg(terms + uppers) - __ldg(terms); }

  __device__ __forceinline__ void assemble() const {
    for (int t = threadIdx.x; t < length; t += blockDim.x) {
      const int source = __ldg(args.source + begin + t);
      Scalar value(0);
      if (source >= 0) {
        value = load_constant(args.values + source);
        if (args.scale) value = (Real)__ldg(args.scale + source) * value;
      }
      values[t] = value;
    }
    if (!staged) return;
    const long long first = __ldg(terms);
    const int count = (int)upper_terms();
    for (int q = threadIdx.x; q < count; q += blockDim.x) {
      multipliers[q] = load_constant(args.factor + __ldg(args.place + first + q));
      positions[q] = __ldg(args.position + first + q);
    }
    for (int t = threadIdx.x; t <= uppers; t += blockDim.x) begins[t] = (int)(__ldg(terms + t) - first);
    for (int t = threadIdx.x; t < uppers; t += blockDim.x) own_order[t] = __ldg(order + t);
    for (int l = threadIdx.x; l < levels; l += blockDim.x) own_level[l] = __ldg(level + l);
  }

  // minus the sum of a lane's terms among those of an entry, `LANES` lanes to an entry
  template <int LANES> __device__ __forceinline__ Scalar staged_sum(int t, int lane) const {
    const int end = begins[t + 1];
    Scalar sum(0);
    for (int q = begins[t] + lane; q < end; q += LANES) sum = mul_sub(multipliers[q], values[positions[q]], sum);
    return sum;
  }
  template <int LANES> __device__ __forceinline__ Scalar listed_sum(int t, int lane) const {
    const long long end = __ldg(terms + t + 1);
    Scalar sum(0);
    for (long long q = __ldg(terms + t) + lane; q < end; q += LANES * TOGETHER) {
      Scalar multiplier[TOGETHER];
      int from[TOGETHER];
#pragma unroll
      for (int r = 0; r < TOGETHER; r++)
        if (q + LANES * r < end) {
          multiplier[r] = load_constant(args.factor + __ldg(args.place + q + LANES * r));
          from[r] = __ldg(args.position + q + LANES * r);
        }
#pragma unroll
      for (int r = 0; r < TOGETHER; r++)
        if (q + LANES * r < end) sum = mul_sub(multiplier[r], values[from[r]], sum);
    }
    return sum;
  }

  // Entries entry(i), first <= i < end, none of which is a term of another.
  template <int LANES, bool STAGED, class Entry>
  __device__ __forceinline__ void take(int first, int end, Entry&& entry) const {
    const int lane = threadIdx.x & (LANES - 1), in_warp = (threadIdx.x & 31) / LANES;
    for (int i = first + (threadIdx.x >> 5) * (32 / LANES); i < end; i += blockDim.x / LANES) {
      const bool mine = i + in_warp < end;
      const int t = mine ? entry(i + in_warp) : 0;
      Scalar sum(0);
      if (mine) sum = STAGED ? staged_sum<LANES>(t, lane) : listed_sum<LANES>(t, lane);
#pragma unroll
      for (int step = LANES / 2; step; step /= 2) sum += shuffle_xor(sum, step);
      if (mine && lane == 0) values[t] += sum;
    }
  }

  __device__ __forceinline__ void solve_upper() const {
    for (int l = 1; l < levels; l++) {  // the first depth has no terms
      if (staged) take<32, true>(own_level[l - 1], own_level[l], [&](int i) { return own_order[i]; });
      else take<32, false>(__ldg(level + l - 1), __ldg(level + l), [&](int i) { return __ldg(order + i); });
      __syncthreads();
    }
  }

  __device__ __forceinline__ void run() const {
    assemble();
    __syncthreads();
    solve_upper();
    take<8, false>(uppers, length, [](int t) { return t; });
    if (!in_shared) return;
    __syncthreads();
    for (int t = threadIdx.x; t < length; t += blockDim.x) args.factor[begin + t] = values[t];
  }
};

}  // namespace

GPUSPLU_KERNEL(update_corner, CornerArgs, 256, 2) {
  for (int c = blockIdx.x; c < args.count; c += gridDim.x) {
    CornerColumn(args, c).run();
    __syncthreads();
  }
}
