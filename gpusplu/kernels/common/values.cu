// Canonical values from the caller's, the check for NaN and Inf, and the largest entry.
//
// gather_values: to[k] = sum of from[source[p]], source_ptr[k] <= p < source_ptr[k + 1], in this order; a negative
// source ~p is the conjugate of from[p]. Without source_ptr every entry has one source, without source it is its own.
// The old values of `to` go to `previous`. Also does the work of check_values, and with `other` compares values that
// have to be conjugates of each other or equal: raises status->asymmetry to the largest modulus of their differences.
// check_values: counts the values of `to` that are NaN or Inf into status->not_finite, and raises status->largest to
// the largest modulus of the others. Grid: any (2048 threads a multiprocessor are best); block: VALUE_THREADS, one
// value each at a time. Shared memory: VALUE_SHARED_BYTES. Precondition: status->not_finite, largest and asymmetry are
// zero, or those of a refactorization that is not resolved yet: its errors are then reported with these.
// Deterministic.
//
// move_arrays: copies one or two arrays, one side of which may be page-locked memory of the host: as a node of a graph
// that is several microseconds faster than a copy. Any grid and block. move_status: a status to the host, and cleared;
// one thread. accumulate_status: adds a status to the accumulated status of deferred calls, and clears it; one thread.
#include "common/accumulate.cuh"
#include "common/reduce.cuh"

struct ValuesArgs {
  const Scalar* from;
  Scalar* to;
  Scalar* previous;                      // null: not kept
  const long long *source, *source_ptr;  // null: see above
  long long count;                       // of canonical values
  // Canonical value k is compared with other[k], or with zero where that is COMPARED_WITH_ZERO, or with none where it
  // is NOT_COMPARED. Null: none is compared.
  const int* other;
  int conjugate;  // they have to be conjugates
  Status* status;
};

DEVICE Scalar source_value(const ValuesArgs& args, long long p) {
  const long long source = args.source ? args.source[p] : p;
  return source < 0 ? conj(args.from[~source]) : args.from[source];
}

DEVICE Scalar canonical_value(const ValuesArgs& args, long long k) {
  if (!args.source_ptr) return source_value(args, k);
  long long p = args.source_ptr[k];
  const long long end = args.source_ptr[k + 1];
  Scalar value = source_value(args, p);
  while (++p < end) value += source_value(args, p);
  return value;
}

// How far value k is from the one that it is compared with; NaN, which no maximum keeps, if one is not finite.
DEVICE double difference_of(const ValuesArgs& args, long long k, Scalar value) {
  const int at = args.other[k];
  if (at == NOT_COMPARED) return 0;
  const Scalar other = at == COMPARED_WITH_ZERO ? Scalar(0) : canonical_value(args, at);
  return modulus(widen(value - (args.conjugate ? conj(other) : other)));
}

template <bool GATHER> DEVICE void values(const ValuesArgs& args) {
  const long long step = (long long)gridDim.x * blockDim.x;
  double largest = 0, asymmetry = 0;
  int bad = 0;
  for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < args.count; k += step) {
    const Scalar value = GATHER ? canonical_value(args, k) : args.to[k];
    if (GATHER && args.other) asymmetry = fmax(asymmetry, difference_of(args, k, value));
    if (GATHER && args.previous) args.previous[k] = args.to[k];
    if (GATHER) args.to[k] = value;
    const double size = modulus(widen(value));
    const bool finite = size <= LARGEST;  // false for NaN
    bad += !finite;
    if (finite) largest = fmax(largest, size);
  }
  join_block(&args.status->largest, block_max(largest, (double*)shared_memory));
  if (GATHER && args.other) join_block(&args.status->asymmetry, block_max(asymmetry, (double*)shared_memory));
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
    for_all<TOGETHER>([&](int r) {
      if (k + r * step < count) values[r] = from[k + r * step];
    });
    for_all<TOGETHER>([&](int r) {
      if (k + r * step < count) to[k + r * step] = values[r];
    });
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

struct AccumulateArgs {
  Status* status;
  AccumulatedStatus* accumulated;
  int factored, solved;  // phases of the call
};

GPUSPLU_KERNEL(accumulate_status, AccumulateArgs, WARP_SIZE, 1) {
  if (threadIdx.x || blockIdx.x) return;
  add_up(args.status, args.accumulated, args.factored, args.solved, -1);
}
