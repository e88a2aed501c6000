// Solves of one group of systems in lockstep: forward through the fronts, and back.
#pragma once
#include "simd/lanes.hpp"

#include "lockstep/solve.hpp"
#include "simd/lockstep_lanes.hpp"

namespace gs::GS_SIMD {

template <class T> struct LockstepSubstitution : LockstepLanes<T> {
  using Own = LockstepLanes<T>;
  using Own::entries;
  using typename Own::R, typename Own::V;

  // Rows of a front in the vectors of all.
  template <int columns> struct Rows {
    Entries<V> x;
    const idx* rows_below;
    int first;
    GS_INLINE_MEMBER V& pivot(int i, int q) const { return x[(first + i) * columns + q]; }
    GS_INLINE_MEMBER V& below(int i, int q) const { return x[rows_below[i] * columns + q]; }
  };

  template <bool upper> static void prefetch_panel(const LockstepProgram& P, idx f, const R* factor) {
    const gpu::LockstepFront& front = P.fronts[f];
    const int W = front.width, H = front.rows - W;
    const off begin = front.factor + (upper ? (off)W * front.rows : 0);
    Own::template prefetch<0>(factor + begin * lockstep_numbers<T>, W * (upper ? H : front.rows));
  }

  template <class Forward, class Backward, int columns>
  static void solve_as(const LockstepProgram& P, const R* factor, R* x) {
    const auto each = [&](idx f, auto work) {
      const gpu::LockstepFront& front = P.fronts[f];
      const int W = front.width, H = front.rows - W;
      for (int part = 0; part < parts; part++) {
        const Entries<V> lower = entries(factor, part) + front.factor;
        work(LockstepParts<V>{W, H, W + H, lower, lower + W * (W + H), {}},
             Rows<columns>{entries(x, part), P.below + front.below, front.first});
      }
    };
    for (idx f = 0; f < P.nf; f++) {
      if (f + ahead_fronts < P.nf) prefetch_panel<Forward::upper>(P, f + ahead_fronts, factor);
      each(f, [](const auto& front, const auto& rows) { forward<Forward, columns>(front, rows); });
    }
    for (idx f = P.nf; f-- > 0;) {
      if (f >= ahead_fronts) prefetch_panel<Backward::upper>(P, f - ahead_fronts, factor);
      each(f, [](const auto& front, const auto& rows) { backward<Backward, columns>(front, rows); });
    }
  }
  template <int columns> static void solve_columns(const LockstepProgram& P, const R* factor, Trans trans, R* x) {
    const bool conjugate = has_pairs<V> && trans == (P.cholesky ? Trans::transpose : Trans::conj_transpose);
    if (P.cholesky) {
      using Plain = LockstepWay<false, true, false>;
      using Conjugate = LockstepWay<false, true, has_pairs<V>>;
      if (conjugate) solve_as<Conjugate, Plain, columns>(P, factor, x);
      else solve_as<Plain, Conjugate, columns>(P, factor, x);
    } else if (trans == Trans::none) {
      solve_as<LockstepWay<false, false, false>, LockstepWay<true, true, false>, columns>(P, factor, x);
    } else if (!conjugate) {
      solve_as<LockstepWay<true, true, false>, LockstepWay<false, false, false>, columns>(P, factor, x);
    } else {
      solve_as<LockstepWay<true, true, has_pairs<V>>, LockstepWay<false, false, has_pairs<V>>, columns>(P, factor, x);
    }
  }
  static void solve(const LockstepProgram& P, const R* factor, Trans trans, int columns, R* x) {
    if (columns == 1) solve_columns<1>(P, factor, trans, x);
    else solve_columns<lockstep_columns>(P, factor, trans, x);
  }
};

}  // namespace gs::GS_SIMD
