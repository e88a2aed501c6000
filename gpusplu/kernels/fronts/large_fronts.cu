// Factors all large fronts in one launch: partial Cholesky, or block LU or LDL^T with inverted diagonal tiles.
//
// A task is one NB x NB tile (i, j) of a front, left-looking: the tile C_ij is assembled in shared memory
// (fronts/tile_assembly.cuh) and stays there while X_ik U_kj over all earlier tile columns k is summed in registers
// (fronts/tile_update.cuh). The sum starts at zero and is subtracted at once: thousands of products that were taken
// from C_ij one after another would each be rounded at the size of C_ij, which costs a digit (decision 7).
// Then
//   diagonal   Cholesky: L_jj and inv(L_jj)^H; else D_j = inv(C_jj), pivoting inside the tile
//   below      L_ij = C_ij inv(L_jj)^H; else X_ij = C_ij D_j; LDL^T: U_ji = C_ij^H too, stored as LU does
//   right      LU: U_ij = C_ij, stored transposed, so that both operands of every update are tall panels
//   block      the contribution block; where there are tasks enough, two tiles one below the other
// Blocks are persistent and take tasks by tickets, in a topological order made by the plan
// (core/plan/fronts/large_tasks.cpp); a task that needs tiles of another one waits for progress counters: finished
// tiles of a row of L, of a column of U (they finish in order), and tiles of a child's contribution block. Counters
// only grow: an epoch distinguishes launches, and the last block resets the tickets, so that a graph can replay the
// launch.
//
// As a dependent launch it begins while small fronts are factored, once all blocks of these have begun: a front then
// waits for its own small children. It ends after them.
//
// Grid: at most as many blocks as are resident together. Block: shape.threads; shape.shared_bytes of shared memory.
// Every tile is written once, by fixed sums: bitwise repeatable. Source: prototype large_fronts (its README has the
// measurements behind the shapes).
#include "fronts/tile_assembly.cuh"
#include "fronts/tile_cholesky.cuh"
#include "fronts/tile_cholesky_tensor.cuh"
#include "fronts/tile_inverse.cuh"

