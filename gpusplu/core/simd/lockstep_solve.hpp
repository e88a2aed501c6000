// Solves of one group of systems in lockstep: forward and backward through the fronts.
#pragma once
#include "simd/lanes.hpp"

#include "lockstep/solve.hpp"
#include "simd/lockstep_lanes.hpp"

namespace gs::GS_SIMD {

template <class T> struct LockstepSubstitution : LockstepLanes<T> {
  using Own = LockstepLanes<T>;
  using Own::entries;
  using typename Own::R, typename Own::V;

  // Rows of a front in the vectors of the whole system.
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
  // Replaces x by its conjugate.
  static void conjugate(const LockstepProgram& P, int columns, R* x) {
    for (int part = 0; part < parts; part++) {
      const Entries<V> own = entries(x, part);
      for (int e = 0; e < P.n * columns; e++) own[e] = conj(own[e]);
    }
  }
  // Calls work(cholesky, forward, backward, columns) with constants and modes. Solves with the conjugate of op(A) are
  // solves with op(A) for conjugated vectors, which halves the code: exact, since signs do not change rounding.
  template <class Work> static void with_modes(const LockstepProgram& P, Trans trans, int columns, R* x, Work&& work) {
    const bool conjugated = has_pairs<V> && trans == (P.cholesky ? Trans::transpose : Trans::conj_transpose);
    if (conjugated) conjugate(P, columns, x);
    if (columns == 1) with_modes(P, trans, Count<1>(), work);
    else with_modes(P, trans, Count<lockstep_columns>(), work);
    if (conjugated) conjugate(P, columns, x);
  }
  template <int columns, class Work>
  static void with_modes(const LockstepProgram& P, Trans trans, Count<columns> count, Work& work) {
    const std::true_type cholesky;
    const std::false_type lu;
    const LockstepMode<false, false, false> lower;
    const LockstepMode<true, true, false> upper;
    if (P.cholesky)
      work(cholesky, LockstepMode<false, true, false>(), LockstepMode<false, true, has_pairs<V>>(), count);
    else if (trans == Trans::none) work(lu, lower, upper, count);
    else work(lu, upper, lower, count);
  }
  static void solve(const LockstepProgram& P, const R* factor, Trans trans, int columns, R* x) {
    with_modes(P, trans, columns, x, [&](auto, auto forward, auto backward, auto count) {
      solve_as<decltype(forward), decltype(backward), count.value>(P, factor, x);
    });
  }
};

}  // namespace gs::GS_SIMD
