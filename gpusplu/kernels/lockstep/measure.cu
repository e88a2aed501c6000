// r = b - op(A) x in lanes, normwise backward errors (decision 3), and which systems need another step.
//
// Kernel: measure_lanes. Rows of op(A) in compressed rows: for the transposes that is canonical A, for A its transpose,
// with `source` as the canonical value of each entry. A warp sums row after row, long ones a block, products and sums
// in double precision. Blocks join norms, in any order, which does not matter to the largest; the last block of a group
// decides: a solution is kept if it is better than the one before or good enough, and a system goes on while that
// halves its error. With `reports`, systems with replaced pivots take no further step: their solutions are not used.
// Grid: groups * ceil(n / MEASURED_ROWS) blocks of LANE_THREADS. Shared memory: LANE_THREADS * 4 doubles. Precondition:
// norms of `errors` and `done` are zero. Deterministic.
#include "common/reduce.cuh"
#include "lockstep/lanes.cuh"

struct LaneMeasureArgs {
  const long long* ptr;
  const int *ind, *source;  // source null: entry p is value p
  const Scalar *values, *x, *b;
  Scalar* r;
  int n, nnz, groups;
  int conjugate;              // the values
  int step;                   // of refinement; 0: the first solution, which also gets the norm of A
  double enough;              // error below which no step is needed
  const LaneReport* reports;  // null: every system may be refined
  LaneErrors* errors;
  unsigned* done;
  const unsigned* active;  // a word a group, there is something to do, and one for any of them; null in step 0
  unsigned* active_next;   // zero before
};

constexpr int LONG_ROW = 2 * WARP_SIZE;  // entries

struct RowPart {
  Wide product = Wide(0);
  double sum = 0;
};
static_assert(sizeof(RowPart) <= MEASURE_BYTES);

struct Norms {
  double of[4] = {};  // the residual, x, b and A
  DEVICE void join(const double (&other)[4]) {
    for_all<4>([&](int q) { of[q] = fmax(of[q], other[q]); });
  }
};
static_assert(sizeof(Norms) <= MEASURE_BYTES);

// Entries first + WARP_SIZE part, .. of op(A)(row, :) x and of the sum of moduli, WARP_SIZE at a time and WARP_SIZE *
// parts on.
template <bool NORM> DEVICE void add_entries(const LaneMeasureArgs& args, long long first, long long end, int parts,
                                             const Scalar* values, const Scalar* x, Wide& sum, double& row_sum) {
  constexpr int TOGETHER = sizeof(Scalar) == 16 ? 4 : 8;
  for (; first < end; first += WARP_SIZE * parts) {
    const long long mine = min(first + lane_of(), end - 1);
    const int some = (int)min((long long)WARP_SIZE, end - first), column = __ldg(args.ind + mine),
              source = args.source ? __ldg(args.source + mine) : (int)mine;
    for (int k = 0; k < some; k += TOGETHER) {
      Scalar a[TOGETHER], y[TOGETHER];
      for_all<TOGETHER>([&](int q) {
        const int from = min(k + q, some - 1);
        const long long at = (long long)shuffle(source, from) * WARP_SIZE,
                        of = (long long)shuffle(column, from) * WARP_SIZE;
        a[q] = k + q < some ? values[at] : Scalar(0), y[q] = k + q < some ? x[of] : Scalar(0);
      });
      for_all<TOGETHER>([&](int q) {
        const Wide wide = widen(a[q]);
        if (NORM) row_sum += modulus(wide);
        if (k + q < some) sum = mul_add(args.conjugate ? conj(wide) : wide, widen(y[q]), sum);
      });
    }
  }
}

// A row of op(A) x and its sum of moduli.
DEVICE void note_row(const LaneMeasureArgs& args, int group, int row, Wide product, double row_sum, Norms& norms) {
  const long long at = (long long)row * WARP_SIZE;
  const Wide given = widen(lane_entries(args.b, group, args.n)[at]), residual = given - product;
  narrow(residual, lane_entries(args.r, group, args.n)[at]);
  const double x = modulus(widen(lane_entries(args.x, group, args.n)[at]));
  norms.join({or_infinite(modulus(residual)), x, modulus(given), row_sum});
}