namespace {

struct Control {
  LargeTask task;
  int has_task;
  unsigned available, epoch;
};
static_assert(sizeof(Control) <= LARGE_CONTROL_BYTES);

constexpr int CLERK = 32;  // the thread that takes tasks, while thread 0 publishes results
constexpr int WORK_BYTES = shape.shared_bytes - LARGE_CONTROL_BYTES;
constexpr int TILE_SCALARS = NB * STRIDE;
constexpr int SCRATCH_BYTES = WORK_BYTES - shape.tall * TILE_SCALARS * (int)sizeof(Scalar);  // net of tiles
static_assert(sizeof(AssemblyScratch) <= SCRATCH_BYTES && sizeof(CholeskyScratch) <= SCRATCH_BYTES &&
              sizeof(InverseScratch) <= SCRATCH_BYTES);

// Operands of an update: rows of A (of one tile row, or of two), rows of B, and the counters of their finished tiles.
struct Progress {
  const unsigned *a, *second, *b;  // second: of the lower tile row of A, if there are two
};

// Waits until all counters are `need` beyond `base`; returns the least progress of all. Called by the whole block.
DEVICE int wait_progress(const Progress& progress, unsigned base, int need, Control& control) {
  if (threadIdx.x < 32) {  // one instruction polls all
    const unsigned* p = threadIdx.x & 1 ? progress.b : threadIdx.x & 2 ? progress.second : progress.a;
    unsigned behind;
    do behind = 0x7fffffffu - (load_acquire(p) - base);
    while (!__all_sync(~0u, (int)(0x7fffffffu - behind) >= need));
    behind = warp_max(behind);
    if (threadIdx.x == 0) control.available = 0x7fffffffu - behind;
  }
  __syncthreads();
  const int available = (int)control.available;
  __syncthreads();
  return available;
}

// acc = A B over the first `depth` columns of two tall panels, in runs of columns with finished tiles. A has TALL tile
// rows.
template <int TALL, int M> DEVICE void update(Sums<M>& acc, const Scalar* A, long long lda, int m, const Scalar* B,
                                              long long ldb, int n, int depth, const Progress& progress, unsigned base,
                                              Scalar* ring, Control& control, WarpPlace at) {
  constexpr int STAGES = TALL > 1 ? shape.tall_stages : shape.stages, SLICE = TALL > 1 ? shape.tall_depth : DEPTH,
                SA = TALL * NB + 4, STAGE_A = SLICE * SA, STAGE_BOTH = STAGE_A + SLICE * STRIDE;
  PanelStream<TALL * NB, SLICE> stream_a(A, lda, m);
  PanelStream<NB, SLICE> stream_b(B, ldb, n);
  const int count = (depth + SLICE - 1) / SLICE;
  int left = depth;  // columns that are not under way yet
  auto load = [&](int stage) {
    Scalar* to = ring + stage * STAGE_BOTH;
    stream_a.load(to, left, A);
    stream_b.load(to + STAGE_A, left, A);
    left -= SLICE;
  };
  clear(acc);
  int available = 0;
#pragma unroll 1
  for (int begin = 0; begin < count;) {
    if (available <= begin * SLICE / NB) available = wait_progress(progress, base, begin * SLICE / NB + 1, control);
    const int end = min(count, available * (NB / SLICE));
    for_all<STAGES - 1>([&](int s) {
      if (begin + s < end) load(s);
      copy_commit();
    });
    int stage = 0;
#pragma unroll 1
    for (int s = begin; s < end; s++) {
      copy_wait<STAGES - 2>();
      __syncthreads();
      if (s + STAGES - 1 < end) load(stage == 0 ? STAGES - 1 : stage - 1);
      copy_commit();
      const Scalar* from = ring + stage * STAGE_BOTH;
      if (++stage == STAGES) stage = 0;
      multiply_slice<false, CHOLESKY && is_complex, SLICE, SA>(acc, from, from + STAGE_A, at);
    }
    copy_wait<0>();
    __syncthreads();
    begin = end;
  }
}

// acc = C times the inverted diagonal block; C is `tile`, [k][m].
DEVICE void multiply_inverse(Accumulator& acc, const Scalar* inverse, const Scalar* tile, Scalar* ring, WarpPlace at) {
  constexpr int SLICES = NB / DEPTH, IN_FLIGHT = shape.inverse_slices, SIZE = NB * INVERSE_STRIDE;
  for_all<IN_FLIGHT>([&](int s) {
    load_inverse_slice(inverse, s, ring + s * SIZE);
    copy_commit();
  });
  clear(acc);
#pragma unroll 1
  for (int s = 0; s < SLICES; s++) {
    copy_wait<IN_FLIGHT - 1>();
    __syncthreads();
    Scalar* slice = ring + s % IN_FLIGHT * SIZE;
    const int skip = CHOLESKY ? (s * DEPTH - at.col) / 16 : 0;  // its inverse is upper triangular
    multiply_slice<true, false>(acc, tile + s * STAGE, slice, at, s * DEPTH, skip);
    if constexpr (SLICES > IN_FLIGHT) {
      __syncthreads();
      if (s + IN_FLIGHT < SLICES) load_inverse_slice(inverse, s + IN_FLIGHT, slice);
    }
    copy_commit();
  }
}

// Where a task's tile lies, and its dependencies. Rows and columns are swapped for tiles of U, which is stored
// transposed: `tall` rows, `flat` columns.
struct Tile {
  int step;  // tile columns to the left
  bool in_block, diagonal, right;
  int tall, flat, m, n;
  unsigned *done, *lower_progress, *progress_a, *progress_b;
  DEVICE Tile(const LargeTask& task, const LargeFront& large, const FrontTiles& f, unsigned* counters) {
    step = min(min(task.row, task.col), f.pivot_tiles);
    in_block = step == f.pivot_tiles;
    diagonal = task.row == task.col;
    right = !ONE_TRIANGLE && task.row < task.col && !in_block;
    tall = right ? task.col : task.row;
    flat = right ? task.row : task.col;
    m = f.size(tall);
    n = f.size(flat);
    done = counters + LARGE_CONTROL + large.counter;
    lower_progress = done + 1;
    unsigned* upper_progress = ONE_TRIANGLE ? lower_progress : lower_progress + f.tiles;
    progress_a = (right ? upper_progress : lower_progress) + tall;
    progress_b = (right ? lower_progress : upper_progress) + flat;
  }
};

// Takes the next ticket, which `next_task` reads: its latency is hidden in between. No block should hold a ticket for
// long.
DEVICE void take_ticket(const LargeArgs& args, int& ticket) {
  if (threadIdx.x == CLERK) ticket = (int)atomicAdd(args.counters, 1u);
}
DEVICE void next_task(const LargeArgs& args, int ticket, Control& control) {
  if (threadIdx.x == CLERK) {
    control.has_task = ticket < args.task_count;
    if (control.has_task) control.task = args.tasks[ticket];
  }
}

// The diagonal tile in acc, factored and inverted.
DEVICE void factor_diagonal(const LargeArgs& args, const Accumulator& acc, int m, Scalar* L, long long ld,
                            Scalar* inverse, Scalar* tile, Scalar* scratch, WarpPlace at) {
  store_diagonal(acc, tile, m, at);
  __syncthreads();
  if constexpr (CHOLESKY) {
#if TENSOR_CORES
    const int failed = cholesky_tile_tensor(tile, m, L, ld, inverse, *(CholeskyTensorScratch*)scratch);
#else
    const int failed = cholesky_tile(tile, m, L, ld, inverse, *(CholeskyScratch*)scratch);
#endif
    if (failed) atomicAdd(&args.status->n_perturbed, failed);
  } else {
    if constexpr (LDLT) {
      mirror_tile(tile);
      __syncthreads();
    }
    const PivotCounts counts =
        invert_tile(tile, m, (Real)args.tiny, (Real)args.singular, inverse, *(InverseScratch*)scratch);
    if (counts.perturbed) atomicAdd(&args.status->n_perturbed, counts.perturbed);
    if (counts.singular) atomicAdd(&args.status->n_tiny, counts.singular);
  }
}

// Two tiles of the contribution block, one below the other and both below its diagonal: each column of B that comes
// through the second-level cache meets twice as many rows of A, and that cache bounds the main loop
// (docs/internals/notes.md).
DEVICE void run_tall(const LargeArgs& args, const FrontTiles& f, const Tile& tile, unsigned base, Scalar* work,
                     Control& control) {
  if constexpr (shape.tall > 1) {
    const int half = (threadIdx.x >> 5) / WARPS_IN_ROW;  // a warp has all rows of one of the tiles
    WarpPlace at;
    at.row = half * NB;
    Sums<NB / 16> acc;
    const int below = f.size(tile.tall + 1);
    update<2>(acc, f.lower.tile(tile.tall, f.pivot_tiles), f.height_ld, NB + below,
              f.upper.tile(tile.flat, f.pivot_tiles), f.height_ld, tile.n, f.width,
              {tile.progress_a, tile.progress_a + 1, tile.progress_b}, base, work + 2 * TILE_SCALARS, control, at);
    at.row = 0;
    subtract_from(acc, work + half * TILE_SCALARS, at);
    int ticket = 0;
    take_ticket(args, ticket);
    Scalar* to = f.block + (tile.flat - f.pivot_tiles) * NB * f.height_ld + (tile.tall - f.pivot_tiles + half) * NB;
    store_tile<false>(acc, to, f.height_ld, half ? below : NB, tile.n, at);
    __syncthreads();
    if (threadIdx.x == 0) add_acquire_release(tile.done, 2u);
    next_task(args, ticket, control);
  }
}

// Does the task, and leaves the next one in `control`.
DEVICE void run_task(const LargeArgs& args, const LargeTask& task, Scalar* work, Control& control) {
  const unsigned epoch = control.epoch, base = epoch * EPOCH_STEP;
  const Front& front = args.fronts[task.front];
  const FrontTiles f(front, args.factor, args.blocks);
  const Tile tile(task, args.large[task.large], f, args.counters);
  const WarpPlace at;
  Scalar* const second_buffer = work + TILE_SCALARS;
  Accumulator acc;
  int ticket = 0;
  const int tiles = shape.tall > 1 ? task.tiles : 1;
  LargeTask part = task;
#pragma unroll 1
  for (int k = 0; k < tiles; k++) {
    assemble_tile(args, part, front.entry_begin, f.first_row(part.row), f.first_row(part.col), tile.right, epoch,
                  work + k * TILE_SCALARS, *(AssemblyScratch*)(work + tiles * TILE_SCALARS));
    part.row++, part.row_chunks++;
  }
  __syncthreads();
  if (tiles == 2) return run_tall(args, f, tile, base, work, control);
  Scalar* const A = tile.right ? f.upper.tile(tile.tall, f.pivot_tiles) : f.lower.tile(tile.tall, f.pivot_tiles);
  const Scalar* const B = tile.right ? f.lower.tile(tile.flat, f.pivot_tiles) : f.upper.tile(tile.flat, f.pivot_tiles);
  const long long ld = f.ld(tile.tall);
  update<1>(acc, A, ld, tile.m, B, f.ld(tile.flat), tile.n, tile.in_block ? f.width : tile.step * NB,
            {tile.progress_a, tile.progress_a, tile.progress_b}, base, second_buffer, control, at);
  subtract_from(acc, work, at);

  Scalar* to = A + tile.step * NB * ld;
  Scalar* inverse = f.inverse + (long long)tile.step * NB * NB;
  if (tile.in_block) {
    take_ticket(args, ticket);
    to = f.block + (tile.flat - f.pivot_tiles) * NB * f.height_ld + (tile.tall - f.pivot_tiles) * NB;
    if (ONE_TRIANGLE && tile.diagonal) store_tile<true>(acc, to, f.height_ld, tile.m, tile.n, at);
    else store_tile<false>(acc, to, f.height_ld, tile.m, tile.n, at);
  } else if (tile.diagonal) {
    factor_diagonal(args, acc, tile.m, to, ld, inverse, work, second_buffer, at);
  } else if (tile.right) {
    take_ticket(args, ticket);
    store_tile<false>(acc, to, ld, tile.m, tile.n, at);
  } else {
    store(acc, work, at);
    if constexpr (LDLT) {
      mirror(acc);
      store_tile<false>(acc, f.upper.tile(tile.tall, f.pivot_tiles) + tile.step * NB * ld, ld, tile.m, tile.n, at);
    }
    const unsigned* inverted = tile.lower_progress + tile.step;
    wait_progress({inverted, inverted, inverted}, base, tile.step + 1, control);
    take_ticket(args, ticket);
    multiply_inverse(acc, inverse, work, second_buffer, at);
    store_tile<false>(acc, to, ld, tile.m, tile.n, at);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (tile.in_block) add_acquire_release(tile.done, 1u);
    else store_release(tile.progress_a, base + tile.step + 1);
  }
  if (tile.diagonal && !tile.in_block) take_ticket(args, ticket);
  next_task(args, ticket, control);
}

}  // namespace

GPUSPLU_KERNEL(factor_large, LargeArgs, shape.threads, shape.blocks) {
  Scalar* work = (Scalar*)shared_memory;
  Control& control = *(Control*)(shared_memory + WORK_BYTES);
  if (threadIdx.x == 0) control.epoch = load_acquire(args.counters + 2);
  int ticket = 0;
  take_ticket(args, ticket);
  next_task(args, ticket, control);
  for (;;) {
    __syncthreads();
    if (!control.has_task) break;
    const LargeTask task = control.task;
    run_task(args, task, work, control);
  }
  wait_for_previous_kernel();  // so that kernels after this one also run after that one
  if (threadIdx.x == 0 && add_acquire_release(args.counters + 1, 1u) == gridDim.x - 1) {
    args.counters[0] = args.counters[1] = 0;
    store_release(args.counters + 2, control.epoch + 1);
  }
}
