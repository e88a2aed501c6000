// Values and vectors of many systems into lanes and out of them, through tiles in shared memory: the caller has a
// system after another, lanes have the systems next to each other.
//
// gather_lanes: entry k of a system is from[source[k]] of the caller's `size` numbers of that system (without source
// from[k]), `stride` apart. Lanes after the last system get its numbers again, so that they hold only values of the
// batch. With `reports`: counts values that are NaN or Inf and, if `sizes`, records the largest modulus of the others.
// compare_lanes, after it: of pairs of values that have to be conjugates the largest modulus of a difference; the
// second may be COMPARED_WITH_ZERO. Grid: groups * ceil(count / MOVED_ENTRIES) blocks of LANE_THREADS.
// scatter_lanes: back, of two arrays the better one by `errors`; records the errors and steps of all right-hand sides
// in `outcomes`. Grid: groups * ceil(entries / MOVED_ENTRIES) blocks of LANE_THREADS. Shared memory: WARP_SIZE *
// (WARP_SIZE + 1) scalars. Deterministic.
//
// copy_systems: values of some systems out of lanes, each system's contiguous, for the host. Block k * parts + part,
// with parts = ceil(entries / LANE_THREADS), owns LANE_THREADS consecutive entries of systems[k]. Grid: systems * parts
// blocks of LANE_THREADS. No shared memory. Precondition: systems[k] < 32 * groups. Deterministic.
//
// accumulate_lanes, after a deferred call: adds the status of every system to its accumulated status, and overwrites
// the solutions of systems without a factor with NaN. A block of LANE_THREADS a system.
#include "common/accumulate.cuh"
#include "common/reduce.cuh"
#include "lockstep/lanes.cuh"

struct LaneGatherArgs {
  const Scalar* from;
  const long long* source;
  Scalar* to;
  int count, entries;  // systems; entries of each
  long long size, stride;
  LaneReport* reports;
  int sizes;
};

struct LaneCompareArgs {
  const Scalar* values;
  const int2* pairs;
  int count, entries;  // pairs; entries of a system
  LaneReport* reports;
};

struct LaneScatterArgs {
  const Scalar *from, *other;
  Scalar* to;
  int count, entries;
  long long size, stride;
  const LaneErrors* errors;
  LaneOutcome* outcomes;
  int first;  // right-hand side of a solve
};

constexpr int LD = WARP_SIZE + 1, ROUNDS = WARP_SIZE / LANE_WARPS;

struct EntryRange {
  int group, begin, end;  // entries of this block
  DEVICE explicit EntryRange(int entries) {
    const int parts = (entries + ENTRIES_PER_BLOCK - 1) / ENTRIES_PER_BLOCK;
    group = blockIdx.x / parts, begin = blockIdx.x % parts * ENTRIES_PER_BLOCK;
    end = min(entries, begin + ENTRIES_PER_BLOCK);
  }
};

GPUSPLU_KERNEL(gather_lanes, LaneGatherArgs, LANE_THREADS, 4) {
  const EntryRange range(args.entries);
  Scalar* tile = (Scalar*)shared_memory;
  Scalar* to = lane_entries(args.to, range.group, args.entries);
  int bad = 0;
  double largest = 0;
  for (int first = range.begin; first < range.end; first += WARP_SIZE) {
    const int entry = min(first + lane_of(), range.end - 1);
    const long long at = (args.source ? args.source[entry] : entry) * args.stride;
    Scalar value[ROUNDS];
    for_all<ROUNDS>([&](int q) {
      const int system = min(range.group * WARP_SIZE + q * LANE_WARPS + warp_of(), args.count - 1);
      value[q] = args.from[system * args.size + at];
    });
    __syncthreads();
    for_all<ROUNDS>([&](int q) { tile[(q * LANE_WARPS + warp_of()) * LD + lane_of()] = value[q]; });
    __syncthreads();
    for_all<ROUNDS>([&](int q) {
      const int k = q * LANE_WARPS + warp_of();
      if (first + k >= range.end) return;
      const Scalar v = tile[lane_of() * LD + k];
      to[(long long)(first + k) * WARP_SIZE] = v;
      const bool finite = magnitude_bits(v) < NAN_BITS;
      bad += !finite;
      if (args.sizes && finite) largest = fmax(largest, modulus(widen(v)));
    });
  }
  if (!args.reports) return;
  LaneReport& report = args.reports[range.group * WARP_SIZE + lane_of()];
  if (bad) atomicAdd(&report.not_finite, bad);
  raise_to(&report.largest, largest);
}

