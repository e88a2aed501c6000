// Forward and backward solves with the fronts of phase 3, one launch each: tasks of TILE rows or columns over the whole
// device.
//
// Forward, a task is one tile of rows: it gathers them, subtracts the panel's columns times the pivots' values as those
// become known (`progress` counts the front's tiles of pivots that are), and for a tile of pivots applies the inverse
// of the diagonal tile. Backward, a task is one tile of columns: it sums them over the rows below, then over the tiles
// of pivots from the last. LU stores U transposed, so L and U are tall panels both:
//   N: forward lower, backward upper and D. T: forward upper and D^T, backward lower.
//   Cholesky: forward L and inv(L_jj), backward L^H and its conjugate transpose, which is what is stored.
// A warp has 1/8 of a tile's columns, a lane one or two neighbouring rows; 16-byte loads. Forward, three blocks a
// multiprocessor keep enough of them under way; backward, one that loads a tile ahead does better (elasticity with 200
// thousand unknowns on an H200: 1.4 ms against 1.6 with one and 2.5 with three that do not). Values of pivots are
// polled for by every warp, so there is no barrier between the tiles of a task; those of one right-hand side come by
// mail (solve_mail.cuh), which halves the time from tile to tile.
//
// Grid: any number of blocks; block: 256 threads. Shared memory: 16 bytes and LargeScratch<NV>::SCALARS scalars.
// Tasks are tickets in topological order (core/plan/solve_schedule.hpp). Preconditions: forward runs after the forward
// solve of phases 0 to 2 and backward before their backward solve; progress is zero at first (each direction clears
// what the other uses). Deterministic.
#include "large_shape.cuh"
#include "solve.cuh"

constexpr int TILE = large_shape((int)sizeof(Scalar), false).tile;
constexpr int WARPS = SOLVE_THREADS / 32, COLUMNS = TILE / WARPS, ROWS = TILE / 32;

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

struct Rows {
  Scalar at[ROWS];
};
__device__ __forceinline__ Rows load_rows(const Scalar* p) {
  Rows r;
#if defined(SCALAR_f)
  const float2 v = __ldg((const float2*)p);
  r.at[0] = v.x, r.at[1] = v.y;
#elif defined(SCALAR_F)
  const float4 v = __ldg((const float4*)p);
  r.at[0] = {v.x, v.y}, r.at[1] = {v.z, v.w};
#elif defined(SCALAR_D)
  r.at[0] = load_constant(p);
#else
  const double2 v = __ldg((const double2*)p);
  r.at[0] = v.x, r.at[1] = v.y;
#endif
  return r;
}