// This block's rows of this lane, `step` apart, so that no block has all of the long ones if they are neighbours: all
// warps process these, and their sums are joined in the order of the warps. `parts`: a product and a sum of every
// thread.
template <bool NORM>
DEVICE Norms measure_rows(const LaneMeasureArgs& args, int group, int begin, int step, RowPart* parts) {
  const Scalar *values = lane_entries(args.values, group, args.nnz), *x = lane_entries(args.x, group, args.n);
  long long ptr[MEASURED_ROWS / WARP_SIZE];  // of rows, one a lane
  int length[MEASURED_ROWS / WARP_SIZE];     // -1: there is none
  for_all<MEASURED_ROWS / WARP_SIZE>([&](int q) {
    const int row = begin + (q * WARP_SIZE + lane_of()) * step, given = min(row, args.n - 1);
    ptr[q] = __ldg(args.ptr + given);
    length[q] = row < args.n ? (int)(__ldg(args.ptr + given + 1) - ptr[q]) : -1;
  });
  Norms norms;
#pragma unroll
  for (int q = 0; q < MEASURED_ROWS / WARP_SIZE; q++)
#pragma unroll 1
    for (int k = warp_of(); k < WARP_SIZE; k += LANE_WARPS) {
      const long long first = shuffle(ptr[q], k);
      const int count = shuffle(length[q], k);
      if (count < 0 || count > LONG_ROW) continue;
      RowPart part;
      add_entries<NORM>(args, first, first + count, 1, values, x, part.product, part.sum);
      note_row(args, group, begin + (q * WARP_SIZE + k) * step, part.product, part.sum, norms);
    }
#pragma unroll
  for (int q = 0; q < MEASURED_ROWS / WARP_SIZE; q++)
    for (unsigned rest = __ballot_sync(~0u, length[q] > LONG_ROW); rest; rest &= rest - 1) {
      const int k = __ffs(rest) - 1;
      const long long first = shuffle(ptr[q], k), last = first + shuffle(length[q], k);
      RowPart part;
      add_entries<NORM>(args, first + warp_of() * WARP_SIZE, last, LANE_WARPS, values, x, part.product, part.sum);
      __syncthreads();
      parts[threadIdx.x] = part;
      __syncthreads();
      if (warp_of() != k % LANE_WARPS) continue;
      RowPart whole = parts[lane_of()];
      for (int w = 1; w < LANE_WARPS; w++) {
        whole.product += parts[w * WARP_SIZE + lane_of()].product;
        whole.sum += parts[w * WARP_SIZE + lane_of()].sum;
      }
      note_row(args, group, begin + (q * WARP_SIZE + k) * step, whole.product, whole.sum, norms);
    }
  __syncthreads();
  return norms;
}

// By a lane of the last block: decides whether its system goes on.
DEVICE bool decide(const LaneMeasureArgs& args, LaneErrors& errors, const LaneReport* report) {
  const double r = __ldcg(&errors.residual), x = __ldcg(&errors.x_norm), b = __ldcg(&errors.b_norm),
               a = __ldcg(&errors.a_norm);
  const double error = backward_error(r, a, x, b);
  errors.residual = errors.x_norm = errors.b_norm = 0;
  if (args.step == 0) {
    errors.error = error, errors.best = errors.steps = 0;
    errors.active = !(error <= args.enough) && !(report && (report->n_perturbed || report->not_finite));
  } else if (errors.active) {
    const bool better = error < fmax(errors.error, args.enough);
    errors.active = better && error > args.enough && error < 0.5 * errors.error;
    if (better) errors.error = error, errors.best = args.step & 1, errors.steps = args.step;
  }
  return errors.active;
}

GPUSPLU_KERNEL(measure_lanes, LaneMeasureArgs, LANE_THREADS, sizeof(Scalar) == 16 ? 2 : 3) {
  const int parts = (args.n + MEASURED_ROWS - 1) / MEASURED_ROWS, group = blockIdx.x / parts,
            begin = blockIdx.x % parts;
  if (args.active && !(args.active[args.groups] && args.active[group])) return;
  RowPart* row_parts = (RowPart*)shared_memory;
  const Norms norms = args.step ? measure_rows<false>(args, group, begin, parts, row_parts)
                                : measure_rows<true>(args, group, begin, parts, row_parts);
  Norms* shared = (Norms*)shared_memory;
  shared[threadIdx.x] = norms;
  __syncthreads();
  if (warp_of() > 0) return;
  Norms largest = norms;
  for (int w = 1; w < LANE_WARPS; w++) largest.join(shared[w * WARP_SIZE + lane_of()].of);
  LaneErrors& errors = args.errors[group * WARP_SIZE + lane_of()];
  double* const norms_of[4] = {&errors.residual, &errors.x_norm, &errors.b_norm, &errors.a_norm};
  for_all<4>([&](int q) { raise_to(norms_of[q], largest.of[q]); });
  __threadfence();
  __syncwarp();
  unsigned before = 0;
  if (lane_of() == 0) before = add_acquire_release(args.done + group, 1u);
  if (shuffle((int)before, 0) != parts - 1) return;
  __threadfence();
  const LaneReport* report = args.reports ? args.reports + group * WARP_SIZE + lane_of() : nullptr;
  const bool goes_on = __any_sync(~0u, decide(args, errors, report));
  if (lane_of() == 0 && goes_on) args.active_next[group] = args.active_next[args.groups] = 1;
}