GPUSPLU_KERNEL(compare_lanes, LaneCompareArgs, LANE_THREADS, 4) {
  const EntryRange range(args.count);
  const Scalar* values = lane_entries(args.values, range.group, args.entries);
  double asymmetry = 0;
#pragma unroll 4
  for (int k = range.begin + warp_of(); k < range.end; k += LANE_WARPS) {
    const int2 pair = __ldg(args.pairs + k);
    const Scalar one = values[(long long)pair.x * WARP_SIZE];
    const Scalar other = pair.y == COMPARED_WITH_ZERO ? Scalar(0) : values[(long long)pair.y * WARP_SIZE];
    asymmetry = fmax(asymmetry, modulus(widen(one - conj(other))));
  }
  raise_to(&args.reports[range.group * WARP_SIZE + lane_of()].asymmetry, asymmetry);
}

GPUSPLU_KERNEL(scatter_lanes, LaneScatterArgs, LANE_THREADS, 4) {
  const EntryRange range(args.entries);
  Scalar* tile = (Scalar*)shared_memory;
  const LaneErrors& errors = args.errors[range.group * WARP_SIZE + lane_of()];
  const Scalar* from = lane_entries(errors.best ? args.other : args.from, range.group, args.entries);
  for (int first = range.begin; first < range.end; first += WARP_SIZE) {
    Scalar value[ROUNDS];
    for_all<ROUNDS>(
        [&](int q) { value[q] = from[(long long)min(first + q * LANE_WARPS + warp_of(), range.end - 1) * WARP_SIZE]; });
    __syncthreads();
    for_all<ROUNDS>([&](int q) { tile[lane_of() * LD + q * LANE_WARPS + warp_of()] = value[q]; });
    __syncthreads();
    for_all<ROUNDS>([&](int q) {
      const int k = q * LANE_WARPS + warp_of(), system = range.group * WARP_SIZE + k;
      if (first + lane_of() < range.end && system < args.count)
        args.to[system * args.size + (first + lane_of()) * args.stride] = tile[k * LD + lane_of()];
    });
  }
  if (range.begin > 0 || warp_of() > 0) return;
  LaneOutcome& outcome = args.outcomes[range.group * WARP_SIZE + lane_of()];
  outcome.error = args.first ? errors.error : fmax(outcome.error, errors.error);
  outcome.steps = args.first ? errors.steps : max(outcome.steps, errors.steps);
}

struct LaneCopyArgs {
  const Scalar* from;
  const int* systems;
  Scalar* to;  // of system systems[k] from k * entries on
  int entries;
};

GPUSPLU_KERNEL(copy_systems, LaneCopyArgs, LANE_THREADS, 4) {
  const int parts = (args.entries + LANE_THREADS - 1) / LANE_THREADS, k = blockIdx.x / parts;
  const int entry = blockIdx.x % parts * LANE_THREADS + threadIdx.x, system = args.systems[k];
  if (entry >= args.entries) return;
  const long long line = (long long)(system / WARP_SIZE) * args.entries + entry;
  args.to[(long long)k * args.entries + entry] = args.from[line * WARP_SIZE + system % WARP_SIZE];
}

struct AccumulateLanesArgs {
  const LaneReport* reports;
  const LaneOutcome* outcomes;
  AccumulatedLaneStatus* accumulated;
  Scalar* x;       // solutions, a system after another; null: nothing was solved
  long long size;  // of those of a system
  int factored;    // the call has factored
};

// Adds the status of a system in a call to its accumulated status; `error`: of the solutions of a call that has solved.
DEVICE void add_up(AccumulatedLaneStatus* accumulated, const LaneReport& report, bool factored, bool solved,
                   double error) {
  LaneReport& worst = accumulated->worst;
  worst.multiplier = max(worst.multiplier, report.multiplier);
  worst.n_perturbed = max(worst.n_perturbed, report.n_perturbed);
  worst.n_tiny = max(worst.n_tiny, report.n_tiny);
  worst.failed = max(worst.failed, report.failed);
  worst.not_finite = max(worst.not_finite, report.not_finite);
  worst.asymmetric |= is_asymmetric(report.asymmetry, report.largest);
  accumulated->n_factored += factored, accumulated->n_solved += solved;
  if (solved) accumulated->error = larger(accumulated->error, error);
}

GPUSPLU_KERNEL(accumulate_lanes, AccumulateLanesArgs, LANE_THREADS, 4) {
  const int system = blockIdx.x;
  const LaneReport& report = args.reports[system];
  const bool failed =  // a value or a pivot is not finite, or the matrix is not Hermitian
      report.failed || report.not_finite || is_asymmetric(report.asymmetry, report.largest);
  if (threadIdx.x == 0) {
    const double error = failed ? infinity() : args.outcomes[system].error;
    add_up(args.accumulated + system, report, args.factored, args.x, error);
  }
  if (!failed || !args.x) return;
  const Scalar none((Real)__longlong_as_double(0x7ff8000000000000ll));
  for (long long k = threadIdx.x; k < args.size; k += LANE_THREADS) args.x[system * args.size + k] = none;
}
