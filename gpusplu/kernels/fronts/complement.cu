// The Schur complement on an interface: the sum of its own entries and its children's contribution blocks, with the
// scales removed.
//
// Kernel: assemble_complement. Grid: any; block: COMPLEMENT_THREADS, which takes every gridDim.x-th column of the
// interface. No shared memory. One triangle: the sum of a column begins at its diagonal, and is mirrored. Children are
// added in the order of the plan: deterministic.
#include "common/reduce.cuh"

constexpr int COMPLEMENT_THREADS = 256;  // of a block

// The part of a column of a contribution block that belongs to the interface.
struct ChildColumn {
  long long at;     // in the arena of contribution blocks
  long long place;  // into Plan::place: the rows of the interface that its entries are added to
  int column;       // of the interface
  int count;        // entries
};

struct ComplementArgs {
  int order;             // of the interface
  const int* child_ptr;  // of its columns
  const ChildColumn* children;
  const unsigned short* place;
  const int* entry_ptr;  // of its columns: entries of A
  const int* entry_row;
  const int* entry_source;
  const double *row_factor, *column_factor;  // factors that remove the scales; null: ones
  const Scalar* values;
  const Scalar* blocks;
  Scalar* complement;
};

namespace {

// v times two powers of two; their product may be out of range where the result is not.
DEVICE Scalar unscaled(Scalar v, double row, double column) {
  Scalar out;
  const double both = row * column;
  if (both >= 2.2250738585072014e-308 && both <= LARGEST) narrow(both * widen(v), out);
  else narrow(column * (row * widen(v)), out);
  return out;
}

}  // namespace

GPUSPLU_KERNEL(assemble_complement, ComplementArgs, COMPLEMENT_THREADS, 1) {
  const int thread = threadIdx.x, m = args.order;
  for (int j = blockIdx.x; j < m; j += gridDim.x) {
    Scalar* column = args.complement + (long long)j * m;
    const int first = ONE_TRIANGLE ? j : 0;
    for (int i = first + thread; i < m; i += COMPLEMENT_THREADS) column[i] = Scalar(0);
    __syncthreads();
    for (int c = args.child_ptr[j]; c < args.child_ptr[j + 1]; c++) {
      const ChildColumn child = args.children[c];
      for (int k = thread; k < child.count; k += COMPLEMENT_THREADS)
        column[args.place[child.place + k]] += args.blocks[child.at + k];
      __syncthreads();
    }
    if (args.row_factor)
      for (int i = first + thread; i < m; i += COMPLEMENT_THREADS)
        column[i] = unscaled(column[i], args.row_factor[i], args.column_factor[j]);
    __syncthreads();
    for (int k = args.entry_ptr[j] + thread; k < args.entry_ptr[j + 1]; k += COMPLEMENT_THREADS)
      column[args.entry_row[k]] += args.values[args.entry_source[k]];
    __syncthreads();
    if (ONE_TRIANGLE)
      for (int i = j + 1 + thread; i < m; i += COMPLEMENT_THREADS)
        args.complement[j + (long long)i * m] = mirrored(column[i]);
  }
}
