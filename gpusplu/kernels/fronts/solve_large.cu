// Forward and backward solves with the fronts of phase 3, one launch each: tasks of TILE rows or columns over the whole
// device.
//
// Forward, a task is one tile of rows: it gathers them, subtracts the panel's columns times the pivots' values as those
// become known (`progress` counts the front's tiles of pivots that are), and for a tile of pivots applies the inverse
// of the diagonal tile. Backward, a task is one tile of columns: it sums them over the tiles of rows from the last one
// up, which is the order in which x becomes known, so that fronts are well under way before their parents are done. LU
// stores U transposed, so L and U are tall panels both:
//   N: forward lower, backward upper and D. T: forward upper and D^T, backward lower.
//   Cholesky: forward L and inv(L_jj), backward L^H and its conjugate transpose, which is stored.
//   LDL^T: N of LU, by its kernels.
// Tiles pass through registers (fronts/solve_tile.cuh). Values of one right-hand side come as packets
// (common/exchange.cuh), so that there is no barrier between the tiles of a task; only the last tile of a task is
// waited for without a pause.
//
// Grid: any number of blocks; block: SOLVE_THREADS. Shared memory: SOLVE_TICKET_BYTES and
// large_solve_scalars(TILE, NV).
// Tasks are tickets in topological order (core/plan/fronts/solve_schedule.hpp). Preconditions: forward runs after the
// forward solve of phases 0 to 2 and backward before their backward solve; progress is zero at first (each direction
// clears what the other uses). Deterministic.
#include "fronts/solve_tile.cuh"

struct LargeSolveArgs {
  SolveArgs solve;
  const LargeSolveFront* fronts;
  const LargeSolveTask *forward, *backward;
  int forward_count, backward_count;
  int front_count;
  int transposed;      // LU
  unsigned* progress;  // several right-hand sides, per group and front: tiles that its large children have given
};

// How a task loads its tiles and, after the last one, the inverse of the diagonal tile.
enum Loads {
  AHEAD,       // a tile during the step before
  OVERLAPPED,  // a tile when it is its turn, the inverse from the start on to shared memory
  IN_TURN      // both when it is their turn
};

template <int NV, Loads LOADS> struct LargeScratch {
  static constexpr int SCALARS = (NV == 1 ? 2 : 1) * PARTIAL<NV> + TILE * NV + (LOADS == OVERLAPPED ? TILE * TILE : 0);
  static_assert(Gather<SOLVE_THREADS, NV>::SCALARS <= PARTIAL<NV> && SCALARS <= large_solve_scalars(TILE, NV));
  // Sums over warps; the values from which they are subtracted; sums over warps of the product with the inverse.
  Scalar *partial, *y = partial + PARTIAL<NV>, *second = NV == 1 ? partial + SCALARS - PARTIAL<NV> : partial;
  Rows* inverse = (Rows*)(y + TILE * NV) + threadIdx.x;

  // OVERLAPPED: every thread copies the entries that it uses.
  template <Layout LAYOUT> DEVICE void copy_inverse(const Scalar* from) const {
    for_rows<NV, LAYOUT>(from, TILE, 0, 0, TILE - 1, [&](int k, const Scalar* rows) {
      if constexpr (sizeof(Rows) == 8) copy_async<8>(inverse + k * SOLVE_THREADS, rows, 8);
      else copy_async<16>(inverse + k * SOLVE_THREADS, rows, 16);
    });
    copy_commit();
  }
  DEVICE void take_inverse(Rows (&tile)[COLUMNS]) const {
    copy_wait<0>();
    for_all<COLUMNS>([&](int k) { tile[k] = inverse[k * SOLVE_THREADS]; });
  }
};

// A task, with data of its front.
template <int NV> struct TileTask {
  const LargeSolveArgs& args;
  const Group<NV>& group;
  LargeSolveFront f;
  int tile, tiles, tall, below_ld;
  unsigned *progress, *of_parent;  // arrivals of this front, and of its parent

  DEVICE TileTask(const LargeSolveArgs& args_, const LargeSolveTask& task, const Group<NV>& group_)
      : args(args_), group(group_), f(args_.fronts[task.front]), tile(task.tile) {
    tiles = (f.width + TILE - 1) / TILE;
    tall = f.width + (f.width & 1);
    below_ld = f.rows - f.width + ((f.rows - f.width) & 1);
    unsigned* all = args.progress + (long long)group.number * args.front_count;
    progress = all + task.front, of_parent = all + f.parent;
  }
  // Panels of pivot rows; the rows below follow.
  DEVICE const Scalar* panel(bool upper) const {
    return args.solve.factor + f.factor + (upper ? (long long)(tall + below_ld) * f.width : 0);
  }
  DEVICE const Scalar* inverse() const {
    const long long panels = (long long)(tall + below_ld) * f.width * (CHOLESKY ? 1 : 2);
    return args.solve.factor + f.factor + panels + (long long)tile * TILE * TILE;
  }
};

