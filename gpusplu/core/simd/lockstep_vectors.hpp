// Operations of a measured solve in lockstep other than substitution: vectors of all systems, residuals and their
// norms.
#pragma once
#include "simd/lockstep_front.hpp"

namespace gs::GS_SIMD {

template <class T> struct LockstepVectors : LockstepLanes<T> {
  using Own = LockstepLanes<T>;
  using Own::width, Own::block, Own::entries, Own::value, Own::values, Own::values_back, Own::mask_of, Own::number;
  using typename Own::R, typename Own::V;

  // The largest modulus in each lane; NaN where there is a NaN.
  struct Largest {
    Vec<R> size{}, nan{};
    GS_INLINE_MEMBER void see(V v) {
      const Vec<R> m = modulus(v);
      size = maximum(m, size), nan += m - m;
    }
    void write(double* to) const {
      for (int l = 0; l < width; l++)
        to[l] = nan[l] == 0 || size[l] > largest_number<R> ? (double)size[l] : (double)nan[l];
    }
  };

  // r = b - A x, entry by entry: without loops over columns, which end unpredictably. `sums` of moduli, by rows.
  template <int columns, bool sized> static void subtract_products(const PatternView A, const idx* column, Entries<V> a,
                                                                   Entries<V> x, Entries<V> r, Vec<R>* sums) {
    const off nnz = A.nnz();
    for (off k = 0; k < nnz; k++) {
      const V v = (a + k)[0];
      if constexpr (sized) sums[(off)A.ind[k] * parts] += modulus(v);
      for (int q = 0; q < columns; q++) {
        V& to = r[A.ind[k] * columns + q];
        to = sub_times(to, v, x[column[k] * columns + q]);
      }
    }
  }
  // r = b - A^T x or A^H x; returns the largest of the sums of moduli, by columns, if requested.
  template <int columns, bool sized, bool conj>
  static Vec<R> subtract_transposed(const PatternView A, Entries<V> a, Entries<V> x, Entries<V> b, Entries<V> r) {
    Vec<R> largest{};
    for (idx j = 0; j < A.n; j++) {
      V sum[columns];
      Vec<R> size{};
      for (int q = 0; q < columns; q++) sum[q] = b[j * columns + q];
      for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++) {
        const V v = conjugate<conj>((a + k)[0]);
        if constexpr (sized) size += modulus(v);
        for (int q = 0; q < columns; q++) sum[q] = sub_times(sum[q], v, x[A.ind[k] * columns + q]);
      }
      if constexpr (sized) largest = maximum(size, largest);
      for (int q = 0; q < columns; q++) r[j * columns + q] = sum[q];
    }
    return largest;
  }

  template <int columns, bool sized> static void residual_of(const LockstepProgram& P, const R* values, Trans trans,
                                                             const R* x_, const R* b_, R* r_, LockstepNorms* norms,
                                                             R* sums, LockstepNotes* notes) {
    const PatternView A = P.A;
    for (int part = 0; part < parts; part++) {
      const Entries<V> a = entries(values, part), x = entries(x_, part), b = entries(b_, part), r = entries(r_, part);
      const int count = P.n * columns;
      Vec<R> norm{};
      if (trans == Trans::none) {
        Vec<R>* const sum = (Vec<R>*)sums + part;
        for (int e = 0; e < count; e++) r[e] = b[e];
        if constexpr (sized)
          for (idx i = 0; i < P.n; i++) sum[(off)i * parts] = Vec<R>{};
        subtract_products<columns, sized>(A, P.column, a, x, r, sum);
        if constexpr (sized)
          for (idx i = 0; i < P.n; i++) norm = maximum(sum[(off)i * parts], norm);
      } else if (has_pairs<V> && trans == Trans::conj_transpose) {
        norm = subtract_transposed<columns, sized, true>(A, a, x, b, r);
      } else {
        norm = subtract_transposed<columns, sized, false>(A, a, x, b, r);
      }
      if constexpr (sized)
        for (int l = 0; l < width; l++) notes[part * width + l].norms[trans != Trans::none] = norm[l];
      for (int q = 0; q < columns; q++) {
        Largest of_x, of_b, of_r;
        for (int e = q; e < count; e += columns) of_b.see(b[e]), of_x.see(x[e]), of_r.see(r[e]);
        of_x.write(norms[q].x + part * width), of_b.write(norms[q].b + part * width);
        of_r.write(norms[q].residual + part * width);
      }
    }
  }
  static void residual(const LockstepProgram& P, const R* values, Trans trans, int columns, const R* x, const R* b,
                       R* r, LockstepNorms* norms, R* sums, LockstepNotes* notes) {
    const auto of = [&](auto count) {
      if (sums) residual_of<count.value, true>(P, values, trans, x, b, r, norms, sums, notes);
      else residual_of<count.value, false>(P, values, trans, x, b, r, norms, sums, notes);
    };
    if (columns == 1) of(Constant<1>());
    else of(Constant<lockstep_columns>());
  }

