// Forward and backward solves with the fronts of phase 3, one launch each: tasks of TILE rows or columns over the whole
// device.
//
// Forward, a task is one tile of rows: it gathers them, subtracts the panel's columns times the pivots' values as those
// become known (`progress` counts the front's tiles of pivots that are), and for a tile of pivots applies the inverse
// of the diagonal tile. Backward, a task is one tile of columns: it sums them over the tiles of rows from the last one
// up, which is the order in which x becomes known, so that fronts are well under way before their parents are done. LU
// stores U transposed, so L and U are tall panels both:
//   N: forward lower, backward upper and D. T: forward upper and D^T, backward lower.
//   Cholesky: forward L and inv(L_jj), backward L^H and its conjugate transpose, which is what is stored.
// Tiles pass through registers (solve_tile.cuh). Values of one right-hand side come by mail (solve_mail.cuh), so that
// there is no barrier between the tiles of a task; only the last tile of a task is waited for without a pause.
//
// Grid: any number of blocks; block: 256 threads. Shared memory: 16 bytes and LargeScratch<NV, LOADS>::SCALARS scalars.
// Tasks are tickets in topological order (core/plan/solve_schedule.hpp). Preconditions: forward runs after the forward
// solve of phases 0 to 2 and backward before their backward solve; progress is zero at first (each direction clears
// what the other uses). Deterministic.
#include "solve_tile.cuh"

struct LargeSolveFront {
  int width, rows, first, below;
  int parent;        // among the large fronts; -1: root
  int parent_tiles;  // of pivots
  int arrivals;      // tiles of rows below the pivots of its large children
  int reserved;
  long long factor;
};
struct LargeSolveTask {
  int front;  // among the large ones
  int tile;   // forward: of rows, those below the pivots counted on; backward: of columns
};
struct LargeSolveArgs {
  SolveArgs solve;
  const LargeSolveFront* fronts;
  const LargeSolveTask *forward, *backward;
  int forward_count, backward_count;
  int front_count;
  int transposed;      // LU
  unsigned* progress;  // per group and front: pivot tiles forward, arrivals, pivot tiles backward, unused
};

// How a task loads its tiles and, after the last one, the inverse of the diagonal tile.
enum Loads {
  AHEAD,   // a tile during the step before
  BESIDE,  // a tile when it is its turn, the inverse from the start on to shared memory
  IN_TURN  // both when it is their turn
};

template <int NV, Loads LOADS> struct LargeScratch {
  static constexpr int SCALARS = 2 * PARTIAL<NV> + TILE * NV + (LOADS == BESIDE ? TILE * TILE : 0);
  static_assert(Gather<SOLVE_THREADS, NV>::SCALARS <= PARTIAL<NV>);
  Scalar *partial, *second, *y;  // sums over warps: of the tiles, of the product with the inverse
  Rows* inverse;
  __device__ explicit LargeScratch(Scalar* memory)
      : partial(memory),
        second(memory + PARTIAL<NV>),
        y(memory + 2 * PARTIAL<NV>),
        inverse((Rows*)(memory + 2 * PARTIAL<NV> + TILE * NV) + threadIdx.x) {}

  // BESIDE: every thread copies what it takes itself.
  template <bool BY_ROWS> __device__ void copy_inverse(const Scalar* from) const {
    for_rows<BY_ROWS>(from, TILE, 0, 0, TILE - 1, [&](int k, const Scalar* rows) {
      if constexpr (sizeof(Rows) == 8) copy_async8(inverse + k * SOLVE_THREADS, rows, 8);
      else copy_async16(inverse + k * SOLVE_THREADS, rows, 16);
    });
    copy_commit();
  }
  __device__ void take_inverse(Rows (&tile)[COLUMNS]) const {
    copy_wait<0>();
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) tile[k] = inverse[k * SOLVE_THREADS];
  }
};

