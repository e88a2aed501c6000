// r = b - op(A) x and the norms for its backward error, in one pass, or the sizes with which its rows are compared; and
// x += step.
//
// measure_residual_NV, NV = 1 or 4 columns at a time: rows of op(A) in compressed rows: for the transposes that is
// canonical A itself, for A its transpose, with `source` as the canonical value of each entry. A group of 2^lanes_log2
// lanes sums a row in a fixed order, the whole warp one that is long. Products and sums are in double precision. The
// status gets the infinity norms of A and of the column with the largest backward error |r| / (|A| |x| + |b|), and is
// then moved to `report`, which may be the host's memory, or added to `accumulated`. Blocks join their norms in
// `norms`, in any order, which does not matter to the largest; the last one publishes them. Grid: any; block:
// VALUE_THREADS. Shared memory: RESIDUAL_SHARED_BYTES. Precondition: *done and norms are zero, and are again
// afterwards. Deterministic.
//
// row_sizes: r, and the size with which each row of it is compared, |op(A)| |x| + |b|, for several columns. A group of
// lanes sums every row. Norms: of each column the largest of r, of x, of the sizes, and of r over its size, one that is
// no number as Inf; zero before.
#include "common/accumulate.cuh"
#include "common/reduce.cuh"

struct ResidualArgs {
  const long long* ptr;
  const int* ind;
  const int* source;  // null: entry p is value p
  const Scalar* values;
  const Scalar *x, *b;
  Scalar* r;
  long long ld;   // of x, b and r
  int n, nrhs;    // MOST_RHS columns at most
  int conjugate;  // the values
  int lanes_log2;
  double* sizes;  // of rows; null: not kept
  double* norms;  // of A; then of every column's residual, x and b. Of row_sizes, null: none
  unsigned* done;
  Status* status;
  Status* report;                  // null: none
  AccumulatedStatus* accumulated;  // null: none
  int factored;                    // before this solve, for the accumulated status
};

struct StepArgs {
  Scalar* x;
  const Scalar* step;
  long long ld;
  int n, nrhs;
};

constexpr int LONG_ROW = 16;  // times the lanes of a group

// op(A)(row, :) x for NV columns and the sum of moduli, SIZES: of the products, of the entries first, first + step, ..
// below last.
template <int NV, bool SIZES> DEVICE void add_row(const ResidualArgs& args, long long first, long long last, int step,
                                                  const Scalar* const (&x)[NV], Wide (&sum)[NV], double& row_sum) {
#pragma unroll(NV == 1 ? 4 : 2)
  for (long long p = first; p < last; p += step) {
    const int column = args.ind[p];
    const Wide value = widen(args.values[args.source ? args.source[p] : p]), a = args.conjugate ? conj(value) : value;
    if (!SIZES) row_sum += modulus(a);
    for_all<NV>([&](int j) {
      const Wide at = widen(x[j][column]);
      sum[j] = mul_add(a, at, sum[j]);
      if (SIZES) row_sum = fma(modulus(a), modulus(at), row_sum);
    });
  }
}
template <int NV> DEVICE void combine(Wide (&sum)[NV], double& row_sum, int lanes) {
  for (int mask = lanes >> 1; mask; mask >>= 1) {
    row_sum += shuffle_xor(row_sum, mask);
    for_all<NV>([&](int j) { sum[j] += shuffle_xor(sum[j], mask); });
  }
}

