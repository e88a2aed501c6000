// Solves of one group of systems in lockstep: forward and backward through the fronts.
#pragma once
#include "simd/lockstep_factor.hpp"

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
    if (columns == 1) with_modes(P, trans, Constant<1>(), work);
    else with_modes(P, trans, Constant<lockstep_columns>(), work);
    if (conjugated) conjugate(P, columns, x);
  }
  template <int columns, class Work>
  static void with_modes(const LockstepProgram& P, Trans trans, Constant<columns> count, Work& work) {
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

// Factors and solves one group of systems in one pass: the forward solve uses a front right after its elimination,
// while it is in the nearest cache, and only the part of the factor that the backward solve needs is kept. For LU that
// is half: fewer bytes are written, and these dominate the cost of systems larger than a cache. Bit-identical to
// factoring and solving separately.
template <class T> struct LockstepBoth : LockstepLanes<T> {
  using Own = LockstepLanes<T>;
  using Substitution = LockstepSubstitution<T>;
  using Own::entries;
  using typename Own::R, typename Own::V;

  // The part of a front that the backward solve needs: its lower panel, or the square of its pivots followed by the
  // upper panel, in either case W rows times its height.
  template <bool upper> static LockstepParts<V> kept(const gpu::LockstepFront& f, Entries<V> at) {
    const int W = f.width, H = f.rows - W;
    return {W, H, upper ? W : f.rows, at, at + W * W, {}};
  }
  static off kept_size(const gpu::LockstepFront& f) { return (off)f.width * f.rows; }

  static void keep_upper(const LockstepParts<V>& front) {
    for (int k = 1; k < front.W; k++)
      for (int i = 0; i <= k; i++) front.lower[k * front.W + i] = front.lower[k * front.R + i];
    const Entries<V> to = front.lower + front.W * front.W;
    for (int e = 0; e < front.W * front.H; e++) to[e] = front.upper[e];
  }

  template <bool cholesky, class Forward, class Backward, int columns>
  static void run(const LockstepProgram& P, const R* values, R* workspace, R* blocks, const PivotRule& rule,
                  LockstepNotes* notes, R* x) {
    typename LockstepFactorization<T>::template Factorization<cholesky> factorization(P, values, blocks, rule);
    const auto rows_of = [&](const gpu::LockstepFront& f, int part) {
      return typename Substitution::template Rows<columns>{entries(x, part), P.below + f.below, f.first};
    };
    off at = 0;
    for (idx f = 0; f < P.nf; f++) {
      const gpu::LockstepFront& own = P.fronts[f];
      Own::template prefetch<1>(workspace + (at + kept_size(own)) * lockstep_numbers<T>, (int)kept_size(own));
      for (int part = 0; part < parts; part++) {
        const LockstepParts<V> front = factorization.front(own, part, entries(workspace, part) + at);
        forward<Forward, columns>(front, rows_of(own, part));
        if constexpr (Backward::upper) keep_upper(front);
      }
      at += kept_size(own);
    }
    factorization.note(notes);
    for (idx f = P.nf; f-- > 0;) {
      const gpu::LockstepFront& own = P.fronts[f];
      at -= kept_size(own);
      for (int part = 0; part < parts; part++)
        backward<Backward, columns>(kept<Backward::upper>(own, entries(workspace, part) + at), rows_of(own, part));
    }
  }

  static void factor_solve(const LockstepProgram& P, const R* values, R* workspace, R* blocks, const PivotRule& rule,
                           LockstepNotes* notes, Trans trans, int columns, R* x) {
    Substitution::with_modes(P, trans, columns, x, [&](auto cholesky, auto forward, auto backward, auto count) {
      run<cholesky.value, decltype(forward), decltype(backward), count.value>(P, values, workspace, blocks, rule, notes,
                                                                              x);
    });
  }
};

}  // namespace gs::GS_SIMD