// What a task knows about its front.
template <int NV> struct LargeTask {
  const LargeSolveArgs& args;
  const SolveArgs& solve;
  LargeSolveFront f;
  int large, tile, group, tiles, tall, below_ld;
  unsigned tag;  // of this direction of this solve
  unsigned* progress;
  Scalar* work;

  __device__ LargeTask(const LargeSolveArgs& args_, LargeSolveTask task, int group_, unsigned tag_)
      : args(args_),
        solve(args_.solve),
        f(args_.fronts[task.front]),
        large(task.front),
        tile(task.tile),
        group(group_),
        tag(tag_) {
    tiles = (f.width + TILE - 1) / TILE;
    tall = f.width + (f.width & 1);
    below_ld = f.rows - f.width + ((f.rows - f.width) & 1);
    progress = args.progress + 4 * ((long long)group * args.front_count + large);
    work = work_of<NV>(solve, group);
  }
  __device__ unsigned* of_parent(int counter) const { return progress + 4 * (f.parent - large) + counter; }
  // Of local row `row`, a pivot.
  __device__ Word* mail(int row) const { return position_mail(solve, f.first + row); }
  // Panels of pivot rows; the rows below follow.
  __device__ const Scalar* panel(bool upper) const {
    return solve.factor + f.factor + (upper ? (long long)(tall + below_ld) * f.width : 0);
  }
  __device__ const Scalar* inverse() const {
    const long long panels = (long long)(tall + below_ld) * f.width * (CHOLESKY ? 1 : 2);
    return solve.factor + f.factor + panels + (long long)tile * TILE * TILE;
  }
};

// The warp waits until *count is at least `least`; returns what it is.
__device__ __forceinline__ int warp_wait(const unsigned* count, int least) {
  int now = 0;
  if ((threadIdx.x & 31) == 0) do
      now = (int)load_acquire(count);
    while (now < least);
  __syncwarp();
  return shuffle(now, 0);
}

// Tiles 0 .. count of a task one after another: load(k, tile) for all but the first, which the caller has loaded, and
// step(k, tile) for k < count. Leaves tile `count`, the inverse, unless that is BESIDE.
template <Loads LOADS, class Load, class Step>
__device__ __forceinline__ void for_tiles(int count, Rows (&tile)[COLUMNS], Load load, Step step) {
#pragma unroll 1
  for (int k = 0; k < count; k++) {
    if constexpr (LOADS == AHEAD) {
      Rows ahead[COLUMNS];
      load(k + 1, ahead);
      step(k, tile);
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) tile[c] = ahead[c];
    } else {
      step(k, tile);
      if (LOADS == IN_TURN || k + 1 < count) load(k + 1, tile);
    }
  }
}

template <int NV, Loads LOADS> __device__ __forceinline__ void forward_tile(const LargeTask<NV>& task, Scalar* memory) {
  const LargeScratch<NV, LOADS> scratch(memory);
  const LargeSolveFront& f = task.f;
  const bool transposed = task.args.transposed, pivots = task.tile < task.tiles;
  const int thread = threadIdx.x, lane = thread & 31, W = f.width;
  const int row0 = pivots ? task.tile * TILE : (task.tile - task.tiles) * TILE;  // in its part of the panel
  const int rows = min(TILE, (pivots ? W : f.rows - W) - row0), columns = pivots ? row0 : W;
  const int count = (columns + TILE - 1) / TILE, ld = pivots ? task.tall : task.below_ld;
  const Scalar* panel = task.panel(transposed) + (pivots ? 0 : (long long)task.tall * W);
  const bool invert = pivots && (CHOLESKY || transposed);
  const auto load = [&](int k, Rows(&to)[COLUMNS]) {
    if (k < count) load_tile<false>(to, panel, ld, row0, k * TILE, W - 1);
    else if (LOADS != BESIDE && invert) load_tile<true>(to, task.inverse(), TILE, 0, 0, TILE - 1);
  };
  Rows tile[COLUMNS];
  load(0, tile);
  if (LOADS == BESIDE && invert) scratch.template copy_inverse<true>(task.inverse());
  // this thread's row, if it has one
  const long long first_row = (long long)f.first + f.below + (pivots ? 0 : W) + row0;
  const int gather_begin = __ldg(task.solve.piece_ptr + first_row);
  const int gather_count = __ldg(task.solve.piece_ptr + first_row + rows) - gather_begin;
  Gather<SOLVE_THREADS, NV> gather;
  gather.start(task.solve, gather_begin, gather_count, first_row + thread, rows - thread);
  Scalar y[NV];
#pragma unroll
  for (int j = 0; j < NV; j++) y[j] = Scalar(0);
  if (pivots) load_b<NV>(task.solve, task.group, f.first + row0 + min(thread, rows - 1), y);
  if (thread == 0 && task.tile == 0) task.progress[2] = 0;
  if (NV > 1 && f.arrivals) {
    warp_wait(task.progress + 1, f.arrivals);
    __syncthreads();
  }
  gather.add(task.solve, gather_begin, gather_count, task.tag, task.group, scratch.partial, y);
  Scalar sum[ROWS][NV];
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int j = 0; j < NV; j++) sum[r][j] = Scalar(0);
  int known = 0;  // pivot tiles
  for_tiles<LOADS>(count, tile, load, [&](int k, Rows(&m)[COLUMNS]) {
    const int first = k * TILE + column_by_columns(0), some = min(COLUMNS, columns - first);  // of this warp
    Scalar v[COLUMNS][NV];
    if constexpr (NV == 1) {
      if (some <= 0) return;
      Scalar one[COLUMNS];
      wait_shared_values<COLUMNS>(task.mail(first), some, task.tag, one, k + 1 < count);
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) v[c][0] = one[c];
    } else {
      if (known <= k) known = warp_wait(task.progress, k + 1);
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        load_values<NV>(task.work + (long long)(f.first + min(first + c, W - 1)) * NV, v[c]);
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
      for (int j = 0; j < NV; j++)
        if (c >= some) v[c][j] = Scalar(0);
    multiply_by_columns<NV>(sum, m, v);
  });
  if (LOADS == BESIDE && invert) scratch.take_inverse(tile);
  give_by_columns<NV>(scratch.partial, sum);
  if (invert && thread < TILE)