// Tiles 0 .. count of a task one after another: load(k, tile) for all but the first, which the caller has loaded, and
// step(k, tile) for k < count. Leaves tile `count`, the inverse, unless that is OVERLAPPED.
template <Loads LOADS, class Load, class Step>
DEVICE void for_tiles(int count, Rows (&tile)[COLUMNS], Load load, Step step) {
#pragma unroll 1
  for (int k = 0; k < count; k++) {
    if constexpr (LOADS == AHEAD) {
      Rows ahead[COLUMNS];
      load(k + 1, ahead);
      step(k, tile);
      for_all<COLUMNS>([&](int c) { tile[c] = ahead[c]; });
    } else {
      step(k, tile);
      if (LOADS == IN_TURN || k + 1 < count) load(k + 1, tile);
    }
  }
}

// The lane's values for a product with the inverse: the values at the places less the sums that are subtracted.
template <int NV, Layout LAYOUT, Loads LOADS>
DEVICE void take_values(Scalar (&v)[VALUES<NV, LAYOUT>], const LargeScratch<NV, LOADS>& scratch, int places) {
  const auto value = [&](int place) {
    const Scalar sum = sum_of_warps<NV>(scratch.partial, place, side_of<NV>());
    return place < places ? scratch.y[place * NV + side_of<NV>()] - sum : Scalar(0);
  };
  if constexpr (NV == 1 && LAYOUT == BY_COLUMNS) {
    const Scalar own = value(first_of_warp() + (int)(threadIdx.x & 31) % COLUMNS);
    for_all<COLUMNS>([&](int i) { v[i] = shuffle(own, i); });
  } else {
    for_all<VALUES<NV, LAYOUT>>([&](int i) { v[i] = value(place_of<NV, LAYOUT>(i)); });
  }
  if (NV > 1) __syncthreads();  // `second` is `partial`
}
// scratch.second: the product of these values with the inverse, summed by warps.
template <int NV, Layout LAYOUT, Loads LOADS>
DEVICE void multiply_inverse(const LargeScratch<NV, LOADS>& scratch, const Rows (&inverse)[COLUMNS], int places) {
  Scalar v[VALUES<NV, LAYOUT>];
  take_values<NV, LAYOUT>(v, scratch, places);
  Sums<NV, LAYOUT> product;
  product.add(inverse, v);
  product.give(scratch.second);
  __syncthreads();
}

// Forward: the value of this thread's row of the tile before the panel, b and the children's contributions.
template <int NV>
DEVICE void gather_row(const TileTask<NV>& task, bool pivots, int row0, int rows, Scalar* partial, Scalar (&y)[NV]) {
  const LargeSolveFront& f = task.f;
  const int thread = threadIdx.x;
  const long long first_row = (long long)f.first + f.below + (pivots ? 0 : f.width) + row0;
  const int* chunk_ptr = task.args.solve.chunk_ptr + first_row;
  const int begin = __ldg(chunk_ptr), count = __ldg(chunk_ptr + rows) - begin;
  Gather<SOLVE_THREADS, NV> gather(task.group, begin, count, first_row + thread, rows - thread);
  clear<NV>(y);
  if (pivots) task.group.load_b(f.first + row0 + min(thread, rows - 1), y);
  if (NV > 1 && f.arrivals) wait_until<SOLVE_THREADS>(task.progress, (unsigned)f.arrivals);
  gather.add(partial, y);
}

// Forward: the lane's values of the pivots in the tile of columns from `column` on, of which `left` are still to come.
template <int NV>
DEVICE void wait_pivots(const TileTask<NV>& task, int column, int left, Scalar (&v)[VALUES<NV, BY_COLUMNS>]) {
  constexpr int N = VALUES<NV, BY_COLUMNS>;
  const bool pause = left > TILE;
  if constexpr (NV == 1) {
    const Word* from = task.group.packet(task.f.first + column + first_of_warp(), 0);
    wait_shared_values<N>(from, min(N, left - first_of_warp()), task.group.tag, v, pause);
  } else {
    const Word* from[N];
    for_all<N>([&](int i) {
      from[i] = task.group.packet(task.f.first + column + min(place_of<NV, BY_COLUMNS>(i), left - 1), side_of<NV>());
    });
    wait_values<N>(from, task.group.tag, v, pause);
  }
  for_all<N>([&](int i) {
    if (place_of<NV, BY_COLUMNS>(i) >= left) v[i] = Scalar(0);
  });
}

