// Adds a child's contribution block to its parent. Rows that are neighbours in the parent too form a run. Runs are
// found once for many columns and added by vectors: rows of a child form a few runs, of 4 to 9 rows on average.
#pragma once
#include "simd/vec.hpp"

namespace gs::GS_SIMD {

constexpr idx columns_per_search = 32;  // columns per search for runs: both blocks' columns stay in the nearest caches

template <class S, bool assign> GS_INLINE void add_rows(idx count, const real<S>* from, real<S>* to) {
  each_vector<real<S>>(
      count, [&](idx i, auto mask) __attribute__((always_inline)) {
        store(to + i, assign ? load(from + i, mask) : load(to + i, mask) + load(from + i, mask), mask);
      });
}

// Columns [begin, end) of a run of `count` real numbers that begins at `from` and `to` in column 0.
template <class S, bool assign> GS_INLINE void add_run(idx begin, idx end, idx count, const idx* rel,
                                                       const real<S>* from, off ld, real<S>* to, off ldto) {
  using R = real<S>;
  if (count > lanes<R>) {
    for (idx j = begin; j < end; j++) add_rows<S, assign>(count, from + j * ld, to + rel[j] * ldto);
    return;
  }
  const Mask<R> rows = first_lanes<R>((int)count);
  for (idx j = begin; j < end; j++) {
    R* const out = to + rel[j] * ldto;
    const Vec<R> v = load(from + j * ld, rows);
    store(out, assign ? v : load(out, rows) + v, rows);
  }
}

template <class S, bool assign> static void add_columns_as(idx begin, idx end, idx first_row, bool lower, idx n_rows,
                                                           const idx* rel, const S* from_, off ld, S* to_, off ldto) {
  using R = real<S>;
  constexpr int w = width<S>;
  const R* const from = (const R*)from_;
  R* const to = (R*)to_;
  ld *= w, ldto *= w;
  for (idx c = begin; c < end; c += columns_per_search) {
    const idx c_end = end - c < columns_per_search ? end : c + columns_per_search;
    for (idx i = lower && c > first_row ? c : first_row, next; i < n_rows; i = next) {
      for (next = i + 1; next < n_rows && rel[next] == rel[next - 1] + 1;) next++;
      const idx whole = lower && i + 1 < c_end ? i + 1 : c_end;
      add_run<S, assign>(c, whole, (next - i) * w, rel, from + off(i) * w, ld, to + off(rel[i]) * w, ldto);
      for (idx j = whole > c ? whole : c; j < c_end && j < next; j++)
        add_rows<S, assign>((next - j) * w, from + j * ld + off(j) * w, to + rel[j] * ldto + off(rel[j]) * w);
    }
  }
}

template <class S> static void add_columns(idx begin, idx end, idx first_row, bool lower, idx n_rows, const idx* rel,
                                           const S* from, off ldfrom, S* to, off ldto, bool assign) {
  if (assign) add_columns_as<S, true>(begin, end, first_row, lower, n_rows, rel, from, ldfrom, to, ldto);
  else add_columns_as<S, false>(begin, end, first_row, lower, n_rows, rel, from, ldfrom, to, ldto);
}

}  // namespace gs::GS_SIMD
