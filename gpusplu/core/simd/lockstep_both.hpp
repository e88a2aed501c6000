// Factors and solves one group of systems in one pass: the forward solve uses a front right after its elimination,
// while it is in the nearest cache, and only the part of the factor that the backward solve needs is kept. For LU that
// is half: fewer bytes are written, and these dominate the cost of systems larger than a cache. Bit-identical to
// factoring and solving separately.
#pragma once
#include "simd/lockstep_factor.hpp"
#include "simd/lockstep_solve.hpp"

namespace gs::GS_SIMD {

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