// Forward: row `row` of the front, a pivot or below.
template <int NV> DEVICE void give_one(const TileTask<NV>& task, bool pivot, int row, int side, Scalar y) {
  const int at = task.f.first + row, place = task.f.below + row - task.f.width;
  const Group<NV>& group = task.group;
  if (pivot || NV == 1) send_value(pivot ? group.packet(at, side) : group.place_packet(place), y, group.tag);
  if (pivot) store_l2(group.work(at) + side, y);
  else if (NV > 1) store_l2(group.vectors(place) + side, y);
}

template <int NV, Loads LOADS> DEVICE void forward_tile(const TileTask<NV>& task, Scalar* memory) {
  const LargeScratch<NV, LOADS> scratch{memory};
  const LargeSolveFront& f = task.f;
  const bool transposed = task.args.transposed, pivots = task.tile < task.tiles;
  const int thread = threadIdx.x, W = f.width;
  const int row0 = pivots ? task.tile * TILE : (task.tile - task.tiles) * TILE;  // in its part of the panel
  const int rows = min(TILE, (pivots ? W : f.rows - W) - row0), columns = pivots ? row0 : W;
  const int count = (columns + TILE - 1) / TILE, ld = pivots ? task.tall : task.below_ld;
  const Scalar* panel = task.panel(transposed) + (pivots ? 0 : (long long)task.tall * W);
  const bool invert = pivots && (CHOLESKY || transposed);
  const auto load = [&](int k, Rows(&to)[COLUMNS]) {
    if (k < count) load_tile<NV, BY_COLUMNS>(to, panel, ld, row0, k * TILE, W - 1);
    else if (LOADS != OVERLAPPED && invert) load_tile<NV, BY_ROWS>(to, task.inverse(), TILE, 0, 0, TILE - 1);
  };
  Rows tile[COLUMNS];
  load(0, tile);
  if (LOADS == OVERLAPPED && invert) scratch.template copy_inverse<BY_ROWS>(task.inverse());
  Scalar y[NV];
  gather_row<NV>(task, pivots, row0, rows, scratch.partial, y);
  const auto share_y = [&] {
    if (thread < TILE) share<NV>(scratch.y + thread * NV, y);
  };
  if (NV > 1) share_y();  // registers; one waits for b no earlier than it is needed
  Sums<NV, BY_COLUMNS> sums;
  for_tiles<LOADS>(count, tile, load, [&](int k, Rows(&m)[COLUMNS]) {
    const int left = columns - k * TILE;
    if (left <= first_of_warp()) return;
    Scalar v[VALUES<NV, BY_COLUMNS>];
    wait_pivots<NV>(task, k * TILE, left, v);
    sums.add(m, v);
  });
  if (LOADS == OVERLAPPED && invert) scratch.take_inverse(tile);
  if (NV == 1) share_y();
  sums.give(scratch.partial);
  __syncthreads();
  if (invert) multiply_inverse<NV, BY_ROWS>(scratch, tile, rows);  // y := inverse^H y (LU: ^T)
  for (int e = thread; e < rows * NV; e += SOLVE_THREADS) {
    const int place = e / NV, side = e % NV;
    give_one<NV>(task, pivots, row0 + place + (pivots ? 0 : W), side,
                 invert ? sum_of_warps<NV>(scratch.second, place, side)
                        : scratch.y[e] - sum_of_warps<NV>(scratch.partial, place, side));
  }
  if constexpr (NV > 1) {
    __syncthreads();
    if (thread == 0 && !pivots && f.parent >= 0) add_acquire_release(task.of_parent, 1u);
  }
}

