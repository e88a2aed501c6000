// Solves of one group of systems in lockstep: forward and backward through the fronts, of a factor or right after the
// factorization.
#pragma once
#include "simd/lockstep_factor.hpp"

namespace gs::GS_SIMD {

template <class T> struct LockstepSubstitution : LockstepFactorization<T> {
  using Own = LockstepFactorization<T>;
  using Own::entries;
  using typename Own::R, typename Own::V;

  // The two passes of a solve: the factor that each reads, and what it does with a front.
  struct Passes {
    using Pass = void (*)(const LockstepParts<V>&, const LockstepRows<V>&);
    bool forward_upper, backward_upper;
    Pass forward, backward;
  };
  template <int columns> static Passes passes_of(const LockstepProgram& P, Trans trans) {
    if (P.cholesky)
      return {false, false, forward<false, true, columns, V>, backward<false, true, has_pairs<V>, columns, V>};
    if (trans == Trans::none)
      return {false, true, forward<false, false, columns, V>, backward<true, true, false, columns, V>};
    return {true, false, forward<true, true, columns, V>, backward<false, false, false, columns, V>};
  }
  // Calls work(passes). Solves with the conjugate of op(A) are solves with op(A) for conjugated vectors, which halves
  // the code: exact, since signs do not change rounding.
  template <class Work> static void with_passes(const LockstepProgram& P, Trans trans, int columns, R* x, Work&& work) {
    const bool conjugated = has_pairs<V> && trans == (P.cholesky ? Trans::transpose : Trans::conj_transpose);
    if (conjugated) conjugate_all(P, columns, x);
    work(columns == 1 ? passes_of<1>(P, trans) : passes_of<lockstep_columns>(P, trans));
    if (conjugated) conjugate_all(P, columns, x);
  }
  // Replaces x by its conjugate.
  static void conjugate_all(const LockstepProgram& P, int columns, R* x) {
    for (int part = 0; part < parts; part++) {
      const Entries<V> own = entries(x, part);
      for (int e = 0; e < P.n * columns; e++) own[e] = conjugate<true>(own[e]);
    }
  }

  static LockstepRows<V> rows_of(const LockstepProgram& P, const gpu::LockstepFront& f, const R* x, int part) {
    return {entries(x, part), P.below + f.below, f.first};
  }
  static void prefetch_panel(const LockstepProgram& P, idx f, const R* factor, bool upper) {
    const gpu::LockstepFront& front = P.fronts[f];
    const int W = front.width, H = front.rows - W;
    const off begin = front.factor + (upper ? (off)W * front.rows : 0);
    Own::template prefetch<0>(factor + begin * lockstep_numbers<T>, W * (upper ? H : front.rows));
  }

  static void solve(const LockstepProgram& P, const R* factor, Trans trans, int columns, R* x) {
    const auto solve_front = [&](idx f, typename Passes::Pass pass) {
      const gpu::LockstepFront& front = P.fronts[f];
      const int W = front.width, H = front.rows - W;
      for (int part = 0; part < parts; part++) {
        const Entries<V> lower = entries(factor, part) + front.factor;
        pass({W, H, W + H, lower, lower + W * (W + H), {}}, rows_of(P, front, x, part));
      }
    };
    with_passes(P, trans, columns, x, [&](const Passes& passes) {
      for (idx f = 0; f < P.nf; f++) {
        if (f + ahead_fronts < P.nf) prefetch_panel(P, f + ahead_fronts, factor, passes.forward_upper);
        solve_front(f, passes.forward);
      }
      for (idx f = P.nf; f-- > 0;) {
        if (f >= ahead_fronts) prefetch_panel(P, f - ahead_fronts, factor, passes.backward_upper);
        solve_front(f, passes.backward);
      }
    });
  }

  // Factors and solves in one pass: the forward solve uses a front right after its elimination, while it is in the
  // nearest cache, and only the part of the factor that the backward solve needs is kept. For LU that is half: fewer
  // bytes are written, and these dominate the cost of systems larger than a cache. Bit-identical to factoring and
  // solving separately.

  // The part of a front that the backward solve needs: its lower panel, or the square of its pivots followed by the
  // upper panel, in either case W rows times its height.
  static LockstepParts<V> kept(const gpu::LockstepFront& f, Entries<V> at, bool upper) {
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

  template <bool cholesky> static void factor_solve_as(const LockstepProgram& P, const R* values, R* workspace,
                                                       R* blocks, const PivotRule& rule, LockstepNotes* notes,
                                                       const Passes& passes, R* x) {
    typename Own::template Factorization<cholesky> factorization(P, values, blocks, rule);
    off at = 0;
    for (idx f = 0; f < P.nf; f++) {
      const gpu::LockstepFront& own = P.fronts[f];
      Own::template prefetch<1>(workspace + (at + kept_size(own)) * lockstep_numbers<T>, (int)kept_size(own));
      for (int part = 0; part < parts; part++) {
        const LockstepParts<V> front = factorization.front(own, part, entries(workspace, part) + at);
        passes.forward(front, rows_of(P, own, x, part));
        if (passes.backward_upper) keep_upper(front);
      }
      at += kept_size(own);
    }
    Own::write_notes(factorization.watch, notes);
    for (idx f = P.nf; f-- > 0;) {
      const gpu::LockstepFront& own = P.fronts[f];
      at -= kept_size(own);
      for (int part = 0; part < parts; part++)
        passes.backward(kept(own, entries(workspace, part) + at, passes.backward_upper), rows_of(P, own, x, part));
    }
  }
  static void factor_solve(const LockstepProgram& P, const R* values, R* workspace, R* blocks, const PivotRule& rule,
                           LockstepNotes* notes, Trans trans, int columns, R* x) {
    with_passes(P, trans, columns, x, [&](const Passes& passes) {
      if (P.cholesky) factor_solve_as<true>(P, values, workspace, blocks, rule, notes, passes, x);
      else factor_solve_as<false>(P, values, workspace, blocks, rule, notes, passes, x);
    });
  }
};

}  // namespace gs::GS_SIMD
