// Values and vectors of many systems into lanes and out of them, through tiles in shared memory: the caller has a
// system after another, lanes have the systems next to each other.
//
// gather_lanes: entry k of a system is the sum of from[source[p]], source_ptr[k] <= p < source_ptr[k + 1], in this
// order, of the caller's `size` numbers of that system, `stride` apart; a negative source ~p is the conjugate of
// from[p]. Without source_ptr every entry has one source, without source it is its own. Lanes behind the last system
// get its numbers again, so that they meet nothing that is not in the batch. With `reports`: counts values that are NaN
// or Inf. scatter_lanes: back, of two arrays the one that `errors` says is better, and NaN for systems that `reports`
// says have no factor; notes the errors and steps of all right-hand sides in `outcomes`. Grid: groups * ceil(entries /
// MOVED_ENTRIES) blocks of LANE_THREADS. Shared memory: WARP_SIZE * (WARP_SIZE + 1) scalars. Deterministic.
//
// Calls that nobody waits for add what they say to `tallies`: scatter_lanes, where there are such, with the last
// right-hand side; tally_lanes after a refactorization that nothing was solved with, one thread a system.
#include "common/tally.cuh"
#include "lockstep/lanes.cuh"

struct LaneGatherArgs {
  const Scalar* from;
  const long long *source, *source_ptr;
  Scalar* to;
  int count, entries;  // systems; entries of each
  long long size, stride;
  LaneReport* reports;
};

struct LaneScatterArgs {
  const Scalar *from, *other;
  Scalar* to;
  int count, entries;
  long long size, stride;
  const LaneErrors* errors;
  const LaneReport* reports;
  LaneOutcome* outcomes;
  LaneTally* tallies;  // null: the host waits, or there are more right-hand sides
  int first;           // right-hand side of a solve
  int factored;        // the call has factored, too
};

struct LaneTallyArgs {
  const LaneReport* reports;
  LaneTally* tallies;
  int count;
};

constexpr int LD = WARP_SIZE + 1, ROUNDS = WARP_SIZE / LANE_WARPS;

struct Moved {
  int group, begin, end;  // entries of this block
  DEVICE explicit Moved(int entries) {
    const int parts = (entries + MOVED_ENTRIES - 1) / MOVED_ENTRIES;
    group = blockIdx.x / parts, begin = blockIdx.x % parts * MOVED_ENTRIES;
    end = min(entries, begin + MOVED_ENTRIES);
  }
};

DEVICE Scalar source_value(const LaneGatherArgs& args, const Scalar* system, long long p) {
  const long long source = args.source ? args.source[p] : p;
  return source < 0 ? conj(system[~source * args.stride]) : system[source * args.stride];
}

GPUSPLU_KERNEL(gather_lanes, LaneGatherArgs, LANE_THREADS, 4) {
  const Moved moved(args.entries);
  Scalar* tile = (Scalar*)shared_memory;
  Scalar* to = lane_entries(args.to, moved.group, args.entries);
  int bad = 0;
  for (int first = moved.begin; first < moved.end; first += WARP_SIZE) {
    const int entry = min(first + lane_of(), moved.end - 1);
    const auto system = [&](int q) {
      return args.from + min(moved.group * WARP_SIZE + q * LANE_WARPS + warp_of(), args.count - 1) * args.size;
    };
    const long long p = args.source_ptr ? args.source_ptr[entry] : entry;
    Scalar value[ROUNDS];
#pragma unroll
    for (int q = 0; q < ROUNDS; q++) value[q] = source_value(args, system(q), p);
    for (long long r = p + 1; args.source_ptr && r < args.source_ptr[entry + 1]; r++)
#pragma unroll
      for (int q = 0; q < ROUNDS; q++) value[q] += source_value(args, system(q), r);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < ROUNDS; q++) tile[(q * LANE_WARPS + warp_of()) * LD + lane_of()] = value[q];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < ROUNDS; q++) {
      const int k = q * LANE_WARPS + warp_of();
      if (first + k >= moved.end) continue;
      const Scalar v = tile[lane_of() * LD + k];
      to[(long long)(first + k) * WARP_SIZE] = v;
      bad += magnitude_bits(v) >= NAN_BITS;
    }
  }
  if (args.reports && bad) atomicAdd(&args.reports[moved.group * WARP_SIZE + lane_of()].not_finite, bad);
}

// Whether a system has no factor: a value or a pivot is none.
DEVICE bool has_failed(const LaneReport& report) { return report.failed || report.not_finite; }

// Adds what a call says of a system to its tally; `error`: of the solutions of a call that has solved.
DEVICE void add_up(LaneTally* tally, const LaneReport& report, bool factored, bool solved, double error) {
  LaneReport& worst = tally->worst;
  worst.multiplier = max(worst.multiplier, report.multiplier);
  worst.n_perturbed = max(worst.n_perturbed, report.n_perturbed);
  worst.n_tiny = max(worst.n_tiny, report.n_tiny);
  worst.failed = max(worst.failed, report.failed);
  worst.not_finite = max(worst.not_finite, report.not_finite);
  tally->n_factored += factored, tally->n_solved += solved;
  if (solved)
    tally->error = larger(tally->error, has_failed(report) ? __longlong_as_double(0x7ff0000000000000ll) : error);
}

GPUSPLU_KERNEL(scatter_lanes, LaneScatterArgs, LANE_THREADS, 4) {
  const Moved moved(args.entries);
  Scalar* tile = (Scalar*)shared_memory;
  const int own = moved.group * WARP_SIZE + lane_of();
  const LaneErrors& errors = args.errors[own];
  const LaneReport& report = args.reports[own];
  const bool failed = has_failed(report);
  const Scalar none((Real)__longlong_as_double(0x7ff8000000000000ll));
  const Scalar* from = lane_entries(errors.best ? args.other : args.from, moved.group, args.entries);
  for (int first = moved.begin; first < moved.end; first += WARP_SIZE) {
    Scalar value[ROUNDS];
#pragma unroll
    for (int q = 0; q < ROUNDS; q++)
      value[q] = from[(long long)min(first + q * LANE_WARPS + warp_of(), moved.end - 1) * WARP_SIZE];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < ROUNDS; q++) tile[lane_of() * LD + q * LANE_WARPS + warp_of()] = failed ? none : value[q];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < ROUNDS; q++) {
      const int k = q * LANE_WARPS + warp_of(), system = moved.group * WARP_SIZE + k;
      if (first + lane_of() < moved.end && system < args.count)
        args.to[system * args.size + (first + lane_of()) * args.stride] = tile[k * LD + lane_of()];
    }
  }
  if (moved.begin > 0 || warp_of() > 0) return;
  LaneOutcome& outcome = args.outcomes[own];
  outcome.error = args.first ? errors.error : fmax(outcome.error, errors.error);
  outcome.steps = args.first ? errors.steps : max(outcome.steps, errors.steps);
  if (args.tallies) add_up(args.tallies + own, report, args.factored, true, outcome.error);
}

GPUSPLU_KERNEL(tally_lanes, LaneTallyArgs, LANE_THREADS, 4) {
  const int own = blockIdx.x * LANE_THREADS + threadIdx.x;
  if (own < args.count) add_up(args.tallies + own, args.reports[own], true, false, 0);
}