// Columns column0 .. column0 + NV - 1; the norms of this block's rows.
template <int NV, bool SIZES = false>
DEVICE void measure_columns(const ResidualArgs& args, int column0, double* scratch) {
  const int lane = threadIdx.x & 31, lanes = 1 << args.lanes_log2, in_group = lane & (lanes - 1),
            group = lane >> args.lanes_log2, rows = 32 >> args.lanes_log2;
  const Scalar* x[NV];
  for_all<NV>([&](int j) { x[j] = args.x + min(column0 + j, args.nrhs - 1) * args.ld; });
  double a_norm = 0, norms[NV][SIZES ? 4 : 3] = {};  // of r, x and b, or see above
  const long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) >> 5,
                  warps = (long long)gridDim.x * blockDim.x >> 5;
  for (long long row0 = warp * rows; row0 < args.n; row0 += warps * rows) {
    const long long row = row0 + group;
    const bool some = row < args.n;
    const long long begin = some ? args.ptr[row] : 0, end = some ? args.ptr[row + 1] : 0;
    const bool is_long = !SIZES && end - begin > LONG_ROW * lanes;
    Wide sum[NV];
    double row_sum = 0;
    for_all<NV>([&](int j) { sum[j] = Wide(0); });
    if (!is_long) add_row<NV, SIZES>(args, begin + in_group, end, lanes, x, sum, row_sum);
    combine<NV>(sum, row_sum, lanes);
    for (unsigned left = __ballot_sync(~0u, is_long && in_group == 0); left; left &= left - 1) {
      const int owner = __ffs(left) - 1;
      const long long long_row = row0 + (owner >> args.lanes_log2);
      Wide whole[NV];
      double whole_sum = 0;
      for_all<NV>([&](int j) { whole[j] = Wide(0); });
      add_row<NV, SIZES>(args, args.ptr[long_row] + lane, args.ptr[long_row + 1], 32, x, whole, whole_sum);
      combine<NV>(whole, whole_sum, 32);
      if (lane == owner) {
        row_sum = whole_sum;
        for_all<NV>([&](int j) { sum[j] = whole[j]; });
      }
    }
    if (some && in_group == 0) {
      if (!SIZES) a_norm = fmax(a_norm, row_sum);
      for_all<NV>([&](int j) {
        if (column0 + j >= args.nrhs) return;
        const long long at = (column0 + j) * args.ld + row;
        const Wide b = widen(args.b[at]), r = b - sum[j];
        narrow(r, args.r[at]);
        const double residual = or_infinite(modulus(r)), x_size = modulus(widen(args.x[at]));
        norms[j][0] = fmax(norms[j][0], residual);
        if constexpr (SIZES) {
          const double size = row_sum + modulus(b);
          if (args.sizes) args.sizes[at] = size;
          norms[j][1] = fmax(norms[j][1], or_infinite(x_size));
          norms[j][2] = fmax(norms[j][2], or_infinite(size));
          if (residual > 0) norms[j][3] = fmax(norms[j][3], or_infinite(residual / size));
        } else {
          norms[j][1] = fmax(norms[j][1], x_size);
          norms[j][2] = fmax(norms[j][2], modulus(b));
        }
      });
    }
  }
  constexpr int COUNT = SIZES ? 4 : 3;
  if (SIZES && !args.norms) return;
  if (!SIZES) join_block(args.norms, block_max(a_norm, scratch));
  for_all<NV, COUNT>([&](int j, int q) {
    const double norm = block_max(norms[j][q], scratch);
    if (column0 + j < args.nrhs) join_block(args.norms + (SIZES ? 0 : 1) + COUNT * (column0 + j) + q, norm);
  });
}

// By the first warp of the last block: the column with the largest backward error, and the status that the host reads.
DEVICE void publish(const ResidualArgs& args) {
  const int lane = threadIdx.x & 31;
  const double* norms = args.norms + 1 + 3 * min(lane, args.nrhs - 1);
  const double a = __ldcg(args.norms), r = __ldcg(norms), x = __ldcg(norms + 1), b = __ldcg(norms + 2);
  const double error = backward_error(r, a, x, b), worst = warp_max(error);
  const unsigned columns = __ballot_sync(~0u, error == worst),
                 hidden = __ballot_sync(~0u, r > 0 && !(fma(a, x, b) <= LARGEST));
  for (int k = lane; k < 1 + 3 * args.nrhs; k += 32) args.norms[k] = 0;
  if (lane != __ffs(columns) - 1) return;
  Status* status = args.status;
  status->residual = r;
  status->x_norm = x;
  status->b_norm = b;
  status->a_norm = a;
  if (args.accumulated)  // columns with sizes out of range have error zero here, so their errors are unknown
    add_up(status, args.accumulated, args.factored, true, hidden ? infinity() : error);
  if (!args.report) return;
  *args.report = *status;
  *status = Status{};
}

template <int NV> DEVICE void measure(const ResidualArgs& args) {
  double* scratch = (double*)(shared_memory + FLAG_BYTES);
  unsigned* last = (unsigned*)shared_memory;
  for (int column0 = 0; column0 < args.nrhs; column0 += NV) measure_columns<NV>(args, column0, scratch);
  if (threadIdx.x == 0) *last = add_acquire_release(args.done, 1u) + 1 == gridDim.x;
  __syncthreads();
  if (!*last) return;
  if (threadIdx.x < 32) publish(args);
  if (threadIdx.x == 0) *args.done = 0;
}

GPUSPLU_KERNEL(measure_residual_1, ResidualArgs, VALUE_THREADS, 2) { measure<1>(args); }
GPUSPLU_KERNEL(measure_residual_4, ResidualArgs, VALUE_THREADS, 2) { measure<RHS_GROUP>(args); }
GPUSPLU_KERNEL(row_sizes, ResidualArgs, VALUE_THREADS, 2) {
  for (int j = 0; j < args.nrhs; j++) measure_columns<1, true>(args, j, (double*)(shared_memory + FLAG_BYTES));
}

// x += step. Grid: any; block: any. Deterministic.
GPUSPLU_KERNEL(add_step, StepArgs, VALUE_THREADS, 1) {
  const long long count = (long long)args.n * args.nrhs, step = (long long)gridDim.x * blockDim.x;
  for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < count; k += step) {
    const long long column = k / args.n, at = column * args.ld + (k - column * args.n);
    args.x[at] += args.step[at];
  }
}
