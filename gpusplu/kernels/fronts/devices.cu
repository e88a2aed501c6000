// Data that several devices exchange around their fronts. On the first of them: rows of right-hand sides and of
// solutions, and the status of each device's part of a factorization. On each of them: the progress of the tiles of a
// front that all of them share, for the launch of fronts/large_fronts.cu that comes next.
//
// gather_rows: to[j count + k] = from[j ld + row[k]] for j < columns. scatter_rows: to[j ld + row[k]] = from[j count +
// k]. Any grid and block. merge_status: adds `count` statuses, of the other devices, to one; one thread.
// set_progress: any grid and block.
#include "common/device.cuh"
#include "shared/fronts.hpp"
#include "shared/values.hpp"

struct RowsArgs {
  const Scalar* from;
  Scalar* to;
  const int* row;
  long long count, ld;
  int columns;
};

template <bool GATHER> DEVICE void copy_rows(const RowsArgs& args) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < args.count; k += step) {
    const long long row = args.row[k];
    for (int j = 0; j < args.columns; j++) {
      const long long strided = j * args.ld + row, packed = j * args.count + k;
      args.to[GATHER ? packed : strided] = args.from[GATHER ? strided : packed];
    }
  }
}

GPUSPLU_KERNEL(gather_rows, RowsArgs, VALUE_THREADS, 1) { copy_rows<true>(args); }
GPUSPLU_KERNEL(scatter_rows, RowsArgs, VALUE_THREADS, 1) { copy_rows<false>(args); }

struct MergeArgs {
  Status* status;
  const Status* others;
  int count;
};

GPUSPLU_KERNEL(merge_status, MergeArgs, WARP_SIZE, 1) {
  if (threadIdx.x || blockIdx.x) return;
  for (int k = 0; k < args.count; k++) {
    const Status& other = args.others[k];
    args.status->n_perturbed += other.n_perturbed;
    args.status->n_tiny += other.n_tiny;
    if (other.not_finite) atomicAdd(&args.status->not_finite, other.not_finite);  // values are checked at the same time
    args.status->growth = fmax(args.status->growth, other.growth);
  }
}

// Progress of a front: its first `begin` tile columns are present, and the next ones up to `end` in the rows up to
// `end`.
struct ProgressArgs {
  unsigned* counters;  // of the launch
  int counter, tiles;  // LargeFront::counter; tile rows
  int begin, end;
  int upper;  // U has counters of its own
};

GPUSPLU_KERNEL(set_progress, ProgressArgs, VALUE_THREADS, 1) {
  const unsigned base = args.counters[2] * EPOCH_STEP;
  unsigned* const lower = args.counters + LARGE_CONTROL + args.counter + 1;
  for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < args.tiles; t += gridDim.x * blockDim.x) {
    lower[t] = base + (t < args.end ? t + 1 : args.begin);
    if (args.upper) lower[args.tiles + t] = base + (t < args.end ? t : args.begin);
  }
}
