// C -= A B for column-major blocks, B given as n x K (transposed, `rows`) or K x n (`cols`), optionally conjugated, and
// optionally the lower triangle of a square C only. Register tiles of up to max_vectors x max_columns, straight from
// cache; A is copied to aligned strips when the product is large enough. The order of the sum over k depends on K only.
#pragma once
#include "base/must_stop.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/vec.hpp"

namespace gs::GS_SIMD {

enum class Shape { rows, cols };  // how B is stored: n x K or K x n

// Registers: 32 (v4), 16 (v3), 16 without FMA (v2). Complex tiles hold two sums for each entry.
#if defined(GS_MASK_REGISTERS)
template <class S> constexpr int max_vectors = 3;
template <class S> constexpr int max_columns = Real<S>::complex ? 4 : 8;
#elif defined(GS_MASK_VECTORS)
template <class S> constexpr int max_vectors = 3;
template <class S> constexpr int max_columns = Real<S>::complex ? 2 : 4;
#else
template <class S> constexpr int max_vectors = 2;
template <class S> constexpr int max_columns = Real<S>::complex ? 2 : 4;
#endif
constexpr idx strip_depth = 128;       // columns of A copied at once
constexpr idx block_width = 512;       // columns of C for one copy: B stays in the second-level cache
constexpr idx worth_prefetching = 32;  // depth of a tile during which the next one arrives
constexpr off ahead = 16;              // columns, prefetched: each is in other lines, often in another page
constexpr double worth_polling = 4e6;  // products, a tenth of a millisecond: smaller updates do not poll

// Offsets and leading dimensions below count real numbers.

// p += step, hidden from the compiler, which would otherwise keep one live address for each column.
template <class P> GS_INLINE void next_column(P*& p, off step) {
  p += step;
  asm("" : "+r"(p));
}

// One tile. `last` masks the last vector. For `lower`, entry (i, j) of the tile is written if i >= j + shift.
template <class S, int vectors, int columns, Shape shape, bool lower>
GS_INLINE void tile(idx K, const real<S>* A, off lda, const real<S>* B, off ldb, real<S>* C, off ldc, auto last,
                    bool conj, idx shift) {
  using R = real<S>;
  using V = Vec<R>;
  constexpr int L = lanes<R>, w = width<S>;
  const off step_k = shape == Shape::rows ? ldb : w, step_j = shape == Shape::rows ? w : ldb;
  V sum[columns][vectors], cross[Real<S>::complex ? columns : 1][vectors];
  const R* from = C;
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
      sum[j][v] = v == vectors - 1 ? load(from + v * L, last) : load(from + v * L);
      if constexpr (Real<S>::complex) cross[j][v] = V{};
    }
    next_column(from, ldc);
  }
  for (idx k = 0; k < K; k++, A += lda, B += step_k) {
    if constexpr (shape == Shape::rows) __builtin_prefetch(B + ahead * step_k);
    V a[vectors];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) a[v] = v == vectors - 1 ? load(A + v * L, last) : load(A + v * L);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) {
      const V b = broadcast(B[j * step_j]);
#pragma GCC unroll 3
      for (int v = 0; v < vectors; v++) sum[j][v] = sub_times_vec(sum[j][v], a[v], b);
      if constexpr (Real<S>::complex) {
        const V imaginary = broadcast(B[j * step_j + 1]);
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) cross[j][v] = cross[j][v] + a[v] * imaginary;
      }
    }
  }
  const V sign = alternate<R>(conj ? R(-1) : R(1), conj ? R(1) : R(-1));
  R* column = C;
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
      V c = sum[j][v];
      if constexpr (Real<S>::complex) c = c + swap_pairs(cross[j][v]) * sign;
      R* to = column + v * L;
      if constexpr (lower) {
        const idx skip = w * (j + shift) - v * L;
        if (skip >= L) continue;
        const Mask<R> all = v == vectors - 1 ? (Mask<R>)last : first_lanes<R>(L);
        store(to, c, without_first<R>(all, skip > 0 ? (int)skip : 0));
      } else if (v == vectors - 1) {
        store(to, c, last);
      } else {
        store(to, c);
      }
    }
    next_column(column, ldc);
  }
}