#pragma unroll
    for (int j = 0; j < NV; j++) scratch.y[thread * NV + j] = y[j];
  __syncthreads();
  if (invert) {  // y := inverse^H y (LU: ^T)
    const int own = column_by_columns(lane % COLUMNS);
    Scalar x[ROWS][NV], part[COLUMNS][NV];
#pragma unroll
    for (int j = 0; j < NV; j++) {
      const Scalar value = scratch.y[own * NV + j] - sum_of_warps<NV>(scratch.partial, own, j);
#pragma unroll
      for (int r = 0; r < ROWS; r++) x[r][j] = shuffle(own < rows ? value : Scalar(0), (lane & 3) * ROWS + r);
#pragma unroll
      for (int k = 0; k < COLUMNS; k++) part[k][j] = Scalar(0);
    }
    multiply_by_rows<NV>(part, tile, x);
    give_by_rows<NV>(scratch.second, part);
    __syncthreads();
  }
  if (thread < rows) {
#pragma unroll
    for (int j = 0; j < NV; j++)
      y[j] = invert ? sum_of_warps<NV>(scratch.second, thread, j) : y[j] - sum_of_warps<NV>(scratch.partial, thread, j);
    if (NV == 1 && pivots) mail_value(task.mail(row0 + thread), y[0], task.tag);
    if (pivots) store_values<NV>(task.work + (long long)(f.first + row0 + thread) * NV, y);
    else give_place<NV>(task.solve, task.tag, task.group, f.below + row0 + thread, y);
  }
  if constexpr (NV > 1) {
    __syncthreads();
    if (thread == 0) {
      if (pivots) store_release(task.progress, (unsigned)task.tile + 1);
      else if (f.parent >= 0) add_acquire_release(task.of_parent(1), 1u);
    }
  }
}

template <int NV, Loads LOADS>
__device__ __forceinline__ void backward_tile(const LargeTask<NV>& task, Scalar* memory) {
  const LargeScratch<NV, LOADS> scratch(memory);
  const LargeSolveFront& f = task.f;
  const int thread = threadIdx.x, lane = thread & 31, W = f.width, H = f.rows - W;
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
      load_tile<true>(to, panel + (long long)task.tall * W, task.below_ld, first_row(k), column0, W - 1);
    else if (k < count) load_tile<true>(to, panel, task.tall, first_row(k), column0, W - 1);
    else if (LOADS != BESIDE && multiply) load_tile<false>(to, task.inverse(), TILE, 0, 0, TILE - 1);
  };
  int ahead[ROWS];  // plan positions of the lane's rows of the next tile
  const auto look_ahead = [&](int k) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const int row = first_row(k) + row_by_rows() + r;
      ahead[r] = k < below_tiles ? __ldg(task.solve.below + f.below + min(row, H - 1)) : f.first + min(row, W - 1);
    }
  };
  Rows tile[COLUMNS];
  load(0, tile);
  if (LOADS == BESIDE && multiply) scratch.template copy_inverse<false>(task.inverse());
  if (count) look_ahead(0);
  const int own = column_by_columns(lane % COLUMNS);
  Scalar y[NV];
  load_values<NV>(task.work + (long long)(f.first + column0 + min(own, columns - 1)) * NV, y);
  if (thread == 0 && task.tile == task.tiles - 1) task.progress[0] = task.progress[1] = 0;
  if (NV > 1 && f.parent >= 0) warp_wait(task.of_parent(2), f.parent_tiles);
  Scalar part[COLUMNS][NV];
#pragma unroll
  for (int k = 0; k < COLUMNS; k++)
