// Factorization of one group of systems in lockstep: the fronts of the plan in order. Every entry is processed in parts
// (simd/lanes.hpp).
#pragma once
#include "simd/lockstep_front.hpp"

#include "shared/values.hpp"

namespace gs::GS_SIMD {

// Statistics of the lanes of a part.
template <class V> struct Watch {
  using R = lane_real<V>;
  using Mask = LaneMask<R>;
  R perturb_below, tiny_below;
  Vec<R> largest_entry{}, largest_multiplier{}, largest_upper{};
  Mask n_perturbed{}, n_tiny{}, failed = Mask{} - 1, not_finite{};

  void set(const PivotRule& rule) { perturb_below = (R)rule.perturb_below, tiny_below = (R)rule.tiny_below; }
  GS_INLINE_MEMBER void entry(V v) { largest_entry = maximum(size1(v), largest_entry); }
  GS_INLINE_MEMBER void multiplier(V v) { largest_multiplier = maximum(size1(v), largest_multiplier); }
  GS_INLINE_MEMBER void upper(V v) { largest_upper = maximum(size1(v), largest_upper); }

  GS_INLINE_MEMBER void fail(Mask where, int position) {
    failed = (where & ((failed < 0) | (failed > position))) ? Mask{} + position : failed;
  }

  // A front without further rows has no other pivot candidates, so its pivots are perturbed only below the smaller
  // bound.
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
      p = choose(small, scaled(p, grow), p);
      p = choose(small & zero, from_real<V>(broadcast<R>(bound)), p);
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
    return from_real<V>(broadcast<R>(1) / GS_SIMD::root(size));
  }
};