// The tile that follows: its columns are too far apart for the processor's own prefetching.
template <class S, int vectors> GS_INLINE void prefetch_tile(const real<S>* C, off ldc) {
#pragma GCC unroll 8
  for (int j = 0; j < max_columns<S>; j++) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) __builtin_prefetch(C + v * lanes<real<S>>, 1);
    __builtin_prefetch(C + vectors * lanes<real<S>> - 1, 1);
    next_column(C, ldc);
  }
}

// All columns of one strip of rows. For `lower`, row 0 of the strip is row `first_row` of C.
template <class S, int vectors, Shape shape, bool lower>
__attribute__((noinline)) static void strip(idx n, idx K, const real<S>* A, off lda, const real<S>* B, off ldb,
                                            real<S>* C, off ldc, auto last, bool conj, idx first_row) {
  constexpr int N = max_columns<S>;
  const off step_j = shape == Shape::rows ? width<S> : ldb;
  idx j = 0;
  for (; j + N <= n; j += N) {
    if constexpr (lower) {
      if (j + N - 1 > first_row) {
        tile<S, vectors, N, shape, true>(K, A, lda, B + j * step_j, ldb, C + j * ldc, ldc, last, conj, j - first_row);
        continue;
      }
    }
    if (K >= worth_prefetching && j + 2 * N <= n) prefetch_tile<S, vectors>(C + (j + N) * ldc, ldc);
    tile<S, vectors, N, shape, false>(K, A, lda, B + j * step_j, ldb, C + j * ldc, ldc, last, conj, 0);
  }
  const auto rest = [&](auto count) __attribute__((always_inline)) {
    constexpr int columns = count.value;
    if (!((n - j) & columns)) return;
    tile<S, vectors, columns, shape, lower>(K, A, lda, B + j * step_j, ldb, C + j * ldc, ldc, last, conj,
                                            j - first_row);
    j += columns;
  };
  if constexpr (N > 4) rest(Constant<4>());
  if constexpr (N > 2) rest(Constant<2>());
  rest(Constant<1>());
}

// The columns of C, which are in one block or in Strips. Addresses and leading dimensions count real numbers; an
// address is of row 0, which strips after the first do not store.
template <class S> struct OneBlock {
  real<S>* data;
  off ld;
  idx whole_strips(idx most) const { return most; }
  OneBlock from(idx row, idx column) const { return {data + row * width<S> + column * ld, ld}; }
  GS_INLINE_MEMBER void each_strip(idx columns, auto&& body) const { body(0, columns, data, ld); }
};
template <class S> struct Triangle {
  Strips<S> C;
  off place(off j) const { return j * C.ld - j * (j - C.width) / 2; }  // of the first entry of the strip with column j
  idx whole_strips(idx most) const { return most < C.width ? C.width : most / C.width * C.width; }
  Triangle from(idx, idx column) const { return {{C.data + place(column), C.ld - column, C.width}}; }
  GS_INLINE_MEMBER void each_strip(idx columns, auto&& body) const {
    for (idx j = 0; j < columns; j += C.width)
      body(j, columns - j < C.width ? columns - j : C.width, (real<S>*)(C.data + place(j) - j), (C.ld - j) * width<S>);
  }
};

