// Products of small tiles, each by one warp, operands in shared memory: with tensor cores in double precision, else by
// multiply-adds.
//
// Lane 4 g + t holds c[m][n][e] = entry (16 m + g + 8 (e / 2), 8 n + t + 4 (e % 2)) of a tile of 16 M x 8 N. The
// columns of an 8-wide product are permuted (n -> n / 2 + 4 (n % 2)) against the instruction's order: then accesses to
// C with a leading dimension of 4 mod 8 meet no bank conflicts, and a 16 x 16 tile has the layout of gauss_jordan.
#pragma once
#include "fronts/front.cuh"

#if defined(SCALAR_d) && (FP64_TENSOR_CORES || defined(GPUSPLU_EMULATED))
constexpr bool use_mma = true;
#else
constexpr bool use_mma = false;
#endif

// Columns of A at a time in products without tensor cores: registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int FMA_STEPS = 1;
#else
constexpr int FMA_STEPS = sizeof(Scalar) == 16 ? 1 : 2;
#endif

// Row and column of c[.][.][e] in its 16 x 8 part.
DEVICE int tile_row(int e) { return (int)((threadIdx.x & 31) >> 2) + 8 * (e >> 1); }
DEVICE int tile_column(int e) { return (int)(threadIdx.x & 3) + 4 * (e & 1); }

// C += A B: rows r0 .. of A (R rows; A(i, k) = a[i + k lda]), columns c0 .. of B (C columns; B(k, j) = b[k + j ldb]),
// k < w <= 16. Entries beyond R and C get results of the last row or column. WHOLE: w = 16 and nothing lies beyond;
// then most addresses differ by constants.
template <int M, int N, bool WHOLE> DEVICE void add_product(Scalar (&c)[M][N][4], const Scalar* a, int lda, int r0,
                                                            int R, const Scalar* b, int ldb, int c0, int C, int w) {
  const int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
  const auto row = [&](int m, int half) {
    return WHOLE ? r0 + g + (16 * m + 8 * half) : min(r0 + g + (16 * m + 8 * half), R - 1);
  };
  const auto column = [&](int n, int first) { return WHOLE ? c0 + first + 8 * n : min(c0 + first + 8 * n, C - 1); };
  if constexpr (use_mma) {
    constexpr int STEPS = M > 1 ? 2 : 4;  // of four columns at a time: registers
    const int mine = (g >> 1) + 4 * (g & 1);
#pragma unroll(WHOLE ? 4 : 1)
    for (int k0 = 0; k0 < (WHOLE ? PANEL : w); k0 += 4 * STEPS) {
      Scalar x[STEPS][M][2], y[STEPS][N];
      for_all<STEPS>([&](int q) {
        const int k = k0 + 4 * q + t;
        const bool used = WHOLE || k < w;
        for_all<M>([&](int m) {
          x[q][m][0] = used ? a[row(m, 0) + k * lda] : Scalar(0);
          x[q][m][1] = used ? a[row(m, 1) + k * lda] : Scalar(0);
        });
        for_all<N>([&](int n) { y[q][n] = used ? b[column(n, mine) * ldb + k] : Scalar(0); });
      });
      for_all<STEPS, N, M>([&](int q, int n, int m) { mma(c[m][n], x[q][m][0], x[q][m][1], y[q][n]); });
    }
  } else {
#pragma unroll(FMA_STEPS)
    for (int k = 0; k < (WHOLE ? PANEL : w); k++) {
      Scalar x[M][2], y[N][2];
      for_all<M>([&](int m) { x[m][0] = a[row(m, 0) + k * lda], x[m][1] = a[row(m, 1) + k * lda]; });
      for_all<N>([&](int n) { y[n][0] = b[column(n, t) * ldb + k], y[n][1] = b[column(n, t + 4) * ldb + k]; });
      for_all<M, N, 4>([&](int m, int n, int e) { c[m][n][e] = mul_add(x[m][e >> 1], y[n][e & 1], c[m][n][e]); });
    }
  }
}
