// Factorization of one group of systems in lockstep: the fronts of the plan, one after the other, by the arithmetic
// that devices share (kernels/lockstep). Every entry is worked off in parts (simd/lanes.hpp).
#pragma once
#include "simd/lanes.hpp"

#include "lockstep/assembly.hpp"
#include "lockstep/eliminate.hpp"
#include "simd/lockstep_lanes.hpp"

namespace gs::GS_SIMD {

// What is noted of the lanes of a part.
template <class V> struct Watch {
  using R = lane_real<V>;
  using Mask = LaneMask<R>;
  R perturb_below, tiny_below;
  Vec<R> largest_entry{}, largest_multiplier{}, largest_upper{};
  Mask n_perturbed{}, n_tiny{}, failed = Mask{} - 1, not_finite{};

  GS_INLINE_MEMBER void multiplier(V v) { largest_multiplier = maximum(size1(v), largest_multiplier); }
  GS_INLINE_MEMBER void upper(V v) { largest_upper = maximum(size1(v), largest_upper); }

  GS_INLINE_MEMBER void fail(Mask where, int position) { failed = (where & (failed < 0)) ? Mask{} + position : failed; }

  // Where there are no rows but the front's own, nothing can be taken for a pivot but what the matrix has.
  GS_INLINE_MEMBER V pivot(V p, int position, bool last) {
    const Vec<R> size = size1(p);
    const R bound = last && tiny_below < perturb_below ? tiny_below : perturb_below;
    const Mask fine =
        (size >= broadcast<R>(bound)) & (size >= broadcast<R>(tiny_below)) & (size <= broadcast<R>(largest_number<R>));
    if (__builtin_expect(any(~fine), 0)) {
      const Mask tiny = size < broadcast<R>(tiny_below), small = size < broadcast<R>(bound), zero = size == Vec<R>{};
      not_finite |= ~(size <= broadcast<R>(largest_number<R>));
      n_tiny -= tiny, n_perturbed -= small;
      fail(tiny | not_finite, position);
      const Vec<R> grow = broadcast<R>(bound) / choose(zero, broadcast<R>(1), size);
      p = choose(small, times(p, grow), p);
      p = choose(small & zero, lanes_of<V>(broadcast<R>(bound)), p);
    }
    return reciprocal(p);
  }

  GS_INLINE_MEMBER V root(V p, int position) {
    Vec<R> size = real_part(p);
    const Mask fine = (size > Vec<R>{}) & (size <= broadcast<R>(largest_number<R>));
    if (__builtin_expect(any(~fine), 0)) {
      not_finite |= ~(absolute<R>(size) <= broadcast<R>(largest_number<R>));
      fail(~fine, position);
      size = choose(fine, size, broadcast<R>(1));
    }
    return lanes_of<V>(broadcast<R>(1) / GS_SIMD::root(size));
  }
};

// The part of it that notes entries of the matrix: on its own, it stays in a register.
template <class V> struct EntryWatch {
  Vec<lane_real<V>> largest;
  GS_INLINE_MEMBER void entry(V v) { largest = maximum(size1(v), largest); }
};

template <class T> struct LockstepFactorization : LockstepLanes<T> {
  using Own = LockstepLanes<T>;
  using Own::width, Own::block, Own::entries, Own::value, Own::values;
  using typename Own::R, typename Own::V;

  // The product may be in the range where the factor is not, so that of single precision it is taken in double.
  static V scaled(V v, double by) {
    if constexpr (sizeof(R) == 8) return times(v, broadcast<R>(by));
    else return in_double(v, by);
  }
  static V in_double(V v, double by) {
    if constexpr (has_pairs<V>) {
      for (int l = 0; l < width; l++) v.re[l] = (R)(v.re[l] * by), v.im[l] = (R)(v.im[l] * by);
    } else {
      for (int l = 0; l < width; l++) v[l] = (R)(v[l] * by);
    }
    return v;
  }

  // Whether canonical entries k .. k + block - 1 are neighbours in the caller's values too.
  static bool together(const off* source, off k) {
    if (!source) return true;
    for (int e = 1; e < block; e++)
      if (source[k + e] != source[k] + e) return false;
    return true;
  }

  static void load(const LockstepProgram& P, const T* const* systems, const off* source, R* values_, R* sums,
                   LockstepNotes* notes) {
    const PatternView A = P.A;
    for (int part = 0; part < parts; part++) {
      const T* const* own = systems + part * width;
      const Entries<V> to = entries(values_, part);
      Vec<R>* sum = (Vec<R>*)sums + part;
      for (idx i = 0; i < P.n; i++) sum[(off)i * parts] = Vec<R>{};
      Vec<R> largest{}, not_finite{};
      off loaded = 0, k = 0;
      const off nnz = A.nnz();
      for (idx j = 0; j < P.n; j++) {
        for (; loaded < A.ptr[j + 1]; loaded += block) {
          if (loaded + block <= nnz && together(source, loaded)) {
            values(own, source ? source[loaded] : loaded, to + loaded);
            continue;
          }
          for (off e = loaded; e < loaded + block && e < nnz; e++) to[(int)e] = value(own, source ? source[e] : e);
        }
        Vec<R> column{};
        for (; k < A.ptr[j + 1]; k++) {
          const Vec<R> size = modulus(to[(int)k]);
          column += size;
          sum[(off)A.ind[k] * parts] += size;
        }
        not_finite += column - column;
        largest = maximum(column, largest);
      }
      Vec<R> rows{};
      for (idx i = 0; i < P.n; i++) rows = maximum(sum[(off)i * parts], rows);
      for (int l = 0; l < width; l++) {
        LockstepNotes& note = notes[part * width + l];
        note = {};
        note.failed = -1;
        note.not_finite = !(not_finite[l] == 0);
        note.norms[0] = rows[l], note.norms[1] = largest[l];
      }
    }
  }

  template <bool cholesky> struct Factorization {
    const LockstepProgram& P;
    const R* values;
    R *factor, *blocks;
    Watch<V> watch[parts];

    LockstepParts<V> parts_of(const gpu::LockstepFront& f, int part) const {
      const int W = f.width, R_ = f.rows, H = R_ - W;
      const Entries<V> lower = entries(factor, part) + f.factor;
      return {W, H, R_, lower, lower + R_ * W, entries(blocks, part) + f.block};
    }

    LockstepChild<V> child_of(idx c, int part) const {
      const gpu::LockstepFront& f = P.fronts[c];
      return {entries(blocks, part) + f.block, P.place + f.below, f.rows - f.width, f.above_pivots};
    }

    void front(const gpu::LockstepFront& f, int part) {
      const LockstepParts<V> front = parts_of(f, part);
      const Entries<V> from = entries(values, part);
      clear_panels<cholesky>(Alone(), front);
      const auto entry = [&](int k) {
        const int ahead = k + ahead_entries < P.n_entries ? k + ahead_entries : k;
        __builtin_prefetch(from.p + (off)P.entry_source[ahead] * parts);
        const V v = from[P.entry_source[k]];
        return P.entry_scale ? scaled(v, P.entry_scale[k]) : v;
      };
      EntryWatch<V> entries_met{watch[part].largest_entry};
      add_entries(Alone(), front, f.entry_begin, f.entry_end, P.entry_target, entry, entries_met);
      watch[part].largest_entry = entries_met.largest;
      for (idx c = f.child_begin; c < f.child_end; c++)
        add_to_panels<cholesky>(Alone(), front, child_of(P.child[c], part));
      eliminate<cholesky>(Alone(), front, f.first, watch[part]);
      for (idx c = f.child_begin; c < f.child_end; c++)
        add_to_block<cholesky>(Alone(), front, child_of(P.child[c], part));
    }

    void note(LockstepNotes* notes) const {
      for (int part = 0; part < parts; part++) {
        const Watch<V>& w = watch[part];
        for (int l = 0; l < width; l++) {
          LockstepNotes& note = notes[part * width + l];
          note.largest_entry = w.largest_entry[l];
          note.multiplier = w.largest_multiplier[l], note.upper = w.largest_upper[l];
          note.n_perturbed = (idx)w.n_perturbed[l], note.n_tiny = (idx)w.n_tiny[l];
          note.failed = (idx)w.failed[l];
          note.not_finite = note.not_finite || w.not_finite[l] != 0;
        }
      }
    }
  };

  static void prefetch_factor(const LockstepProgram& P, idx f, const R* factor) {
    const gpu::LockstepFront& front = P.fronts[f];
    const int H = front.rows - front.width;
    Own::template prefetch<1>(factor + front.factor * lockstep_numbers<T>,
                              front.width * (front.rows + (P.cholesky ? 0 : H)));
  }

  template <bool cholesky> static void factor_as(const LockstepProgram& P, const R* values, R* factor, R* blocks,
                                                 const PivotRule& rule, LockstepNotes* notes) {
    Factorization<cholesky> run{P, values, factor, blocks, {}};
    for (Watch<V>& watch : run.watch)
      watch.perturb_below = (R)rule.perturb_below, watch.tiny_below = (R)rule.tiny_below;
    for (idx f = 0; f < P.nf; f++) {
      if (f + ahead_fronts < P.nf) prefetch_factor(P, f + ahead_fronts, factor);
      for (int part = 0; part < parts; part++) run.front(P.fronts[f], part);
    }
    run.note(notes);
  }
  static void factor(const LockstepProgram& P, const R* values, R* to, R* blocks, const PivotRule& rule,
                     LockstepNotes* notes) {
    if (P.cholesky) factor_as<true>(P, values, to, blocks, rule, notes);
    else factor_as<false>(P, values, to, blocks, rule, notes);
  }
};

}  // namespace gs::GS_SIMD