template <int NV> struct LargeScratch {
  static constexpr int PARTIAL =
      Gather<SOLVE_THREADS, NV>::SCALARS > TILE* WARPS* NV ? Gather<SOLVE_THREADS, NV>::SCALARS : TILE* WARPS* NV;
  static constexpr int SCALARS = TILE * TILE + PARTIAL + TILE * NV;
  Scalar *inverse, *partial, *v;
  __device__ explicit LargeScratch(Scalar* memory)
      : inverse(memory), partial(memory + TILE * TILE), v(memory + TILE * TILE + PARTIAL) {}
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
  __device__ void copy_inverse(Scalar* to) const {
    const long long panels = (long long)(tall + below_ld) * f.width * (CHOLESKY ? 1 : 2);
    const char* from = (const char*)(solve.factor + f.factor + panels + (long long)tile * TILE * TILE);
    constexpr int step = sizeof(Scalar) < 8 ? 8 : 16;  // the inverse starts at an even scalar
    for (int k = step * threadIdx.x; k < (int)(TILE * TILE * sizeof(Scalar)); k += step * SOLVE_THREADS) {
      if constexpr (step == 8) copy_async8((char*)to + k, from + k, 8);
      else copy_async16((char*)to + k, from + k, 16);
    }
    copy_commit();
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

// The warp's columns of a tile, from `column` on, those behind the last one replaced by it.
__device__ __forceinline__ void load_columns(Rows (&m)[COLUMNS], const Scalar* rows, int ld, int column, int last) {
  const Scalar* from = rows + (long long)min(column, last) * ld;
#pragma unroll
  for (int k = 0; k < COLUMNS; k++) {
    m[k] = load_rows(from);
    if (column + k < last) from += ld;
  }
}

template <int NV> __device__ __forceinline__ void forward_tile(const LargeTask<NV>& task, Scalar* memory) {
  const LargeScratch<NV> scratch(memory);
  const LargeSolveFront& f = task.f;
  const bool transposed = task.args.transposed, pivots = task.tile < task.tiles;
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, W = f.width;
  const int row0 = pivots ? task.tile * TILE : (task.tile - task.tiles) * TILE;  // in its part of the panel
  const int rows = min(TILE, (pivots ? W : f.rows - W) - row0), columns = pivots ? row0 : W;
  const int ld = pivots ? task.tall : task.below_ld;
  const Scalar* panel =
      task.panel(transposed) + (pivots ? 0 : (long long)task.tall * W) + row0 + min(lane * ROWS, ld - row0 - ROWS);
  const bool invert = pivots && (CHOLESKY || transposed);
  Rows m[COLUMNS];
  const auto load = [&](int from) { load_columns(m, panel, ld, from + warp * COLUMNS, W - 1); };
  if (columns) load(0);
  if (invert) task.copy_inverse(scratch.inverse);
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
  for (int column0 = 0; column0 < columns; column0 += TILE) {
    if (column0) load(column0);
    const int first = column0 + warp * COLUMNS, some = min(COLUMNS, columns - first);  // of this warp
    if (NV == 1 && some <= 0) break;
    Scalar v[COLUMNS][NV];
    if constexpr (NV == 1) {
      Scalar one[COLUMNS];
      wait_shared_values<COLUMNS>(task.mail(first), some, task.tag, one);
#pragma unroll
      for (int k = 0; k < COLUMNS; k++) v[k][0] = one[k];
    } else {
      if (known * TILE <= column0) known = warp_wait(task.progress, column0 / TILE + 1);
#pragma unroll
      for (int k = 0; k < COLUMNS; k++)
        load_values<NV>(task.work + (long long)(f.first + min(first + k, W - 1)) * NV, v[k]);
    }
#pragma unroll
    for (int k = 0; k < COLUMNS; k++)
#pragma unroll
      for (int j = 0; j < NV; j++)
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r][j] = mul_add(m[k].at[r], k < some ? v[k][j] : Scalar(0), sum[r][j]);
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int j = 0; j < NV; j++) scratch.partial[(warp * TILE + lane * ROWS + r) * NV + j] = sum[r][j];
  copy_wait<0>();
  __syncthreads();
  if (thread < TILE)
#pragma unroll
    for (int j = 0; j < NV; j++) {
      Scalar all(0);
      for (int w = 0; w < WARPS; w++) all += scratch.partial[(w * TILE + thread) * NV + j];
      y[j] -= all;
      scratch.v[thread * NV + j] = y[j];
    }
  if (invert) {  // y := inverse^H y (LU: ^T)
    __syncthreads();
    Scalar part[COLUMNS][NV];
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
      const int column = warp * COLUMNS + k;
#pragma unroll
      for (int j = 0; j < NV; j++) part[k][j] = Scalar(0);
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const int row = lane * ROWS + r;
        const Scalar d = scratch.inverse[column * TILE + row];
        if (row < rows && column < rows && (!CHOLESKY || row <= column))
#pragma unroll
          for (int j = 0; j < NV; j++)
            part[k][j] = mul_add(CHOLESKY ? conj(d) : d, scratch.v[row * NV + j], part[k][j]);
      }
    }
    fold_columns<COLUMNS, NV>(part);
    const int column = warp * COLUMNS + lane / (32 / COLUMNS);
    if (lane % (32 / COLUMNS) == 0 && column < rows) {
      if constexpr (NV == 1) mail_value(task.mail(row0 + column), part[0][0], task.tag);
      store_values<NV>(task.work + (long long)(f.first + row0 + column) * NV, part[0]);
    }
  } else if (thread < rows) {
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

template <int NV> __device__ __forceinline__ void backward_tile(const LargeTask<NV>& task, Scalar* memory) {
  const LargeScratch<NV> scratch(memory);
  const LargeSolveFront& f = task.f;
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, W = f.width, H = f.rows - W;
  const int column0 = task.tile * TILE, columns = min(TILE, W - column0), below_tiles = (H + TILE - 1) / TILE;
  const bool transposed = task.args.transposed, multiply = CHOLESKY || !transposed;
  const Scalar* panel = task.panel(!CHOLESKY && !transposed);
  const int steps =
      below_tiles + task.tiles - 1 - task.tile;  // tiles of rows: those below the pivots, then from the last
  const auto row_of = [&](int step) {            // the lane's first row in its part of the panel
    return (step < below_tiles ? step : task.tiles - 1 - (step - below_tiles)) * TILE + lane * ROWS;
  };
  Rows now[COLUMNS], next[COLUMNS];
  const auto load = [&](Rows(&m)[COLUMNS], int step) {
    const bool below = step < below_tiles;
    const int ld = below ? task.below_ld : task.tall;
    const Scalar* from = panel + (below ? (long long)task.tall * W : 0) + min(row_of(step), ld - ROWS);
    load_columns(m, from, ld, column0 + warp * COLUMNS, W - 1);
  };
  if (steps) load(now, 0);
  if (multiply) task.copy_inverse(scratch.inverse);
  Scalar y[NV];
  load_values<NV>(task.work + (long long)(f.first + column0 + min(thread, columns - 1)) * NV, y);
  if (thread == 0 && task.tile == task.tiles - 1) task.progress[0] = task.progress[1] = 0;
  if (NV > 1 && f.parent >= 0) warp_wait(task.of_parent(2), f.parent_tiles);
  Scalar part[COLUMNS][NV];
#pragma unroll
  for (int k = 0; k < COLUMNS; k++)
#pragma unroll
    for (int j = 0; j < NV; j++) part[k][j] = Scalar(0);
  int known = 0;  // pivot tiles from the last
  const auto add = [&](int step, Rows(&m)[COLUMNS], Rows(&ahead)[COLUMNS]) {
    if constexpr (NV == 1) {
      if (step + 1 < steps) load(ahead, step + 1);
    } else if (step) {
      load(m, step);
    }
    const bool below = step < below_tiles;
    const int row = row_of(step), needed = step - below_tiles + 1;
    Scalar x[ROWS][NV];
    int at[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      at[r] = below ? __ldg(task.solve.below + f.below + min(row + r, H - 1)) : f.first + min(row + r, W - 1);
    if constexpr (NV == 1) {
      const Word* from[ROWS];
      Scalar one[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; r++) from[r] = position_mail(task.solve, at[r]);
      wait_values<ROWS, false>(from, task.tag, one);
#pragma unroll
      for (int r = 0; r < ROWS; r++) x[r][0] = one[r];
    } else {
      if (needed > known) known = warp_wait(task.progress + 2, needed);
#pragma unroll
      for (int r = 0; r < ROWS; r++) load_values<NV>(task.work + (long long)at[r] * NV, x[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int k = 0; k < COLUMNS; k++) {
        const bool some = row + r < (below ? H : W);  // the padding may be NaN
        const Scalar entry = some ? (CHOLESKY ? conj(m[k].at[r]) : m[k].at[r]) : Scalar(0);
#pragma unroll
        for (int j = 0; j < NV; j++) part[k][j] = mul_add(entry, x[r][j], part[k][j]);
      }
  };
  for (int step = 0; step < steps; step += NV == 1 ? 2 : 1) {
    add(step, now, next);
    if (NV == 1 && step + 1 < steps) add(step + 1, next, now);
  }
  fold_columns<COLUMNS, NV>(part);
  const int column = warp * COLUMNS + lane / (32 / COLUMNS);
  if (lane % (32 / COLUMNS) == 0)
#pragma unroll
    for (int j = 0; j < NV; j++) scratch.v[column * NV + j] = part[0][j];
  copy_wait<0>();
  __syncthreads();
  if (thread < TILE)
#pragma unroll
    for (int j = 0; j < NV; j++) {
      y[j] -= scratch.v[thread * NV + j];
      scratch.v[thread * NV + j] = thread < columns ? y[j] : Scalar(0);
    }
  if (multiply) {  // y := inverse y
    __syncthreads();
    Scalar rest[ROWS][NV];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const int row = lane * ROWS + r;
#pragma unroll
      for (int j = 0; j < NV; j++) rest[r][j] = Scalar(0);
#pragma unroll
      for (int k = 0; k < COLUMNS; k++) {
        const int c = warp * COLUMNS + k;
        const Scalar d = scratch.inverse[c * TILE + row];
        if (row < columns && c < columns && (!CHOLESKY || row <= c))
#pragma unroll
          for (int j = 0; j < NV; j++) rest[r][j] = mul_add(d, scratch.v[c * NV + j], rest[r][j]);
      }
#pragma unroll
      for (int j = 0; j < NV; j++) scratch.partial[(warp * TILE + row) * NV + j] = rest[r][j];
    }
    __syncthreads();
    if (thread < TILE)
#pragma unroll
      for (int j = 0; j < NV; j++) {
        y[j] = Scalar(0);
        for (int w = 0; w < WARPS; w++) y[j] += scratch.partial[(w * TILE + thread) * NV + j];
      }
  }
  const int at = f.first + column0 + thread;
  if (thread < columns) give_x<NV>(task.solve, task.tag, task.group, at, y);
  if constexpr (NV > 1) {
    __syncthreads();
    if (thread == 0) store_release(task.progress + 2, (unsigned)(task.tiles - task.tile));
  }
  if (thread < columns) store_x<NV>(task.solve, task.group, at, y);
}

template <int NV, bool FORWARD> __device__ __forceinline__ void large_walk(const LargeSolveArgs& args) {
  Scalar* memory = (Scalar*)(shared_memory + 16);
  unsigned* counters = args.solve.counters;
  const int count = FORWARD ? args.forward_count : args.backward_count;
  const unsigned tag = tag_of(args.solve, FORWARD);
  for (;;) {
    const int ticket = take_ticket(counters + (FORWARD ? LARGE_FORWARD_TICKET : LARGE_BACKWARD_TICKET));
    if (ticket >= count * args.solve.groups) return;
    if (ticket == 0 && threadIdx.x == 0) counters[FORWARD ? LARGE_BACKWARD_TICKET : LARGE_FORWARD_TICKET] = 0;
    const int position = ticket / args.solve.groups, group = ticket - position * args.solve.groups;
    const LargeTask<NV> task(args, (FORWARD ? args.forward : args.backward)[position], group, tag);
    if (FORWARD) forward_tile<NV>(task, memory);
    else backward_tile<NV>(task, memory);
  }
}

GPUSPLU_KERNEL(solve_large_forward_1, LargeSolveArgs, SOLVE_THREADS, 3) { large_walk<1, true>(args); }
GPUSPLU_KERNEL(solve_large_forward_4, LargeSolveArgs, SOLVE_THREADS, 2) { large_walk<4, true>(args); }
GPUSPLU_KERNEL(solve_large_backward_1, LargeSolveArgs, SOLVE_THREADS, 2) { large_walk<1, false>(args); }
GPUSPLU_KERNEL(solve_large_backward_4, LargeSolveArgs, SOLVE_THREADS, 2) { large_walk<4, false>(args); }
