// Factorization and solves of one group of systems in lockstep: the fronts of the plan, one after the other, by the
// arithmetic that devices share (kernels/lockstep). Every entry is worked off in parts (simd/lanes.hpp).
#pragma once
#include "simd/lanes.hpp"

#include "lockstep/assembly.hpp"
#include "lockstep/eliminate.hpp"
#include "lockstep/solve.hpp"
#include "simd/lockstep_kernels.hpp"

namespace gs::GS_SIMD {

#ifndef MOSTPF
#define MOSTPF 64
#define AHEAD 2
#endif
constexpr int ahead = AHEAD;
constexpr int prefetch_entries = 24;  // of A, ahead

// What is noted of the lanes of a part.
template <class V> struct Watch {
  using R = lane_real<V>;
  using Mask = LaneMask<R>;
  R perturb_below, tiny_below;
  Vec<R> largest_entry{}, largest_multiplier{}, largest_upper{};
  Mask n_perturbed{}, n_tiny{}, failed = Mask{} - 1, not_finite{};

  GS_INLINE_MEMBER void entry(V v) { largest_entry = maximum(size1(v), largest_entry); }
  GS_INLINE_MEMBER void multiplier(V v) { largest_multiplier = maximum(size1(v), largest_multiplier); }
  GS_INLINE_MEMBER void upper(V v) { largest_upper = maximum(size1(v), largest_upper); }

  GS_INLINE_MEMBER void fail(Mask where, int position) {
    failed = (where & (failed < 0)) ? Mask{} + position : failed;
  }

  // Where there are no rows but the front's own, nothing can be taken for a pivot but what the matrix has.
  GS_INLINE_MEMBER V pivot(V p, int position, bool last) {
    const Vec<R> size = size1(p);
    const R bound = last && tiny_below < perturb_below ? tiny_below : perturb_below;
    const Mask fine = (size >= broadcast<R>(bound)) & (size >= broadcast<R>(tiny_below)) & (size <= broadcast<R>(max));
    if (__builtin_expect(any(~fine), 0)) {
      const Mask tiny = size < broadcast<R>(tiny_below), small = size < broadcast<R>(bound), zero = size == Vec<R>{};
      not_finite |= ~(size <= broadcast<R>(max));
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
    const Mask fine = (size > Vec<R>{}) & (size <= broadcast<R>(max));
    if (__builtin_expect(any(~fine), 0)) {
      not_finite |= ~(absolute<R>(size) <= broadcast<R>(max));
      fail(~fine, position);
      size = choose(fine, size, broadcast<R>(1));
    }
    return lanes_of<V>(broadcast<R>(1) / GS_SIMD::root(size));
  }

  static constexpr R max = sizeof(R) == 4 ? 3.40282347e38 : 1.7976931348623157e308;
};

template <class T> struct Lockstep {
  using S = std::remove_pointer_t<decltype(native((T*)nullptr))>;
  using R = real<S>;
  using V = Lanes<S>;
  static constexpr int width = lanes<R>;  // lanes of a part

  static Entries<V> entries(const R* p, int part) { return {(V*)p + part}; }

  static V value(const T* const* systems, off k) {
    V v;
    for (int l = 0; l < width; l++) {
      const S s = native(systems[l])[k];
      if constexpr (has_pairs<V>) v.re[l] = s.re, v.im[l] = s.im;
      else v[l] = s;
    }
    return v;
  }

  // Neighbouring entries that are moved at once, `block` of them: as many numbers as there are lanes.
  static constexpr int block = width * (int)sizeof(R) / (int)sizeof(S);
  static void values(const T* const* systems, off k, Entries<V> to) {
    Vec<R> v[width];
    for (int l = 0; l < width; l++) v[l] = GS_SIMD::load((const R*)(systems[l] + k));
    turn<R>(v);
    for (int e = 0; e < block; e++) {
      if constexpr (has_pairs<V>) to[e] = {v[2 * e], v[2 * e + 1]};
      else to[e] = v[e];
    }
  }
  static void values_back(Entries<V> from, off k, T* const* systems) {
    Vec<R> v[width];
    for (int e = 0; e < block; e++) {
      if constexpr (has_pairs<V>) v[2 * e] = from[e].re, v[2 * e + 1] = from[e].im;
      else v[e] = from[e];
    }
    turn<R>(v);
    for (int l = 0; l < width; l++) GS_SIMD::store((R*)(systems[l] + k), v[l]);
  }

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
    const R *values;
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
        const int ahead = k + prefetch_entries < P.n_entries ? k + prefetch_entries : k;
        __builtin_prefetch(from.p + (off)P.entry_source[ahead] * parts);
        const V v = from[P.entry_source[k]];
        return P.entry_scale ? scaled(v, P.entry_scale[k]) : v;
      };
      add_entries(Alone(), front, f.entry_begin, f.entry_end, P.entry_target, entry, watch[part]);
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

  template <bool cholesky> static void factor_as(const LockstepProgram& P, const R* values, R* factor, R* blocks,
                                                 const PivotRule& rule, LockstepNotes* notes) {
    Factorization<cholesky> run{P, values, factor, blocks, {}};
    for (Watch<V>& watch : run.watch)
      watch.perturb_below = (R)rule.perturb_below, watch.tiny_below = (R)rule.tiny_below;
    for (idx f = 0; f < P.nf; f++)
      for (int part = 0; part < parts; part++) run.front(P.fronts[f], part);
    run.note(notes);
  }
  static void factor(const LockstepProgram& P, const R* values, R* to, R* blocks, const PivotRule& rule,
                     LockstepNotes* notes) {
    if (P.cholesky) factor_as<true>(P, values, to, blocks, rule, notes);
    else factor_as<false>(P, values, to, blocks, rule, notes);
  }

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
    constexpr int lines = sizeof(S) / sizeof(R);
    const R* panel = factor + (front.factor + (upper ? (off)W * front.rows : 0)) * lockstep_numbers<T>;
    int count = (upper ? W * H : W * front.rows) * lines;
    if (count > MOSTPF) count = MOSTPF;
    for (int k = 0; k < count; k++) __builtin_prefetch(panel + k * (64 / (int)sizeof(R)));
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
      if (f + ahead < P.nf) prefetch_panel<Forward::upper>(P, f + ahead, factor);
      each(f, [](const auto& front, const auto& rows) { forward<Forward, columns>(front, rows); });
    }
    for (idx f = P.nf; f-- > 0;) {
      if (f >= ahead) prefetch_panel<Backward::upper>(P, f - ahead, factor);
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

  // The largest modulus in each lane; NaN where there is a NaN.
  struct Largest {
    Vec<R> size{}, nan{};
    GS_INLINE_MEMBER void see(V v) {
      const Vec<R> m = modulus(v);
      size = maximum(m, size), nan += m - m;
    }
    void write(double* to) const {
      for (int l = 0; l < width; l++) to[l] = nan[l] == 0 || size[l] > Watch<V>::max ? (double)size[l] : (double)nan[l];
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
  static void residual(const LockstepProgram& P, const R* values, Trans trans, int columns, const R* x, const R* b, R* r,
                       LockstepNorms* norms) {
    if (columns == 1) residual_of<1>(P, values, trans, x, b, r, norms);
    else residual_of<lockstep_columns>(P, values, trans, x, b, r, norms);
  }

  static LaneMask<R> mask_of(const std::uint8_t* chosen) {
    LaneMask<R> mask;
    for (int l = 0; l < width; l++) mask[l] = chosen[l] ? -1 : 0;
    return mask;
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

  static T number(const R* entry, int lane) {
    const int part = lane / width, l = lane % width;
    if constexpr (has_pairs<V>) {
      const R* re = entry + part * 2 * width + l;
      return T(re[0], re[width]);
    } else {
      return entry[part * width + l];
    }
  }
};

}  // namespace gs::GS_SIMD

#define GS_LOCKSTEP_TABLE(name, T)                                                                             \
  namespace gs::GS_SIMD {                                                                                      \
  extern const LockstepKernels<T> name;                                                                        \
  const LockstepKernels<T> name = {Lockstep<T>::load,   Lockstep<T>::factor, Lockstep<T>::solve,               \
                                   Lockstep<T>::residual, Lockstep<T>::add,  Lockstep<T>::choose,              \
                                   Lockstep<T>::take,   Lockstep<T>::give,   Lockstep<T>::permute,             \
                                   Lockstep<T>::number};                                                       \
  }
