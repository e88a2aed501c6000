// Canonical values from the caller's, the check for NaN and Inf, and the largest entry.
//
// gather_values: to[k] = sum of from[source[p]], source_ptr[k] <= p < source_ptr[k + 1], in this order; a negative
// source ~p is the conjugate of from[p]. Without source_ptr every entry has one source, without source it is its own.
// What `to` held goes to `previous`. Also does what check_values does. check_values: counts the values of `to` that are
// NaN or Inf into status->not_finite, and raises status->largest to the largest modulus of the others. Grid: any (2048
// threads a multiprocessor are best); block: VALUE_THREADS, one value each at a time. Shared memory:
// VALUE_SHARED_BYTES. Precondition: status->not_finite and largest are zero. Deterministic.
//
// move_arrays: copies one or two arrays, one side of which may be page-locked memory of the host: as a node of a graph
// that is several microseconds faster than a copy. Any grid and block. move_status: a status to the host, and cleared;
// one thread. tally_status: a status to the tally of calls that nobody waits for, and cleared; one thread.
#include "common/reduce.cuh"
#include "common/tally.cuh"

struct ValuesArgs {
  const Scalar* from;
  Scalar* to;
  Scalar* previous;                      // null: not kept
  const long long *source, *source_ptr;  // null: see above
  long long count;                       // of canonical values
  Status* status;
};

DEVICE Scalar source_value(const ValuesArgs& args, long long p) {
  const long long source = args.source ? args.source[p] : p;
  return source < 0 ? conj(args.from[~source]) : args.from[source];
}

template <bool GATHER> DEVICE void values(const ValuesArgs& args) {
  const long long step = (long long)gridDim.x * blockDim.x;
  double largest = 0;
  int bad = 0;
  for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < args.count; k += step) {
    Scalar value;
    if (!GATHER) value = args.to[k];
    else if (!args.source_ptr) value = source_value(args, k);
    else {
      long long p = args.source_ptr[k];
      const long long end = args.source_ptr[k + 1];
      value = source_value(args, p);
      while (++p < end) value += source_value(args, p);
    }
    if (GATHER && args.previous) args.previous[k] = args.to[k];
    if (GATHER) args.to[k] = value;
    const double size = modulus(widen(value));
    const bool finite = size <= 1.7976931348623157e308;  // false for NaN
    bad += !finite;
    if (finite) largest = fmax(largest, size);
  }
  largest = block_max(largest, (double*)shared_memory);
  if (threadIdx.x == 0 && largest > 0)
    atomicMax((unsigned long long*)&args.status->largest, (unsigned long long)__double_as_longlong(largest));
  if (bad) atomicAdd(&args.status->not_finite, bad);
}

GPUSPLU_KERNEL(gather_values, ValuesArgs, VALUE_THREADS, 1) { values<true>(args); }
GPUSPLU_KERNEL(check_values, ValuesArgs, VALUE_THREADS, 1) { values<false>(args); }

struct MoveArgs {
  const Scalar *first, *second;
  Scalar *to_first, *to_second;
  long long first_count, second_count;
};

DEVICE void move(const Scalar* from, Scalar* to, long long count) {
  constexpr int TOGETHER = 4;  // loads under way
  const long long step = (long long)gridDim.x * blockDim.x, begin = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (long long k = begin; k < count; k += TOGETHER * step) {
    Scalar values[TOGETHER];
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (k + r * step < count) values[r] = from[k + r * step];
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (k + r * step < count) to[k + r * step] = values[r];
  }
}

GPUSPLU_KERNEL(move_arrays, MoveArgs, VALUE_THREADS, 1) {
  move(args.first, args.to_first, args.first_count);
  move(args.second, args.to_second, args.second_count);
}

struct StatusArgs {
  Status *status, *report;
};

GPUSPLU_KERNEL(move_status, StatusArgs, WARP_SIZE, 1) {
  if (threadIdx.x || blockIdx.x) return;
  *args.report = *args.status;
  *args.status = Status{};
}

struct TallyArgs {
  Status* status;
  Tally* tally;
  int factored, solved;  // what the call did
};

GPUSPLU_KERNEL(tally_status, TallyArgs, WARP_SIZE, 1) {
  if (threadIdx.x || blockIdx.x) return;
  add_up(args.status, args.tally, args.factored, args.solved, -1);
}