// Rows in strips of up to max_vectors vectors, with `depth` columns of A; A is copied to `copied` unless that is null.
// Row 0 of A is for row `first_row` of C.
template <class S, Shape shape, bool lower> GS_INLINE void all_strips(idx m, idx n, idx depth, const real<S>* A,
                                                                      off lda, const real<S>* B, off ldb, const auto& C,
                                                                      idx first_row, bool conj, real<S>* copied) {
  using R = real<S>;
  constexpr int L = lanes<R>, w = width<S>;
  const off step_j = shape == Shape::rows ? w : ldb;
  const int most = depth <= 16 && vector_bytes == 64 ? 2 : max_vectors<S>;  // wide tiles need deep products
  idx left = (m * w + L - 1) / L;                                           // vectors
  for (idx i = 0; left > 0;) {
    const int take = left == most + 1 && most > 2 ? most - 1 : left < most ? (int)left : most;
    left -= take;
    const idx tail = m * w - (i + (take - 1) * L);  // lanes of the last vector
    const bool partial = tail < L;
    const Mask<R> last = first_lanes<R>(partial ? (int)tail : L);
    const idx row = first_row + i / w, end = first_row + (i + take * L) / w, columns = lower && end < n ? end : n;
    const R* a = A + i;
    off stride = lda;
    if (copied) {
      stride = take * L;
      for (idx k = 0; k < depth; k++)
        for (int v = 0; v < take; v++) {
          const R* from = A + k * lda + i + v * L;
          __builtin_prefetch(from + ahead * lda);
          store(copied + k * stride + v * L, partial && v == take - 1 ? load(from, last) : load(from));
        }
      a = copied;
    }
    const auto run = [&](auto mask) __attribute__((always_inline)) {
      with_constant<1, 2, 3>(
          take, [&](auto vectors) __attribute__((always_inline)) {
            if constexpr (vectors.value <= max_vectors<S>)
              C.each_strip(
                  columns, [&](idx j, idx count, R * c, off ldc) __attribute__((always_inline)) {
                    strip<S, vectors.value, shape, lower>(count, depth, a, stride, B + j * step_j, ldb,
                                                          c + off(row) * w, ldc, mask, conj, row - j);
                  });
          });
    };
    if constexpr (masks_are_free) run(last);
    else partial ? run(last) : run(AllLanes<R>());
    i += take * L;
  }
}

template <class S, Shape shape, bool lower>
__attribute__((noinline)) static void deep_update(idx m, idx n, idx K, const real<S>* A, off lda, const real<S>* B,
                                                  off ldb, const auto& C, idx first_row, bool conj) {
  alignas(64) real<S> copied[max_vectors<S> * lanes<real<S>> * strip_depth];
  const bool polls = double(m) * n * K > worth_polling;
  const off step_k = shape == Shape::rows ? ldb : width<S>, step_j = shape == Shape::rows ? width<S> : ldb;
  const idx block = C.whole_strips(block_width);
  for (idx k = 0; k < K; k += strip_depth) {
    const idx depth = K - k < strip_depth ? K - k : strip_depth;
    for (idx j = 0; j < n; j += block) {
      if (polls && kernel_must_stop()) return;
      const idx columns = n - j < block ? n - j : block;
      const idx top = lower && j > first_row ? j - first_row : 0;  // rows above column j are not in the lower triangle
      all_strips<S, shape, lower>(m - top, columns, depth, A + k * lda + top * width<S>, lda,
                                  B + k * step_k + j * step_j, ldb, C.from(lower ? j : 0, j),
                                  lower ? first_row + top - j : 0, conj, copied);
    }
  }
}

template <class S, Shape shape, bool lower> static void update_columns(idx m, idx n, idx K, const S* A_, off lda,
                                                                       const S* B_, off ldb, const auto& C,
                                                                       idx first_row, bool conj) {
  if (m <= 0 || n <= 0 || K <= 0) return;
  const real<S>*A = (const real<S>*)A_, *B = (const real<S>*)B_;
  lda *= width<S>, ldb *= width<S>;
  if (K > strip_depth || (K >= 24 && n >= 4 * max_columns<S>))
    return deep_update<S, shape, lower>(m, n, K, A, lda, B, ldb, C, first_row, conj);
  all_strips<S, shape, lower>(m, n, K, A, lda, B, ldb, C, first_row, conj, nullptr);
}

template <class S, Shape shape, bool lower>
static void update(idx m, idx n, idx K, const S* A, off lda, const S* B, off ldb, S* C, off ldc, bool conj) {
  update_columns<S, shape, lower>(m, n, K, A, lda, B, ldb, OneBlock<S>{(real<S>*)C, ldc * width<S>}, 0, conj);
}

// Subtracts A B^H or A B^T from rows i .. i + m - 1 of columns begin .. end - 1 of a lower triangle in strips. A strip
// begins at `begin`; A has the m rows, B the triangle's from the first on.
template <class S> static void update_strips(idx i, idx m, idx begin, idx end, idx K, const S* A, off lda, const S* B,
                                             off ldb, Strips<S> C, bool conj) {
  const idx above = begin > i ? begin - i : 0, last = i + m < end ? i + m : end;
  update_columns<S, Shape::rows, true>(m - above, last - begin, K, A + above, lda, B + begin, ldb,
                                       Triangle<S>{C}.from(begin, begin), i + above - begin, conj);
}

}  // namespace gs::GS_SIMD
