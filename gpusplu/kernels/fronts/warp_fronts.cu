// Fronts of at most 16 rows (phase 0), one by one in a warp: assembled in shared memory, eliminated in registers.
//
// Kernel: factor_warps. Grid: ceil(count / 4) blocks of WARP_FRONT_THREADS; warp k takes start front k and goes on with
// the parent when it finishes the last of its children, so no warp waits; a parent of a later phase gets an arrival
// counted. Shared memory: front_shared_bytes(0, ..). While a front is eliminated and stored, the record, first entries
// and first items of its parent are loaded. Precondition: counters of the phase are zero, and are left so.
// Deterministic: sums are in the order of the plan, in any warp.
//
// Factor: lower R x W = [D; X], X = A21 D; LU: upper W x H = D A12. Contribution block H x H (Cholesky and LDL^T: lower
// triangle).
#include "fronts/assembly.cuh"
#include "fronts/gauss_jordan.cuh"

struct WarpMemory {
  Front record[2];  // of this front and of its parent
  Scalar front[PANEL_SCALARS];
};
static_assert(WARP_FRONTS * sizeof(WarpMemory) == front_shared_bytes(0, 0, sizeof(Scalar)), "what the host asks for");

DEVICE void clear_front(Scalar* front) {
  const int lane = threadIdx.x & 31;
  for_all<(int)(PANEL_SCALARS * sizeof(Scalar) / sizeof(int4)) / 32 + 1>([&](int k) {
    if (k * 32 + lane < (int)(PANEL_SCALARS * sizeof(Scalar) / sizeof(int4)))
      ((int4*)front)[k * 32 + lane] = make_int4(0, 0, 0, 0);
  });
}

DEVICE void load_block(const Scalar* front, Scalar (&a)[2][4]) {
  const int lane = threadIdx.x & 31, row = lane >> 2, column = lane & 3;
  for_all<2, 4>([&](int i, int q) {
    const int r = row + 8 * i, c = column + 4 * q;
    if constexpr (ONE_TRIANGLE) {
      const Scalar x = front[max(r, c) + min(r, c) * PANEL_LD];
      a[i][q] = r < c ? mirrored(x) : x;
    } else {
      a[i][q] = front[r + c * PANEL_LD];
    }
  });
}

DEVICE void store_block(const FactorArgs& args, const Front& f, const Scalar (&a)[2][4], const Places& places) {
  const int R = f.rows, W = f.width, H = R - W;
  unsigned multiplier_bits = 0;  // of the largest entry of |X|
  Scalar *lower = args.factor + f.factor, *upper = lower + R * W, *block = args.blocks + f.block;
  for_all<2, 4>([&](int i, int q) {
    const int r = places.row[i], c = places.column(q);
    const bool left = c < W, top = r < W, multiplier = left && !top;
    Scalar* to = left ? lower + (r + c * R) : top ? upper + (r + (c - W) * W) : block + ((r - W) + (c - W) * H);
    if (LDLT && left && top) store_mirrored(lower, R, r, c, a[i][q]);
    else if (r < R && c < R && (!ONE_TRIANGLE || left || (!top && r >= c)))
      store_l2(to, multiplier ? -a[i][q] : a[i][q]);
    if (multiplier && r < R) multiplier_bits = max(multiplier_bits, magnitude_bits(a[i][q]));
  });
  report_growth(multiplier_bits, args.status);
}

GPUSPLU_KERNEL(factor_warps, FactorArgs, WARP_FRONT_THREADS, front_blocks(0, is_complex, sizeof(Scalar))) {
  constexpr int N_ENTRIES = 2, N_ITEMS = item_batch(0, sizeof(Scalar));
  const int lane = threadIdx.x & 31, id = blockIdx.x * WARP_FRONTS + (threadIdx.x >> 5),
            group = lane >> ITEM_ENTRIES_LOG2;
  allow_next_kernel();
  if (id >= args.count) return;
  WarpMemory& memory = ((WarpMemory*)shared_memory)[threadIdx.x >> 5];
  const PivotRules rules(args.tiny, args.singular, args.status);
  Entries<32, N_ENTRIES> entries;
  Items<N_ITEMS> items;
  {
    const Front* first = args.fronts + __ldg(args.start + id);
    if (lane < RECORD_VECTORS) ((int4*)memory.record)[lane] = __ldg((const int4*)first + lane);
    clear_front(memory.front);
    __syncwarp();
    entries.find(args, memory.record[0], lane), items.find(args, memory.record[0], group);
    entries.load(args, memory.record[0], lane), items.load<0>(args), items.load<1>(args);
  }
  for (int current = 0;; current ^= 1) {
    const Front &f = memory.record[current], &next = memory.record[current ^ 1];
    const int climb = f.climb;
    int4 vector = make_int4(0, 0, 0, 0);
    if (climb >= 0 && lane < RECORD_VECTORS) vector = __ldg((const int4*)(args.fronts + climb) + lane);
    entries.put(f, lane, memory.front, PANEL_LD);
    for (int first = lane + 32 * N_ENTRIES; first - lane < f.entry_count; first += 32 * N_ENTRIES) {
      entries.find(args, f, first), entries.load(args, f, first);
      entries.put(f, first, memory.front, PANEL_LD);
    }
    __syncwarp();
    add_items(args, f, items, memory.front, PANEL_LD);
    if (lane < RECORD_VECTORS) ((int4*)&memory.record[current ^ 1])[lane] = vector;
    __syncwarp();
    Scalar a[2][4];
    load_block(memory.front, a);
    __syncwarp();
    clear_front(memory.front);
    const Places places = gauss_jordan(a, f.width, rules);
    entries.find(args, next, lane), items.find(args, next, group);  // no-op without a parent
    store_block(args, f, a, places);
    __syncwarp();
    if (climb < 0) {
      if (climb < -1 && lane == 0) add_acquire_release(args.arrivals + (-2 - climb), 1);
      break;
    }
    unsigned done = 0;
    if (lane == 0) done = add_acquire_release(args.counters + climb, 1) + 1;
    entries.load(args, next, lane), items.load<0>(args), items.load<1>(args);
    const bool last = shuffle((int)done, 0) == next.pending;
    if (last && lane == 0) args.counters[climb] = 0;
    if (!last) break;
  }
}
