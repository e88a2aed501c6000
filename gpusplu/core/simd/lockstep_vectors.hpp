// What a measured solve in lockstep does besides substitution: vectors of all systems, residuals and their norms.
#pragma once
#include "simd/lockstep_lanes.hpp"

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

  template <int columns> static void residual_of(const LockstepProgram& P, const R* values, Trans trans, const R* x_,
                                                 const R* b_, R* r_, LockstepNorms* norms) {
    const PatternView A = P.A;
    for (int part = 0; part < parts; part++) {
      const Entries<V> a = entries(values, part), x = entries(x_, part), b = entries(b_, part), r = entries(r_, part);
      const int count = P.n * columns;
      if (trans == Trans::none) {
        for (int e = 0; e < count; e++) r[e] = b[e];
        for (idx j = 0; j < P.n; j++)
          for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++)
            for (int q = 0; q < columns; q++) {
              V& to = r[A.ind[k] * columns + q];
              to = mul_sub(a[(int)k], x[j * columns + q], to);
            }
      } else {
        const bool conjugate = trans == Trans::conj_transpose;
        for (idx j = 0; j < P.n; j++) {
          V sum[columns];
          for (int q = 0; q < columns; q++) sum[q] = b[j * columns + q];
          for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++) {
            const V v = conjugate ? conj(a[(int)k]) : a[(int)k];
            for (int q = 0; q < columns; q++) sum[q] = mul_sub(v, x[A.ind[k] * columns + q], sum[q]);
          }
          for (int q = 0; q < columns; q++) r[j * columns + q] = sum[q];
        }
      }
      for (int q = 0; q < columns; q++) {
        Largest of_x, of_b, of_r;
        for (int e = q; e < count; e += columns) of_b.see(b[e]), of_x.see(x[e]), of_r.see(r[e]);
        of_x.write(norms[q].x + part * width), of_b.write(norms[q].b + part * width);
        of_r.write(norms[q].residual + part * width);
      }
    }
  }
  static void residual(const LockstepProgram& P, const R* values, Trans trans, int columns, const R* x, const R* b,
                       R* r, LockstepNorms* norms) {
    if (columns == 1) residual_of<1>(P, values, trans, x, b, r, norms);
    else residual_of<lockstep_columns>(P, values, trans, x, b, r, norms);
  }

  static void add(off count, const std::uint8_t* chosen, const R* step, R* x) {
    for (int part = 0; part < parts; part++) {
      const LaneMask<R> mask = mask_of(chosen + part * width);
      for (off e = 0; e < count; e++) {
        V& to = ((V*)x)[e * parts + part];
        to = GS_SIMD::choose(mask, to + ((const V*)step)[e * parts + part], to);
      }
    }
  }
  static void choose(off count, const std::uint8_t* chosen, const R* other, R* x) {
    for (int part = 0; part < parts; part++) {
      const LaneMask<R> mask = mask_of(chosen + part * width);
      for (off e = 0; e < count; e++) {
        V& to = ((V*)x)[e * parts + part];
        to = GS_SIMD::choose(mask, ((const V*)other)[e * parts + part], to);
      }
    }
  }

  static void take(idx n, int columns, off stride, const T* const* systems, R* to_) {
    const int room = columns == 1 ? 1 : lockstep_columns;
    const off together = stride == room ? (off)n * room / block * block : 0;  // entries that are next to each other
    for (int part = 0; part < parts; part++) {
      const T* const* own = systems + part * width;
      const Entries<V> to = entries(to_, part);
      for (off e = 0; e < together; e += block) values(own, e, to + e);
      for (off e = together; e < (off)n * room; e++) {
        const off i = e / room, q = e % room;
        to[(int)e] = q < columns ? value(own, i * stride + q) : V{};
      }
    }
  }
  static void give(idx n, int columns, off stride, const R* from_, int present, T* const* systems) {
    const int room = columns == 1 ? 1 : lockstep_columns;
    for (int part = 0; part < parts; part++) {
      const bool full = present >= (part + 1) * width && stride == room;
      const off together = full ? (off)n * room / block * block : 0;
      const Entries<V> from = entries(from_, part);
      for (off e = 0; e < together; e += block) values_back(from + e, e, systems + part * width);
      for (off e = together; e < (off)n * room; e++) {
        const off i = e / room, q = e % room;
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
      const off there = (off)order[k] * count, here = (off)k * count;
      const Vec<R> by = broadcast<R>(scale ? (R)scale[order[k]] : R(1));
      for (int e = 0; e < count; e++)
        if (back) to[there + e] = times(from[here + e], by);
        else to[here + e] = times(from[there + e], by);
    }
  }
};

}  // namespace gs::GS_SIMD
