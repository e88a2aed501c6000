// r = b - op(A) x, and the size with which each row of it is compared, |op(A)| |x| + |b|, for several columns.
//
// Rows of op(A) in compressed rows, as common/residual.cu has them. A group of 2^lanes_log2 lanes sums a row in a fixed
// order. Products and sums are in double precision. Norms are joined in any order, which does not matter to the
// largest; one that is no number is Inf. Grid: any; block: VALUE_THREADS. Shared memory: VALUE_SHARED_BYTES.
// Deterministic.
#include "common/reduce.cuh"

struct RowSizesArgs {
  const long long* ptr;
  const int* ind;
  const int* source;  // null: entry p is value p
  const Scalar* values;
  const Scalar *x, *b;
  Scalar* r;
  double* sizes;  // null: not kept
  // Of each column the largest of r, of x, of the sizes, and of r over its size; zero before. Null: none.
  double* norms;
  long long ld;  // of x, b, r and sizes
  int n, nrhs;
  int conjugate;  // the values
  int lanes_log2;
};

// Of a column; its norms of this block's rows.
DEVICE void measure_rows(const RowSizesArgs& args, long long column, double (&norms)[4]) {
  const int lanes = 1 << args.lanes_log2, lane = threadIdx.x & (lanes - 1);
  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x,
                  groups = (long long)gridDim.x * blockDim.x >> args.lanes_log2,
                  rounds = (args.n + groups - 1) / groups;
  const Scalar* x = args.x + column;
  for (long long round = 0; round < rounds; round++) {  // all lanes of a warp take part in the sums
    const long long row = (thread >> args.lanes_log2) + round * groups;
    const bool some = row < args.n;
    const long long begin = some ? args.ptr[row] : 0, end = some ? args.ptr[row + 1] : 0;
    Wide sum(0);
    double size = 0;
    for (long long p = begin + lane; p < end; p += lanes) {
      const Wide value = widen(args.values[args.source ? args.source[p] : p]), at = widen(x[args.ind[p]]);
      sum = mul_add(args.conjugate ? conj(value) : value, at, sum);
      size = fma(modulus(value), modulus(at), size);
    }
    for (int mask = lanes >> 1; mask; mask >>= 1) {
      sum += shuffle_xor(sum, mask);
      size += shuffle_xor(size, mask);
    }
    if (!some || lane != 0) continue;
    const Wide b = widen(args.b[column + row]), r = b - sum;
    size += modulus(b);
    narrow(r, args.r[column + row]);
    if (args.sizes) args.sizes[column + row] = size;
    const double residual = or_infinite(modulus(r));
    norms[0] = fmax(norms[0], residual);
    norms[1] = fmax(norms[1], or_infinite(modulus(widen(x[row]))));
    norms[2] = fmax(norms[2], or_infinite(size));
    if (residual > 0) norms[3] = fmax(norms[3], or_infinite(residual / size));
  }
}

GPUSPLU_KERNEL(row_sizes, RowSizesArgs, VALUE_THREADS, 2) {
  for (int j = 0; j < args.nrhs; j++) {
    double norms[4] = {0, 0, 0, 0};
    measure_rows(args, j * args.ld, norms);
    if (!args.norms) continue;
    for_all<4>([&](int q) {
      join_block(args.norms + 4 * j + q, block_max(norms[q], (double*)shared_memory));
      __syncthreads();
    });
  }
}
