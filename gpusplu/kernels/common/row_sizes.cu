// r = b - op(A) x, and what each row of it is compared with, |op(A)| |x| + |b|, for several columns.
//
// Rows of op(A) in compressed rows, as common/residual.cu has them. A group of 2^lanes_log2 lanes sums a row in a fixed
// order. Products and sums are in double precision. Grid: any; block: VALUE_THREADS. Deterministic.
#include "common/reduce.cuh"

struct RowSizesArgs {
  const long long* ptr;
  const int* ind;
  const int* source;  // null: entry p is value p
  const Scalar* values;
  const Scalar *x, *b;
  Scalar* r;
  double* sizes;
  long long ld;  // of x, b, r and sizes
  int n, nrhs;
  int conjugate;  // the values
  int lanes_log2;
};

GPUSPLU_KERNEL(row_sizes, RowSizesArgs, VALUE_THREADS, 2) {
  const int lanes = 1 << args.lanes_log2, lane = threadIdx.x & (lanes - 1);
  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x,
                  groups = (long long)gridDim.x * blockDim.x >> args.lanes_log2,
                  rounds = (args.n + groups - 1) / groups;
  for (long long round = 0; round < rounds; round++) {  // all lanes of a warp take part in the sums
    const long long row = (thread >> args.lanes_log2) + round * groups;
    const bool some = row < args.n;
    const long long begin = some ? args.ptr[row] : 0, end = some ? args.ptr[row + 1] : 0;
    for (int j = 0; j < args.nrhs; j++) {
      const Scalar* x = args.x + j * args.ld;
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
      const Wide b = widen(args.b[j * args.ld + row]);
      narrow(b - sum, args.r[j * args.ld + row]);
      args.sizes[j * args.ld + row] = size + modulus(b);
    }
  }
}
