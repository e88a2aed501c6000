// Column-based right-looking sparse LU on a static pattern, level by level (He, Tan, Wang and Shi, GPU-accelerated
// parallel sparse LU factorization method for fast circuit analysis, IEEE TVLSI 24 (2016); Lee, Achar and Nakhla,
// Dynamic GPU parallel sparse LU factorization for fast circuit simulation, IEEE TVLSI 26 (2018)).
//
// assemble_glu: every place of L + U: the scaled entry of A, or zero. Clears the counters. A thread a place.
// update_levels: cluster mode. One level; block b does chunk begin + b. Adds atomically.
// update_batch: batch mode. A run of levels; blocks take chunks by tickets in the order of the levels and wait until
//   the level before is done. Adds atomically.
// update_pipeline: pipeline mode. Block b processes chain begin + b, column by column, in shared memory; no block waits
//   for another. Entries of later launches are added atomically. Any threads; shared memory: the slots of
//   the largest chain.
// finish_glu: L divided by its pivots; counts small pivots, finds the largest multiplier. GLU_FINISH_THREADS a column.
//
// A block waits for lower tickets only, and draws the next ticket before it works on the current one, so no launch can
// hang for any scheduling of blocks. Block: GLU_THREADS; grid: any. Shared memory: GLU_TICKET_BYTES.
// Not deterministic: with atomic additions sums depend on the order in which they arrive, up to rounding.
//
// While levels are processed, L is not divided by its pivots: column j updates column k by L(i, j) (U(j, k) / U(j, j)),
// so that a level needs one step instead of two, and `finish_glu` divides in the end. Every read replaces pivots that
// are too small, and so does `finish_glu`.
#include "columns/columns.cuh"

struct GluArgs {
  const GluTask* tasks;
  const GluChunk* chunks;
  int begin, end;  // chunks of this launch
  const int* row;
  const unsigned short* map;  // null: positions have to be searched
  Scalar* factor;
  unsigned* ticket;  // batch: zero
  unsigned* done;    // batch: chunks of a level that are done; zero before its run
  double tiny;       // pivots below are replaced [scaled A]
};

struct GluPipeline {
  const GluChain* chains;
  const GluStep* steps;
  const GluUpdate* updates;
  const int* places;
  int begin;  // chain of the first block
  Scalar* factor;
  double tiny;  // pivots below are replaced [scaled A]
};

struct GluAssembly {
  const int* source;    // canonical value of a place, or -1
  const double* scale;  // of canonical values; null: ones
  const Scalar* values;
  Scalar* factor;
  long long count;
  unsigned* counters;
  int counter_count;
};

struct GluFinish {
  const long long *col_ptr, *diag;
  Scalar* factor;
  Status* status;
  double tiny;  // pivots below may mean a singular matrix too
  int n;
};

namespace {

// Where entry e of L(:, j) lands. Without maps: rows of L(:, j) are rows of column k below row j, in the same order, so
// entry e is no earlier than e places after U(j, k), and as many places before the end as entries follow it.
DEVICE long long place_of(const GluArgs& args, const GluTask& task, int e) {
  const long long begin = task.upper - task.offset;
  if (args.map) return begin + __ldg(args.map + task.map + e);
  const int row = __ldg(args.row + task.pivot + 1 + e), last = (int)(task.map - begin) - (task.count - e);
  return begin + find_row(args.row + begin, row, task.offset + 1 + e, last);
}

template <class R> DEVICE void add_atomically(R* to, R v) { atomicAdd(to, v); }
template <class R> DEVICE void add_atomically(Complex<R>* to, Complex<R> v) {
  atomicAdd(&to->re, v.re), atomicAdd(&to->im, v.im);
}

DEVICE void update_atomically(const GluArgs& args, const GluTask& task, const ColumnPivots& pivots, int lane, int lanes,
                              long long first_place) {
  const Scalar pivot = load_l2(args.factor + task.pivot), upper = load_l2(args.factor + task.upper);
  const Scalar* lower = args.factor + task.pivot + 1;
  Scalar value(0);
  if (lane < task.count) value = load_l2(lower + lane);
  const Scalar x = -(upper * pivots.inverse(pivot));
  if (lane < task.count) add_atomically(args.factor + first_place, value * x);
  for (int e = lane + lanes; e < task.count; e += lanes)
    add_atomically(args.factor + place_of(args, task, e), load_l2(lower + e) * x);
}

// The threads' tasks of a chunk; `wait` returns when their operands are final.
template <class Wait> DEVICE void update_chunk(const GluArgs& args, const GluChunk& chunk, Wait&& wait) {
  const ColumnPivots pivots(args.tiny);
  const int lanes = 1 << chunk.lanes_log2, lane = threadIdx.x & (lanes - 1);
  const int at = chunk.begin + (threadIdx.x >> chunk.lanes_log2);
  const bool works = at < chunk.end;
  const GluTask task = load_record(args.tasks + (works ? at : chunk.begin));
  const long long first_place = lane < task.count ? place_of(args, task, lane) : 0;
  wait();
  if (works) update_atomically(args, task, pivots, lane, lanes, first_place);
}

// `update`: slots of L(i, j) (low half) and U(j, k), and where (i, k) is, in its slot or in `factor`.
DEVICE void update_one(Scalar* values, Scalar* factor, int2 update, Scalar inverse, bool later) {
  const Scalar x = -(values[(unsigned)update.x >> 16] * inverse), lower = values[update.x & 0xffff];
  if (later) add_atomically(factor + update.y, lower * x);
  else values[update.y] = mul_add(lower, x, values[update.y]);
}

}  // namespace

