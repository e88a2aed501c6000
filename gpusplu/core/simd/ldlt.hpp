// LDL^T of a block with pivots of order 1 and 2, searched for in the whole remaining block (Bunch and Parlett, Direct
// methods for solving symmetric indefinite systems of linear equations, SIAM J. Numer. Anal. 8 (1971); the test for
// pivots of order 2 is algorithm 4.1 of Duff, Hogg, Lopez, A new sparse LDL^T solver using a posteriori threshold
// pivoting, SIAM J. Sci. Comput. 42 (2020)), and products with D and its inverse.
//
// D is stored apart from L: d is its diagonal, and e[k] below d[k] is zero unless d[k] and d[k + 1] form a pivot of
// order 2. L is then a unit triangle. Everything is for Hermitian matrices if `hermitian`, else for symmetric ones.
#pragma once
#include "simd/dense_kernels.hpp"
#include "simd/lu.hpp"
#include "simd/solve.hpp"

namespace gs::GS_SIMD {

constexpr double good_diagonal = 0.25;  // of the largest entry below

template <class S> GS_INLINE S conjugate_if(S v, bool conj) { return conj ? conjugate<true>(v) : v; }
template <class S> GS_INLINE S real_if(S v, bool real) { return real ? from_real<S>(real_part(v)) : v; }

// out = base - y1 c1 - y2 c2 for m rows, with base = out or, if not `subtract`, the negative without a base. Returns
// the magnitudes of the largest entries written.
template <class S, int terms, bool subtract>
GS_INLINE BitVec<real<S>> combine(idx m, const S* y1_, const S* y2_, S c1, S c2, S* out_) {
  using R = real<S>;
  using V = Vec<R>;
  const R *y1 = (const R*)y1_, *y2 = (const R*)y2_;
  R* out = (R*)out_;
  const Coefficient<S> a = coefficient(c1, false), b = coefficient(c2, false);
  BitVec<R> largest{};
  each_vector<R>(
      m * width<S>, [&](idx i, auto mask) __attribute__((always_inline)) {
        V sum = {};
        if constexpr (subtract) sum = load(out + i, mask);
        const V u = load(y1 + i, mask);
        sum = sub_times_vec(sum, u, a.first);
        if constexpr (Real<S>::complex) sum = sub_times_vec(sum, swap_pairs(u), a.second);
        if constexpr (terms == 2) {
          const V v = load(y2 + i, mask);
          sum = sub_times_vec(sum, v, b.first);
          if constexpr (Real<S>::complex) sum = sub_times_vec(sum, swap_pairs(v), b.second);
        }
        if constexpr (!subtract) sum = -sum;
        store(out + i, sum, mask);
        largest = larger(largest, magnitude_bits<S>(sum));
      });
  return largest;
}

// The largest entry of some columns.
template <class S> struct LargestEntry {
  Bits<real<S>> bits = -1;
  idx column = 0;
  void see(Bits<real<S>> candidate, idx j) {
    if (candidate > bits) bits = candidate, column = j;
  }
};

// Exchanges rows and columns p <= q of a symmetric matrix, stored as its lower triangle, including the columns of L
// before them.
template <class S> static void swap_symmetric(idx n, S* A, off lda, idx p, idx q, bool hermitian) {
  if (p == q) return;
  swap_entries(p, A + p, A + q, lda);
  const S corner = A[p + p * lda];
  A[p + p * lda] = A[q + q * lda], A[q + q * lda] = corner;
  for (idx i = p + 1; i < q; i++) {
    const S below = A[i + p * lda];
    A[i + p * lda] = conjugate_if(A[q + i * lda], hermitian);
    A[q + i * lda] = conjugate_if(below, hermitian);
  }
  A[q + p * lda] = conjugate_if(A[q + p * lda], hermitian);
  swap_entries(n - q - 1, A + q + 1 + p * lda, A + q + 1 + q * lda, 1);
}

// The inverse of [d1 conj(e); e d2] from the right: l1 = y1 i11 + y2 i21, l2 = y1 i12 + y2 i22.
template <class S> struct PairInverse {
  S i11, i21, i12, i22;
  PairInverse(S d1, S e, S d2, bool hermitian) {
    const S inverse_e = inverse(e), conj_e = conjugate_if(e, hermitian), a = times(d1, inverse_e);
    const S scale = inverse(sub_times(times(a, d2), conj_e, from_real<S>(1)));
    i11 = times(times(d2, inverse_e), scale), i22 = times(a, scale);
    i21 = sub_times(from_real<S>(0), scale, from_real<S>(1));
    i12 = times(times(i21, conj_e), inverse_e);
  }
};

// Whether [a conj(e); e b], with entries no larger than e, is far from singular.
template <class S> GS_INLINE bool is_good_pair(S a, S e, S b, bool hermitian) {
  const S square = times(e, conjugate_if(e, hermitian));
  return 2 * magnitude(sub_times(square, a, b)) >= magnitude(square);
}

// Subtracts the terms of the previous pivots, y and l = y D^-1, from the columns k .. of the block. Rows of y1 and y2
// are those of the block.
template <class S, int terms> GS_INLINE void eliminate_pivot(idx k, idx n, S* A, off lda, const S* y1, const S* y2,
                                                             const S* l1, const S* l2, bool hermitian) {
  for (idx j = k; j < n; j++) {
    const S c1 = conjugate_if(l1[j], hermitian), c2 = terms == 2 ? conjugate_if(l2[j], hermitian) : c1;
    combine<S, terms, true>(n - j, y1 + j, terms == 2 ? y2 + j : nullptr, c1, c2, A + j + j * lda);
  }
}

template <class S> struct LdltBlock {
  idx n;
  S* A;
  off lda;
  S *d, *e;
  idx* swaps;
  S* work;  // 2 n
  bool hermitian;

  void swap(idx k, idx p) {
    swaps[k] = p;
    swap_symmetric(n, A, lda, k, p, hermitian);
  }

  void take_one(idx k) {
    S* column = A + k * lda;
    d[k] = real_if(column[k], hermitian), e[k] = from_real<S>(0);
    const S i = inverse(d[k]);
    for (idx r = k + 1; r < n; r++) work[r] = column[r];
    combine<S, 1, false>(n - k - 1, work + k + 1, nullptr, i, i, column + k + 1);
    eliminate_pivot<S, 1>(k + 1, n, A, lda, work, nullptr, column, nullptr, hermitian);
  }

  void take_two(idx k) {
    S *one = A + k * lda, *two = one + lda, *other = work + n;
    d[k] = real_if(one[k], hermitian), d[k + 1] = real_if(two[k + 1], hermitian);
    e[k] = one[k + 1], e[k + 1] = from_real<S>(0), one[k + 1] = from_real<S>(0);
    const PairInverse<S> i(d[k], e[k], d[k + 1], hermitian);
    for (idx r = k + 2; r < n; r++) work[r] = one[r], other[r] = two[r];
    const idx m = n - k - 2;
    combine<S, 2, false>(m, work + k + 2, other + k + 2, i.i11, i.i21, one + k + 2);
    combine<S, 2, false>(m, work + k + 2, other + k + 2, i.i12, i.i22, two + k + 2);
    eliminate_pivot<S, 2>(k + 2, n, A, lda, work, other, one, two, hermitian);
  }
};

// Whether a diagonal entry is a pivot without inspecting other columns.
template <class R> GS_INLINE bool is_good_diagonal(R own, R below, double stop) {
  return own > stop && own >= R(good_diagonal) * below;
}

GS_INLINE void note_upper(double size, PivotStats& stats) {
  stats.max_upper = size > stats.max_upper ? size : stats.max_upper;
}

template <class S> GS_INLINE void copy_column(idx m, const S* from_, S* to_) {
  using R = real<S>;
  const R* from = (const R*)from_;
  R* to = (R*)to_;
  each_vector<R>(
      m * width<S>, [&](idx i, auto mask)
                        __attribute__((always_inline)) { store(to + i, load(from + i, mask), mask); });
}

// One vector of rows of one elimination step: l = x s, then subtracts l u_j from column j of the rest. Returns the
// magnitudes of the first of these columns, where the next pivot is sought.
template <class S, int rest>
GS_INLINE BitVec<real<S>> eliminate_rows(real<S>* x, off lda, S s, const S (&u)[8], auto mask) {
  using R = real<S>;
  using V = Vec<R>;
  V l = load(x, mask), turned;
  if constexpr (Real<S>::complex) {
    l = l * broadcast(s.re) + swap_pairs(l) * alternate<R>(-s.im, s.im);
    turned = swap_pairs(l) * alternate<R>(-1, 1);
  } else {
    l = l * broadcast(s);
  }
  store(x, l, mask);
  BitVec<R> next{};
#pragma GCC unroll 8
  for (int j = 0; j < rest; j++) {
    next_column(x, lda);
    V y = load(x, mask);
    if constexpr (Real<S>::complex) {
      y = sub_times_vec(y, l, broadcast(u[j].re));
      y = sub_times_vec(y, turned, broadcast(u[j].im));
    } else {
      y = sub_times_vec(y, l, broadcast(u[j]));
    }
    if (j == 0) next = magnitude_bits<S>(y);
    store(x, y, mask);
  }
  return next;
}

// One elimination step for the m rows below the pivot, at which `column` points.
template <class S, int rest>
__attribute__((noinline)) static Bits<real<S>> eliminate(idx m, S* column, off lda, S inverse_pivot) {
  using R = real<S>;
  constexpr int w = width<S>;
  S u[8];
#pragma GCC unroll 8
  for (int j = 0; j < rest; j++) u[j] = column[(j + 1) * lda];
  R* x = (R*)(column + 1);
  BitVec<R> next{};
  each_vector<R>(
      m * w, [&](idx i, auto mask) __attribute__((always_inline)) {
        next = larger(next, eliminate_rows<S, rest>(x + i, lda * w, inverse_pivot, u, mask));
      });
  return largest_lane<R>(next);
}

template <class S> GS_INLINE Bits<real<S>> eliminate_any(idx rest, idx m, S* column, off lda, S inverse_pivot) {
  return with_constant<0, 1, 2, 3, 4, 5, 6, 7>(
      rest, [&](auto count)
                __attribute__((always_inline)) { return eliminate<S, count.value>(m, column, lda, inverse_pivot); });
}

// Takes pivots from k on, up to block_columns of them, as long as the diagonal is good in its order: those of LU
// without interchanges of a panel with its upper triangle filled in. Returns their number; the later columns are
// updated.
template <class S> static idx good_pivots(LdltBlock<S> block, idx k, double stop, PivotStats& stats) {
  using R = real<S>;
  const off lda = block.lda;
  S *A = block.A + k + k * lda, *d = block.d + k;
  const idx m = block.n - k, n = m < block_columns ? m : block_columns;
  for (idx j = 1; j < n; j++)
    for (idx i = 0; i < j; i++) A[i + j * lda] = conjugate_if(A[j + i * lda], block.hermitian);
  Bits<R> largest = largest_magnitude(m, A);
  idx taken = 0;
  for (; taken < n; taken++) {
    S* column = A + taken + taken * lda;
    d[taken] = real_if(*column, block.hermitian);
    if (!is_good_diagonal(magnitude(d[taken]), from_bits<R>(largest), stop)) break;
    note_upper(from_bits<R>(largest), stats);
    *column = d[taken], block.e[k + taken] = from_real<S>(0), block.swaps[k + taken] = k + taken;
    if (taken + 1 < m) largest = eliminate_any(n - taken - 1, m - taken - 1, column, lda, inverse(d[taken]));
  }
  const idx rest = m - n;
  if (taken == 0 || rest == 0) return taken;
  alignas(64) S Y[block_columns * (ldlt_block_columns - block_columns)];
  for (idx j = 0; j < taken; j++) combine<S, 1, false>(rest, A + n + j * lda, nullptr, d[j], d[j], Y + j * rest);
  update<S, Shape::rows, true>(rest, rest, taken, Y, rest, A + n, lda, A + n + n * lda, lda, block.hermitian);
  return taken;
}

// Returns the number of pivots found; the rest of the block has no entry above `stop`.
template <class S> static idx find_pivots(LdltBlock<S> block, double stop, PivotStats& stats) {
  using R = real<S>;
  const idx n = block.n;
  const off lda = block.lda;
  S* A = block.A;
  idx k = 0;
  bool hopeful = true;  // the diagonal may be good for some columns
  while (k < n) {
    if (hopeful && n - k > 1) {
      const idx taken = good_pivots(block, k, stop, stats);
      k += taken, hopeful = taken == block_columns;
      if (hopeful || k == n) continue;
    }
    const R own = magnitude(A[k + k * lda]), below = from_bits<R>(largest_magnitude(n - k - 1, A + k + 1 + k * lda));
    if (is_good_diagonal(own, below, stop)) {
      note_upper(own > below ? own : below, stats);
      block.swap(k, k);
      block.take_one(k++);
      hopeful = true;
      continue;
    }
    LargestEntry<S> largest;
    for (idx j = k; j < n; j++) largest.see(largest_magnitude(n - j, A + j + j * lda), j);
    const double size = from_bits<R>(largest.bits);
    if (!(size > stop)) break;
    note_upper(size, stats);
    const idx c = largest.column, r = c + find_row(A + c + c * lda, n - c, largest.bits);
    const S a = real_if(A[c + c * lda], block.hermitian), b = real_if(A[r + r * lda], block.hermitian);
    if (r != c && is_good_pair(a, A[r + c * lda], b, block.hermitian)) {
      block.swap(k, c);
      block.swap(k + 1, r);
      block.take_two(k);
      k += 2;
    } else {
      block.swap(k, magnitude(b) > magnitude(a) ? r : c);
      block.take_one(k++);
    }
  }
  for (idx j = k; j < n; j++) block.swaps[j] = j;
  return k;
}

template <class S> static idx ldlt_block(idx n, S* A, off lda, S* d, S* e, idx* swaps, S* work, double stop,
                                         bool hermitian, PivotStats& stats) {
  return find_pivots(LdltBlock<S>{n, A, lda, d, e, swaps, work, hermitian}, stop, stats);
}

// The largest magnitude of each of n columns, and at least the old value in `sizes`.
template <class S> static void column_sizes(idx m, idx n, const S* X, off ldx, double* sizes) {
  for (idx j = 0; j < n; j++) {
    const double size = from_bits<real<S>>(largest_magnitude(m, X + j * ldx));
    sizes[j] = size > sizes[j] || size != size ? size : sizes[j];
  }
}

// X = Y D^-1 for m rows: multipliers.
template <class S> static void divide_by_pivots(idx m, idx n, const S* Y, off ldy, const S* d, const S* e, S* X,
                                                off ldx, bool hermitian, PivotStats& stats) {
  using R = real<S>;
  BitVec<R> largest{};
  for (idx k = 0; k < n; k++) {
    if (magnitude(e[k]) == 0) {
      const S i = inverse(d[k]);
      largest = larger(largest, combine<S, 1, false>(m, Y + k * ldy, nullptr, i, i, X + k * ldx));
      continue;
    }
    const PairInverse<S> i(d[k], e[k], d[k + 1], hermitian);
    const S *y1 = Y + k * ldy, *y2 = y1 + ldy;
    largest = larger(largest, combine<S, 2, false>(m, y1, y2, i.i11, i.i21, X + k * ldx));
    largest = larger(largest, combine<S, 2, false>(m, y1, y2, i.i12, i.i22, X + (k + 1) * ldx));
    k++;
  }
  add_largest(Largest<S>{largest}, stats.max_multiplier, stats);
}

// Y = X D for m rows.
template <class S>
static void times_pivots(idx m, idx n, const S* X, off ldx, const S* d, const S* e, S* Y, off ldy, bool hermitian) {
  for (idx k = 0; k < n; k++) {
    const S *x1 = X + k * ldx, *x2 = x1 + ldx;
    S *y1 = Y + k * ldy, *y2 = y1 + ldy;
    if (magnitude(e[k]) == 0) {
      combine<S, 1, false>(m, x1, nullptr, d[k], d[k], y1);
      continue;
    }
    combine<S, 2, false>(m, x1, x2, d[k], e[k], y1);
    combine<S, 2, false>(m, x1, x2, conjugate_if(e[k], hermitian), d[k + 1], y2);
    k++;
  }
}

}  // namespace gs::GS_SIMD