template <class T> struct LockstepFactorization : LockstepLanes<T> {
  using Own = LockstepLanes<T>;
  using Own::width, Own::block, Own::entries, Own::value, Own::values;
  using typename Own::R, typename Own::V;

  // The product may be in range although the factor is not, so in single precision it is computed in double.
  static V scaled_entry(V v, double by) {
    if constexpr (sizeof(R) == 8) return scaled(v, broadcast<R>(by));
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

  // Whether canonical entries k .. k + block - 1 are adjacent in the caller's values too.
  static bool together(const off* source, off k) {
    if (!source) return true;
    for (int e = 1; e < block; e++)
      if (source[k + e] != source[k] + e) return false;
    return true;
  }

  // The largest real number in each lane, as bits: above all of them if one is not finite.
  struct Largest {
    BitVec<R> bits{};
    GS_INLINE_MEMBER void see(V v) {
      if constexpr (has_pairs<V>) bits = larger(larger(size_bits<R>(v.re), size_bits<R>(v.im)), bits);
      else bits = larger(size_bits<R>(v), bits);
    }
  };

  static void stream_to(Entries<V> to, V v) {
    if constexpr (has_pairs<V>) stream((R*)&to.p->re, v.re), stream((R*)&to.p->im, v.im);
    else stream((R*)to.p, v);
  }

  // Values are compared while they are in the nearest cache. The larger part of a difference is a lower bound of its
  // modulus, which is at most `corner` times as large, and the largest part is a lower bound of the largest entry: no
  // unsymmetric matrix passes as symmetric.
  template <bool keep> static void load_as(const LockstepProgram& P, const T* const* systems, const off* source,
                                           R* values_, R* kept_, LockstepNotes* notes) {
    const off nnz = P.A.nnz();
    const double bound = largest_number<R> / ((is_complex<T> ? 2 : 1) * (double)P.longest);
    constexpr double corner = is_complex<T> ? 1.4142135623730952 : 1, rounding = 1 - 1e-6;
    constexpr double most = gpu::SYMMETRY_UNITS * std::numeric_limits<R>::epsilon() * rounding / corner;
    for (int part = 0; part < parts; part++) {
      const T* const* own = systems + part * width;
      const Entries<V> to = entries(values_, part), kept = entries(kept_, part);
      Largest largest, difference;
      off pair = 0;
      const auto compare_up_to = [&](off end) {  // the second entry of a pair comes before the first
        for (; pair < P.n_pairs && P.first[pair] < end; pair++) {
          const V one = to[P.first[pair]], other = P.second[pair] == no_entry ? V{} : to[P.second[pair]];
          if constexpr (has_pairs<V>) difference.see({one.re - other.re, one.im + other.im});
          else difference.see(one - other);
        }
      };
      const auto see = [&](off k, V v) {
        largest.see(v);
        if constexpr (keep) stream_to(kept + k, v);
      };
      off k = 0;
      for (; k + block <= nnz; k += block) {
        compare_up_to(k);
        if (together(source, k)) {
          values(own, source ? source[k] : k, to + k, [&](int e, V v) { see(k + e, v); });
          continue;
        }
        for (off e = k; e < k + block; e++) see(e, (to + e)[0] = value(own, source[e]));
      }
      for (; k < nnz; k++) see(k, (to + k)[0] = value(own, source ? source[k] : k));
      compare_up_to(nnz);
      for (int l = 0; l < width; l++) {
        LockstepNotes& note = notes[part * width + l];
        note = {};
        note.failed = -1;
        note.largest_part = from_bits<R>(largest.bits[l]);
        note.not_finite = !(note.largest_part <= bound);
        note.not_symmetric = P.n_pairs > 0 && !((double)from_bits<R>(difference.bits[l]) <= most * note.largest_part);
        note.norms[0] = note.norms[1] = -1;
      }
    }
    if constexpr (keep) stream_end();
  }
  static void load(const LockstepProgram& P, const T* const* systems, const off* source, R* values, R* kept,
                   LockstepNotes* notes) {
    if (kept) load_as<true>(P, systems, source, values, kept, notes);
    else load_as<false>(P, systems, source, values, kept, notes);
  }

  template <bool cholesky> struct Factorization {
    const LockstepProgram& P;
    const R* values;
    R* blocks;
    Watch<V> watch[parts] = {};

    Factorization(const LockstepProgram& P, const R* values, R* blocks, const PivotRule& rule)
        : P(P), values(values), blocks(blocks) {
      for (Watch<V>& own : watch) own.set(rule);
    }

    LockstepParts<V> parts_of(const gpu::LockstepFront& f, int part, Entries<V> lower) const {
      const int W = f.width, R_ = f.rows, H = R_ - W;
      return {W, H, R_, lower, lower + R_ * W, entries(blocks, part) + f.block};
    }

    LockstepChild<V> child_of(idx c, int part) const {
      const gpu::LockstepFront& f = P.fronts[c];
      return {entries(blocks, part) + f.block, P.place + f.below, f.rows - f.width, f.above_pivots};
    }

    void add_listed(off begin, off end, Entries<V> to, int part) const {
      const Entries<V> from = entries(blocks, part);
      for (off k = begin; k < end; k++) add_to(to[P.sum_to[k]], from[P.sum_from[k]]);
    }
    template <class Work> void each_large_child(const gpu::LockstepFront& f, int part, Work&& work) const {
      for (idx c = f.child_begin; c < f.child_end; c++) {
        const LockstepChild<V> child = child_of(P.child[c], part);
        if (child.count > P.most_listed) work(child);
      }
    }

    // Builds the factor of the front at `at`.
    LockstepParts<V> front(const gpu::LockstepFront& f, int part, Entries<V> at) {
      const LockstepParts<V> front = parts_of(f, part, at);
      const Entries<V> from = entries(values, part);
      clear_panels<cholesky>(front);
      const auto entry = [&](int k) {
        const int ahead = k + ahead_entries < P.n_entries ? k + ahead_entries : k;
        __builtin_prefetch(from.p + (off)P.entry_source[ahead] * parts);
        const V v = from[P.entry_source[k]];
        return P.entry_scale ? scaled_entry(v, P.entry_scale[k]) : v;
      };
      Vec<R> largest = watch[part].largest_entry;  // in a register
      for (int k = f.entry_begin; k < f.entry_end; k++) {
        const V v = entry(k);
        largest = maximum(size1(v), largest);
        front.lower[(int)P.entry_target[k]] = v;
      }
      watch[part].largest_entry = largest;
      const off* const sums = P.sums + 2 * (&f - P.fronts);
      add_listed(sums[0], sums[1], front.lower, part);
      each_large_child(f, part, [&](const auto& child) { add_to_panels<cholesky>(front, child); });
      eliminate<cholesky>(front, f.first, watch[part]);
      add_listed(sums[1], sums[2], front.block, part);
      each_large_child(f, part, [&](const auto& child) { add_to_block<cholesky>(front, child); });
      return front;
    }
  };

  static void write_notes(const Watch<V> (&watch)[parts], LockstepNotes* notes) {
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

  static void prefetch_factor(const LockstepProgram& P, idx f, const R* factor) {
    const gpu::LockstepFront& front = P.fronts[f];
    const int H = front.rows - front.width;
    Own::template prefetch<1>(factor + front.factor * lockstep_numbers<T>,
                              front.width * (front.rows + (P.cholesky ? 0 : H)));
  }

  template <bool cholesky> static void factor_as(const LockstepProgram& P, const R* values, R* factor, R* blocks,
                                                 const PivotRule& rule, LockstepNotes* notes) {
    Factorization<cholesky> run(P, values, blocks, rule);
    for (idx f = 0; f < P.nf; f++) {
      if (f + ahead_fronts < P.nf) prefetch_factor(P, f + ahead_fronts, factor);
      for (int part = 0; part < parts; part++) run.front(P.fronts[f], part, entries(factor, part) + P.fronts[f].factor);
    }
    write_notes(run.watch, notes);
  }
  static void factor(const LockstepProgram& P, const R* values, R* to, R* blocks, const PivotRule& rule,
                     LockstepNotes* notes) {
    if (P.cholesky) factor_as<true>(P, values, to, blocks, rule, notes);
    else factor_as<false>(P, values, to, blocks, rule, notes);
  }
};

}  // namespace gs::GS_SIMD