#pragma unroll
    for (int j = 0; j < NV; j++) part[k][j] = Scalar(0);
  int known = 0;  // pivot tiles from the last
  for_tiles<LOADS>(count, tile, load, [&](int k, Rows(&m)[COLUMNS]) {
    int at[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) at[r] = ahead[r];
    if (k + 1 < count) look_ahead(k + 1);
    Scalar x[ROWS][NV];
    if constexpr (NV == 1) {
      const Word* from[ROWS];
      Scalar one[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; r++) from[r] = position_mail(task.solve, at[r]);
      wait_values<ROWS>(from, task.tag, one, k + 1 < count);
#pragma unroll
      for (int r = 0; r < ROWS; r++) x[r][0] = one[r];
    } else {
      const int needed = k - below_tiles + 1;
      if (needed > known) known = warp_wait(task.progress + 2, needed);
#pragma unroll
      for (int r = 0; r < ROWS; r++) load_values<NV>(task.work + (long long)at[r] * NV, x[r]);
    }
    const int rows = (k < below_tiles ? H : W) - first_row(k);
    if (rows < TILE) clear_rows(m, rows);
    multiply_by_rows<NV>(part, m, x);
  });
  if (LOADS == BESIDE && multiply) scratch.take_inverse(tile);
  give_by_rows<NV>(scratch.partial, part);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < NV; j++) {
    y[j] -= sum_of_warps<NV>(scratch.partial, own, j);
    if (own >= columns) y[j] = Scalar(0);
  }
  if (multiply) {  // y := inverse y
    Scalar v[COLUMNS][NV], rest[ROWS][NV];
#pragma unroll
    for (int j = 0; j < NV; j++) {
#pragma unroll
      for (int k = 0; k < COLUMNS; k++) v[k][j] = shuffle(y[j], k);
#pragma unroll
      for (int r = 0; r < ROWS; r++) rest[r][j] = Scalar(0);
    }
    multiply_by_columns<NV>(rest, tile, v);
    give_by_columns<NV>(scratch.second, rest);
    __syncthreads();
  }
  const int column = multiply ? thread : own;
  const bool mine = multiply ? thread < columns : lane < COLUMNS && own < columns;
  if (multiply && mine)
#pragma unroll
    for (int j = 0; j < NV; j++) y[j] = sum_of_warps<NV>(scratch.second, column, j);
  if (mine) give_x<NV>(task.solve, task.tag, task.group, f.first + column0 + column, y);
  if constexpr (NV > 1) {
    __syncthreads();
    if (thread == 0) store_release(task.progress + 2, (unsigned)(task.tiles - task.tile));
  }
  if (mine) store_x<NV>(task.solve, task.group, f.first + column0 + column, y);
}

template <int NV, bool FORWARD, Loads LOADS> __device__ __forceinline__ void large_walk(const LargeSolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + 16);
  unsigned* control = args.solve.control;
  const int count = FORWARD ? args.forward_count : args.backward_count;
  const unsigned tag = tag_of(args.solve, FORWARD);
  for (;;) {
    const int ticket = take_ticket(control + (FORWARD ? LARGE_FORWARD_TICKET : LARGE_BACKWARD_TICKET));
    if (!FORWARD && ticket == count * args.solve.groups) count_solve(args.solve, tag);
    if (ticket >= count * args.solve.groups) return;
    if (ticket == 0 && threadIdx.x == 0) control[FORWARD ? LARGE_BACKWARD_TICKET : LARGE_FORWARD_TICKET] = 0;
    const int position = ticket / args.solve.groups, group = ticket - position * args.solve.groups;
    const LargeTask<NV> task(args, (FORWARD ? args.forward : args.backward)[position], group, tag);
    if (FORWARD) forward_tile<NV, LOADS>(task, memory);
    else backward_tile<NV, LOADS>(task, memory);
  }
}

GPUSPLU_KERNEL(solve_large_forward_1, LargeSolveArgs, SOLVE_THREADS, 3) { large_walk<1, true, BESIDE>(args); }
GPUSPLU_KERNEL(solve_large_forward_4, LargeSolveArgs, SOLVE_THREADS, 2) { large_walk<4, true, IN_TURN>(args); }
GPUSPLU_KERNEL(solve_large_backward_1, LargeSolveArgs, SOLVE_THREADS, 2) { large_walk<1, false, AHEAD>(args); }
GPUSPLU_KERNEL(solve_large_backward_4, LargeSolveArgs, SOLVE_THREADS, 2) { large_walk<4, false, IN_TURN>(args); }