  // x = value(x, other) in the chosen lanes.
  static void update_chosen(off count, const std::uint8_t* chosen, const R* other, R* x, auto&& value) {
    for (int part = 0; part < parts; part++) {
      const LaneMask<R> mask = mask_of(chosen + part * width);
      for (off e = 0; e < count; e++) {
        V& to = ((V*)x)[e * parts + part];
        to = GS_SIMD::choose(mask, value(to, ((const V*)other)[e * parts + part]), to);
      }
    }
  }
  static void add(off count, const std::uint8_t* chosen, const R* step, R* x) {
    update_chosen(count, chosen, step, x, [](V own, V other) { return plus(own, other); });
  }
  static void choose(off count, const std::uint8_t* chosen, const R* other, R* x) {
    update_chosen(count, chosen, other, x, [](V, V other) { return other; });
  }

  static void take(idx n, int columns, off stride, const T* const* systems, R* to_) {
    const int capacity = columns == 1 ? 1 : lockstep_columns;
    const off together = stride == capacity ? (off)n * capacity / block * block : 0;  // entries that are adjacent
    for (int part = 0; part < parts; part++) {
      const T* const* own = systems + part * width;
      const Entries<V> to = entries(to_, part);
      for (off e = 0; e < together; e += block) values(own, e, to + e, [](int, V) {});
      for (off e = together; e < (off)n * capacity; e++) {
        const off i = e / capacity, q = e % capacity;
        to[(int)e] = q < columns ? value(own, i * stride + q) : V{};
      }
    }
  }
  static void give(idx n, int columns, off stride, const R* from_, int present, T* const* systems) {
    const int capacity = columns == 1 ? 1 : lockstep_columns;
    for (int part = 0; part < parts; part++) {
      const bool full = present >= (part + 1) * width && stride == capacity;
      const off together = full ? (off)n * capacity / block * block : 0;
      const Entries<V> from = entries(from_, part);
      for (off e = 0; e < together; e += block) values_back(from + e, e, systems + part * width);
      for (off e = together; e < (off)n * capacity; e++) {
        const off i = e / capacity, q = e % capacity;
        for (int l = part * width; l < (part + 1) * width && l < present && q < columns; l++)
          systems[l][i * stride + q] = number(from_ + e * lockstep_numbers<T>, l);
      }
    }
  }

  static void permute(idx n, int columns, const idx* order, const double* scale, bool back, const R* from_, R* to_) {
    const V* from = (const V*)from_;
    V* to = (V*)to_;
    const int count = columns * parts;
    for (idx k = 0; k < n; k++) {
      const off permuted = (off)order[k] * count, ordered = (off)k * count;
      const Vec<R> by = broadcast<R>(scale ? (R)scale[order[k]] : R(1));
      for (int e = 0; e < count; e++)
        if (back) to[permuted + e] = scaled(from[ordered + e], by);
        else to[ordered + e] = scaled(from[permuted + e], by);
    }
  }
};

}  // namespace gs::GS_SIMD