GPUSPLU_KERNEL(assemble_glu, GluAssembly, GLU_THREADS, GLU_BLOCKS) {
  const long long step = (long long)gridDim.x * blockDim.x, first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  assemble_places<long long>(args, 0, first, args.count, step, args.factor);
  for (long long c = first; c < args.counter_count; c += step) args.counters[c] = 0;
}

GPUSPLU_KERNEL(update_levels, GluArgs, GLU_THREADS, GLU_BLOCKS) {
  const GluChunk chunk = load_record(args.chunks + args.begin + blockIdx.x);
  update_chunk(args, chunk, [] {});
}

GPUSPLU_KERNEL(update_batch, GluArgs, GLU_THREADS, GLU_BLOCKS) {
  int* ticket = (int*)shared_memory;
  if (threadIdx.x == 0) *ticket = args.begin + (int)atomicAdd(args.ticket, 1u);
  __syncthreads();
  for (int now = *ticket; now < args.end;) {
    int next = 0;
    if (threadIdx.x == 0) next = args.begin + (int)atomicAdd(args.ticket, 1u);
    const GluChunk chunk = load_record(args.chunks + now);
    update_chunk(args, chunk, [&] {
      if (threadIdx.x == 0 && chunk.wait_level >= 0)
        while (load_acquire(args.done + chunk.wait_level) != (unsigned)chunk.wait_chunks) {
        }
      __syncthreads();
    });
    __syncthreads();
    if (threadIdx.x == 0) {
      add_acquire_release(args.done + chunk.level, 1u);
      *ticket = next;
    }
    __syncthreads();
    now = *ticket;
  }
}

GPUSPLU_KERNEL(update_pipeline, GluPipeline, MOST_PIPELINE_THREADS, 1) {
  constexpr int AHEAD = 4;  // updates of a thread that are done together, and known when the ones before are done
  const ColumnPivots pivots(args.tiny);
  Scalar* values = (Scalar*)shared_memory;
  const int2* updates = (const int2*)args.updates;
  const int4* steps = (const int4*)args.steps;                                   // pivot, begin, middle, end
  const int4 chain = __ldg((const int4*)args.chains + args.begin + blockIdx.x);  // steps, places
  const int last = chain.y - 1, slots = chain.w - chain.z, thread = threadIdx.x, threads = blockDim.x;
  if (last < chain.x) return;
  int4 step = __ldg(steps + chain.x), next = __ldg(steps + min(chain.x + 1, last));
  int2 ahead[AHEAD];
  for_all<AHEAD>([&](int r) {
    if (step.y + thread + r * threads < step.w) ahead[r] = __ldg(updates + step.y + thread + r * threads);
  });
  for (int k = thread; k < slots; k += threads) values[k] = load_l2(args.factor + __ldg(args.places + chain.z + k));
  // The updates from `group` on, in exchange for those that follow: the next step's first where the step ends before.
  const auto fetch = [&](int group, int2(&now)[AHEAD]) {
    const bool ends = group + AHEAD * threads >= step.w;
    const int from = (ends ? next.y : group + AHEAD * threads) + thread, end = ends ? next.w : step.w;
    for_all<AHEAD>([&](int r) {
      now[r] = ahead[r];
      if (from + r * threads < end) ahead[r] = __ldg(updates + from + r * threads);
    });
  };
  const auto apply = [&](int group, const int2(&now)[AHEAD], Scalar inverse) {
    for_all<AHEAD>([&](int r) {
      const int at = group + thread + r * threads;
      if (at < step.w) update_one(values, args.factor, now[r], inverse, at >= step.z);
    });
  };
  __syncthreads();
  for (int s = chain.x; s <= last; s++) {
    const int4 after = __ldg(steps + min(s + 2, last));
    int2 now[AHEAD];
    fetch(step.y, now);
    const Scalar inverse = pivots.inverse(values[step.x]);
    apply(step.y, now, inverse);
    for (int group = step.y + AHEAD * threads; group < step.w; group += AHEAD * threads) {
      fetch(group, now);
      apply(group, now, inverse);
    }
    __syncthreads();
    step = next, next = after;
  }
  for (int k = thread; k < slots; k += threads) args.factor[__ldg(args.places + chain.z + k)] = values[k];
}

GPUSPLU_KERNEL(finish_glu, GluFinish, GLU_THREADS, GLU_BLOCKS) {
  constexpr int TOGETHER = GLU_FINISH_THREADS;
  const ColumnPivots pivots(args.tiny);
  const int lane = threadIdx.x % TOGETHER, together = blockDim.x / TOGETHER;
  unsigned multiplier_bits = 0;
  int perturbed = 0, not_finite = 0;
  for (int first = blockIdx.x * together; first < args.n; first += gridDim.x * together) {
    const int k = first + threadIdx.x / TOGETHER;
    const bool is_column = k < args.n;
    const long long diagonal = is_column ? __ldg(args.diag + k) : 0, end = is_column ? __ldg(args.col_ptr + k + 1) : 0;
    const Scalar pivot = args.factor[diagonal];
    const Scalar inverse = pivots.inverse(pivot);
    for (long long p = diagonal + 1 + lane; p < end; p += TOGETHER) {
      const Scalar x = args.factor[p] * inverse;
      args.factor[p] = x;
      multiplier_bits = max(multiplier_bits, magnitude_bits(x));
    }
    __syncwarp();  // all have read the pivot
    if (lane || !is_column) continue;
    not_finite += magnitude_bits(pivot) >= NAN_BITS;
    if (!pivots.small(pivot)) continue;
    perturbed++;
    args.factor[diagonal] = pivots.replaced(pivot);
  }
  if (perturbed) atomicAdd(&args.status->n_perturbed, perturbed), atomicAdd(&args.status->n_tiny, perturbed);
  if (not_finite) atomicAdd(&args.status->not_finite, not_finite);
  report_growth(multiplier_bits, args.status);
}