template <int NV, Loads LOADS> DEVICE void backward_tile(const TileTask<NV>& task, Scalar* memory) {
  const LargeScratch<NV, LOADS> scratch{memory};
  const LargeSolveFront& f = task.f;
  const int thread = threadIdx.x, W = f.width, H = f.rows - W;
  const int column0 = task.tile * TILE, columns = min(TILE, W - column0), below_tiles = (H + TILE - 1) / TILE;
  const bool transposed = task.args.transposed, multiply = CHOLESKY || !transposed;
  const Scalar* panel = task.panel(!CHOLESKY && !transposed);
  // Tiles of rows: those below the pivots, then those of the pivots, both from the last on.
  const int count = below_tiles + task.tiles - 1 - task.tile;
  const auto first_row = [&](int k) {  // in its part of the panel
    return (k < below_tiles ? below_tiles - 1 - k : task.tiles - 1 - (k - below_tiles)) * TILE;
  };
  const auto load = [&](int k, Rows(&to)[COLUMNS]) {
    if (k < below_tiles)
      load_tile<NV, BY_ROWS>(to, panel + (long long)task.tall * W, task.below_ld, first_row(k), column0, W - 1);
    else if (k < count) load_tile<NV, BY_ROWS>(to, panel, task.tall, first_row(k), column0, W - 1);
    else if (LOADS != OVERLAPPED && multiply) load_tile<NV, BY_COLUMNS>(to, task.inverse(), TILE, 0, 0, TILE - 1);
  };
  int ahead[ROWS];  // plan positions of the lane's rows of the next tile
  const auto prefetch = [&](int k) {
    for_all<ROWS>([&](int r) {
      const int row = first_row(k) + place_of<NV, BY_ROWS>(r);
      ahead[r] = k < below_tiles ? __ldg(task.args.solve.below + f.below + min(row, H - 1)) : f.first + min(row, W - 1);
    });
  };
  Rows tile[COLUMNS];
  load(0, tile);
  if (LOADS == OVERLAPPED && multiply) scratch.template copy_inverse<BY_COLUMNS>(task.inverse());
  if (count) prefetch(0);
  constexpr int OWN = (TILE * NV + SOLVE_THREADS - 1) / SOLVE_THREADS;  // minuends of this thread
  Scalar y[OWN];
  for_all<OWN>([&](int q) {
    y[q] = load_l2(task.group.work(f.first + column0) + min(thread + q * SOLVE_THREADS, columns * NV - 1));
  });
  if (thread == 0 && task.tile == task.tiles - 1) *task.progress = 0;
  Sums<NV, BY_ROWS> sums;
  for_tiles<LOADS>(count, tile, load, [&](int k, Rows(&m)[COLUMNS]) {
    const Word* from[ROWS];
    for_all<ROWS>([&](int r) { from[r] = task.group.packet(ahead[r], side_of<NV>()); });
    if (k + 1 < count) prefetch(k + 1);
    Scalar x[ROWS];
    wait_values<ROWS>(from, task.group.tag, x, k + 1 < count);
    const int rows = (k < below_tiles ? H : W) - first_row(k);
    if (rows < TILE) clear_rows(m, rows);
    sums.add(m, x);
  });
  if (LOADS == OVERLAPPED && multiply) scratch.take_inverse(tile);
  for_all<OWN>([&](int q) {
    if (thread + q * SOLVE_THREADS < TILE * NV) scratch.y[thread + q * SOLVE_THREADS] = y[q];
  });
  sums.give(scratch.partial);
  __syncthreads();
  if (multiply) multiply_inverse<NV, BY_COLUMNS>(scratch, tile, columns);  // y := inverse y
  for (int e = thread; e < columns * NV; e += SOLVE_THREADS) {
    const int place = e / NV, side = e % NV, at = f.first + column0 + place;
    const Scalar x = multiply ? sum_of_warps<NV>(scratch.second, place, side)
                              : scratch.y[e] - sum_of_warps<NV>(scratch.partial, place, side);
    send_value(task.group.packet(at, side), x, task.group.tag);
    if constexpr (NV > 1) store_l2(task.group.work(at) + side, x);
    task.group.store_one_x(at, side, x);
  }
}

template <int NV, bool FORWARD, Loads LOADS> DEVICE void large_walk(const LargeSolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + SOLVE_TICKET_BYTES);
  const int count = FORWARD ? args.forward_count : args.backward_count;
  for_tickets<FORWARD, NV>(args.solve, LARGE_FORWARD_TICKET, count, [&](int position, const Group<NV>& group) {
    const TileTask<NV> task(args, (FORWARD ? args.forward : args.backward)[position], group);
    if (FORWARD) forward_tile<NV, LOADS>(task, memory);
    else backward_tile<NV, LOADS>(task, memory);
  });
}

GPUSPLU_KERNEL(solve_large_forward_1, LargeSolveArgs, SOLVE_THREADS, large_solve_blocks(true, 1)) {
  large_walk<1, true, OVERLAPPED>(args);
}
GPUSPLU_KERNEL(solve_large_forward_several, LargeSolveArgs, SOLVE_THREADS, large_solve_blocks(true, SEVERAL)) {
  large_walk<SEVERAL, true, IN_TURN>(args);
}
GPUSPLU_KERNEL(solve_large_backward_1, LargeSolveArgs, SOLVE_THREADS, large_solve_blocks(false, 1)) {
  large_walk<1, false, AHEAD>(args);
}
GPUSPLU_KERNEL(solve_large_backward_several, LargeSolveArgs, SOLVE_THREADS, large_solve_blocks(false, SEVERAL)) {
  large_walk<SEVERAL, false, IN_TURN>(args);
}
