// Fronts in the shared memory of a block (phases 1 and 2).
//
// Kernels: factor_small (several blocks on a multiprocessor) and factor_blocks (one). Grid: count
// blocks; block k takes start front k and goes on with the parent when it finishes the last of its children of this
// phase. It waits only for children of earlier phases: the kernel may begin before theirs is done, once all blocks of
// that one have begun (programmatic dependent launch), and ends after it. Shared memory: front_shared_bytes(phase, ..).
// While a front is stored, the first entries and items of its parent are loaded. Precondition: counters of the phase
// are zero, and are left so; arrivals count the children of earlier phases, and are left zero. Deterministic: sums are
// in the order of the plan, in any block.
//
// Factor: lower R x W with D = A11^-1 of each panel of 16 columns on its diagonal, X = A21 D below it and, for LU, raw
// A12 above; LU: upper W x H, raw. Contribution block H x H (Cholesky and LDL^T: lower triangle).
#include "fronts/assembly.cuh"
#include "fronts/panels.cuh"

struct BlockMemory {
  Front record[2];  // of this front and of its parent
  int next;         // this block goes on with the parent
  int ready;        // the parent's children of earlier phases are done
  int unused[(FRONT_CONTROL_BYTES - 2 * sizeof(Front)) / sizeof(int) - 2];
  Scalar inverse[PANEL_SCALARS];
};
constexpr int BLOCK_SHARED_BYTES = front_shared_bytes(1, 0, sizeof(Scalar));
static_assert(sizeof(BlockMemory) == BLOCK_SHARED_BYTES, "what the host asks for");

// By THREADS threads.
template <int THREADS> DEVICE void clear_front(Scalar* front, const Front& f, int thread) {
  const int vectors = front_ld(f.rows) * (f.rows + f.partial_count) * (int)sizeof(Scalar) / (int)sizeof(int4);
#pragma unroll 4
  for (int k = thread; k < vectors; k += THREADS) ((int4*)front)[k] = make_int4(0, 0, 0, 0);
}

// Adds the partial columns, which lie after the front, to their columns. Those of one column are consecutive and are
// one task of a warp, for 32 rows.
template <int THREADS> DEVICE void add_partial_sums(const FactorArgs& args, const Front& f, Scalar* front, int ld) {
  const int lane = threadIdx.x & 31, row_tasks = (f.rows + 31) / 32;
  const int target = __ldg(args.partial + f.partial_begin + min(lane, f.partial_count - 1));
  int task = (int)(threadIdx.x >> 5);  // of this warp: rows task % row_tasks, columns task / row_tasks, ..
  const int i = task % row_tasks * 32 + lane, homes = max(THREADS / 32 / row_tasks, 1);
  task /= row_tasks;
  if (task >= homes) return;
  for (int e = 0, number = 0; e < f.partial_count; number++) {
    const int column = shuffle(target, e);
    const bool mine = number % homes == task && i < f.rows;
    Scalar sum = mine ? front[i + column * ld] : Scalar(0);
    do {
      if (mine) sum += front[i + (f.rows + e) * ld];
      e++;
    } while (e < f.partial_count && shuffle(target, e) == column);
    if (mine) front[i + column * ld] = sum;
  }
}

template <int THREADS> DEVICE void factor(const FactorArgs& args) {
  constexpr int N_ENTRIES = sizeof(Scalar) == 16 ? 1 : is_complex ? 2 : 4, N_ITEMS = item_batch(1, sizeof(Scalar));
  const int thread = threadIdx.x, group = thread >> ITEM_ENTRIES_LOG2;
  BlockMemory& memory = *(BlockMemory*)shared_memory;
  Scalar* front = (Scalar*)(shared_memory + BLOCK_SHARED_BYTES);
  const PivotRules rules(args.tiny, args.singular, args.status);
  unsigned multiplier_bits = 0;  // of the largest entry of |X|
  Entries<THREADS, N_ENTRIES> entries;
  Items<N_ITEMS> items;
  int id = __ldg(args.start + blockIdx.x);
  allow_next_kernel();
  {
    const Front* first = args.fronts + id;
    if (thread == 0) memory.ready = 0;
    if (thread < RECORD_VECTORS) ((int4*)memory.record)[thread] = __ldg((const int4*)first + thread);
    __syncthreads();
    entries.find(args, memory.record[0], thread), items.find(args, memory.record[0], group);
    entries.load(args, memory.record[0], thread), items.template load<0>(args), items.template load<1>(args);
    clear_front<THREADS>(front, memory.record[0], thread);
    __syncthreads();
  }
  for (int current = 0;; current ^= 1) {
    const Front &f = memory.record[current], &next = memory.record[current ^ 1];
    const int R = f.rows, ld = front_ld(R), climb = f.climb;
    int4 vector = make_int4(0, 0, 0, 0);
    if (climb >= 0 && thread < RECORD_VECTORS) vector = __ldg((const int4*)(args.fronts + climb) + thread);
    entries.put(f, thread, front, ld);
    add_entries<THREADS, N_ENTRIES>(args, f, thread + THREADS * N_ENTRIES, front, ld);
    if (thread == 0 && f.children > f.pending) {
      while (!memory.ready) memory.ready = load_acquire(args.arrivals + id) == (unsigned)(f.children - f.pending);
      args.arrivals[id] = 0;
    }
    __syncthreads();
    if (f.children > 0) {
      add_items(args, f, items, front, ld);
      __syncthreads();
    }
    if (f.partial_count > 0) {
      add_partial_sums<THREADS>(args, f, front, ld);
      __syncthreads();
    }
    if (thread < RECORD_VECTORS) ((int4*)&memory.record[current ^ 1])[thread] = vector;
    Scalar* lower = args.factor + f.factor;
    eliminate<THREADS>({front, memory.inverse, ld, R, f.width, lower, lower + R * f.width, args.blocks + f.block},
                       rules, multiplier_bits);
    if (climb < 0) {
      __syncthreads();
      if (climb < -1 && thread == 0) add_acquire_release(args.arrivals + (-2 - climb), 1);
      wait_for_previous_kernel();  // so that kernels after this one also run after that one
      break;
    }
    entries.find(args, next, thread), items.find(args, next, group);
    __syncthreads();
    entries.load(args, next, thread), items.template load<0>(args), items.template load<1>(args);
    if (thread == 0) {  // the rest of its warp waits meanwhile, others clear its part of the front
      const bool last = add_acquire_release(args.counters + climb, 1) + 1 == (unsigned)next.pending;
      if (last) args.counters[climb] = 0;
      memory.next = last;
    }
    if (thread == 32) memory.ready = load_acquire(args.arrivals + climb) == (unsigned)(next.children - next.pending);
    if (thread >= 32) clear_front<THREADS - 32>(front, next, thread - 32);
    __syncthreads();
    if (!memory.next) break;
    id = climb;
  }
  report_growth(multiplier_bits, args.status);
}

GPUSPLU_KERNEL(factor_small, FactorArgs, SMALL_FRONT_THREADS, front_blocks(1, is_complex, sizeof(Scalar))) {
  factor<SMALL_FRONT_THREADS>(args);
}
GPUSPLU_KERNEL(factor_blocks, FactorArgs, BLOCK_FRONT_THREADS, front_blocks(2, is_complex, sizeof(Scalar))) {
  factor<BLOCK_FRONT_THREADS>(args);
}
