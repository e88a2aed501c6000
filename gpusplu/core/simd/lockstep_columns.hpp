// LU by columns of one group of systems in lockstep, and its solves: a program of the plan
// (numeric/lockstep_columns.cpp), whose arrays are read once and in order. Every entry is processed in parts
// (simd/lanes.hpp).
//
// A column is assembled in its place in the factor. The columns that update it come in segments: the last `width`
// columns of a supernode, which have the same rows below them.
#pragma once
#include "simd/lockstep_solve.hpp"

namespace gs::GS_SIMD {

template <class T> struct LockstepColumnLU : LockstepSubstitution<T> {
  using Fronts = LockstepSubstitution<T>;
  using Fronts::entries, Fronts::width, Fronts::scaled_entry, Fronts::write_notes;
  using typename Fronts::R, typename Fronts::V;

  static constexpr int ahead_columns = 4, ahead_segments = 2;

  // Pivots k .. k + w - 1 of a supernode: where the rows begin that follow all of them, and L among the pivots.
  template <int w> struct Panel {
    Entries<V> below[w];
    Panel(const LockstepColumnProgram& P, Entries<V> factor, int k) {
      for (int p = 0; p < w; p++) below[p] = factor + (P.column[k + p].lower() + w - 1 - p);
    }
    GS_INLINE_MEMBER V among(int i, int p) const { return below[p][i - w]; }
  };

  // u = L^-1 u for the pivots of a panel.
  template <int w, int columns> GS_INLINE_MEMBER static void substitute(const Panel<w>& panel, V (&u)[w][columns]) {
    GS_UNROLL
    for (int p = 1; p < w; p++) GS_UNROLL
    for (int i = 0; i < p; i++) GS_UNROLL
    for (int q = 0; q < columns; q++) u[p][q] = sub_times(u[p][q], panel.among(p, i), u[i][q]);
  }

  // Asks for a column's entries of A, and for its place in the factor.
  static void prefetch_column(const LockstepColumnProgram& P, const R* values, const R* factor, int k) {
    const LockstepColumn& own = P.column[k];
    Fronts::template prefetch<0>(values + (off)own.entry * lockstep_numbers<T>, own.n_entries);
    Fronts::template prefetch<1>(factor + (off)own.begin * lockstep_numbers<T>, own.pivot() + 1 + own.below);
  }

  // The elimination of columns in their order, from the first of a phase on.
  struct Elimination {
    const LockstepColumnProgram& P;
    Entries<V> values, factor;
    Watch<V> watch{};
    const std::uint16_t* target = nullptr;
    const LockstepSegment* segment = nullptr;

    void begin(const LockstepPhase& phase) { target = P.target + phase.target, segment = P.segment + phase.segment; }

    GS_INLINE_MEMBER void column(int k) {
      const LockstepColumn& own = P.column[k];
      const Entries<V> column = factor + own.begin, from = values + own.entry;
      const double* const scale = P.entry_scale ? P.entry_scale + own.entry : nullptr;
      if (k + ahead_columns < P.n) prefetch_column(P, (const R*)values.p, (const R*)factor.p, k + ahead_columns);
      for (int e = 0; e < own.n_entries; e++) {
        const V v = scale ? scaled_entry(from[e], scale[e]) : from[e];
        watch.entry(v);
        column[target[e]] = v;
      }
      target += own.n_entries;
      for (int e = 0; e < own.n_fill; e++) column[target[e]] = V{};
      target += own.n_fill;
      int at = own.outer;
      for (const int pivot = own.pivot(); at < pivot; segment++) {
        Fronts::template prefetch<0>((const R*)(factor + P.column[segment[ahead_segments].column].lower()).p, 2);
        with_count<most_lockstep_panel>(segment->width, [&](auto width) { subtract<width.value>(column, at); });
        target += segment->count, at += segment->width;
      }
      watch.upper(column[at]);
      const V reciprocal = column[at] = watch.pivot(column[at], k, own.below == 0);
      for (int e = at + 1; e <= at + own.below; e++) {
        column[e] = times(column[e], reciprocal);
        watch.multiplier(column[e]);
      }
    }

    // The product of a segment and the entries of the column from `at` on.
    template <int w> GS_INLINE_MEMBER void subtract(Entries<V> column, int at) {
      const Panel<w> panel(P, factor, segment->column);
      V u[w][1];
      for (int p = 0; p < w; p++) u[p][0] = column[at + p];
      substitute(panel, u);
      for (int p = 0; p < w; p++) {
        watch.upper(u[p][0]);
        if (p > 0) column[at + p] = u[p][0];
      }
      for (int i = 0; i < segment->count; i++) {
        V& to = column[target[i]];
        V v = to;
        GS_UNROLL
        for (int p = 0; p < w; p++) v = sub_times(v, panel.below[p][i], u[p][0]);
        to = v;
      }
    }
  };

  // ---- substitution

  // Forward by pivots k .. k + w - 1 of a supernode.
  template <int columns> GS_INLINE_MEMBER static void forward_panel(const LockstepColumnProgram& P,
                                                                    const Entries<V> factor, const Entries<V> x, int k,
                                                                    int width) {
    with_count<most_lockstep_panel>(width, [&](auto count) {
      constexpr int w = count.value;
      const Panel<w> panel(P, factor, k);
      const LockstepColumn& last = P.column[k + w - 1];
      V v[w][columns];
      for (int p = 0; p < w; p++)
        for (int q = 0; q < columns; q++) v[p][q] = x[(k + p) * columns + q];
      substitute(panel, v);
      for (int p = 1; p < w; p++)
        for (int q = 0; q < columns; q++) x[(k + p) * columns + q] = v[p][q];
      const idx* const row = P.row + last.lower();
      for (int i = 0; i < last.below; i++) GS_UNROLL
      for (int q = 0; q < columns; q++) {
        V& to = x[row[i] * columns + q];
        V y = to;
        GS_UNROLL
        for (int p = 0; p < w; p++) y = sub_times(y, panel.below[p][i], v[p][q]);
        to = y;
      }
    });
  }
  template <int columns> static void backward_columns(const LockstepColumnProgram& P, const Entries<V> factor,
                                                      const Entries<V> x, const LockstepPhase& phase) {
    for (int k = phase.end; k-- > phase.begin;) {
      const LockstepColumn& column = P.column[k];
      const Entries<V> upper = factor + column.begin;
      const idx* const row = P.row + column.begin;
      const int pivot = column.pivot();
      V v[columns];
      for (int q = 0; q < columns; q++) x[k * columns + q] = v[q] = times(x[k * columns + q], upper[pivot]);
      for (int e = 0; e < pivot; e++) GS_UNROLL
      for (int q = 0; q < columns; q++) {
        V& to = x[row[e] * columns + q];
        to = sub_times(to, upper[e], v[q]);
      }
    }
  }
  template <int columns>
  static void solve_plain(const LockstepColumnProgram& P, const Entries<V> factor, const Entries<V> x) {
    for (int phase = P.n_phases; phase-- > 0;) {
      const LockstepPhase& own = P.phase[phase];
      if (own.has_lower)
        for (int k = own.begin, width; k < own.end; k += width)
          forward_panel<columns>(P, factor, x, k, width = P.column[k].width);
      backward_columns<columns>(P, factor, x, own);
    }
  }
  // Eliminates, and solves with A: phases from the last one on, each forward while its columns are in the nearest
  // cache.
  template <int columns> static Elimination eliminate_and_solve(Elimination elimination, const Entries<V> x) {
    const LockstepColumnProgram& P = elimination.P;
    for (int phase = P.n_phases; phase-- > 0;) {
      const LockstepPhase& own = P.phase[phase];
      elimination.begin(own);
      for (int k = own.begin, first = k; k < own.end; k++) {
        elimination.column(k);
        if (P.column[k].width > 1) continue;
        if (own.has_lower) forward_panel<columns>(P, elimination.factor, x, first, k + 1 - first);
        first = k + 1;
      }
      backward_columns<columns>(P, elimination.factor, x, own);
    }
    return elimination;
  }
  static Elimination eliminate(Elimination elimination) {
    const LockstepColumnProgram& P = elimination.P;
    if (P.n > 0) elimination.begin(P.phase[0]);
    for (int k = 0; k < P.n; k++) elimination.column(k);
    return elimination;
  }

  // x(k) minus the products of entries begin .. end - 1 of a column and their unknowns.
  template <int columns> GS_INLINE_MEMBER static void subtract_column(const LockstepColumnProgram& P,
                                                                      const Entries<V> factor, const Entries<V> x,
                                                                      int begin, int end, V (&v)[1][columns]) {
    subtract_rows<columns == 1 ? 4 : 1>(
        v, begin, end, [&](int e, int) { return factor[e]; }, [&](int e) { return x + P.row[e] * columns; });
  }

  template <int columns>
  static void solve_transposed(const LockstepColumnProgram& P, const Entries<V> factor, const Entries<V> x) {
    for (int phase = 0; phase < P.n_phases; phase++) {
      const LockstepPhase& own = P.phase[phase];
      for (int k = own.begin; k < own.end; k++) {
        const LockstepColumn& column = P.column[k];
        const int pivot = column.begin + column.pivot();
        V v[1][columns];
        for (int q = 0; q < columns; q++) v[0][q] = x[k * columns + q];
        subtract_column(P, factor, x, column.begin, pivot, v);
        for (int q = 0; q < columns; q++) x[k * columns + q] = times(v[0][q], factor[pivot]);
      }
      for (int k = own.has_lower ? own.end : own.begin; k-- > own.begin;) {
        const LockstepColumn& column = P.column[k];
        V v[1][columns];
        for (int q = 0; q < columns; q++) v[0][q] = x[k * columns + q];
        subtract_column(P, factor, x, column.lower(), column.lower() + column.below, v);
        for (int q = 0; q < columns; q++) x[k * columns + q] = v[0][q];
      }
    }
  }

  template <int columns>
  static void solve_columns(const LockstepColumnProgram& P, const R* factor, bool transposed, const R* x) {
    for (int part = 0; part < parts; part++)
      if (transposed) solve_transposed<columns>(P, entries(factor, part), entries(x, part));
      else solve_plain<columns>(P, entries(factor, part), entries(x, part));
  }

  // ---- by columns or by fronts

  // Runs elimination = work(elimination, part) for each part: a copy, so that its members are in registers.
  template <class Work> static void over_parts(const LockstepProgram& P, const R* values, R* factor,
                                               const PivotRule& rule, LockstepNotes* notes, Work&& work) {
    Watch<V> watch[parts];
    for (int part = 0; part < parts; part++) {
      Elimination elimination{P.columns, entries(values, part), entries(factor, part)};
      elimination.watch.set(rule);
      watch[part] = work(elimination, part).watch;
    }
    write_notes(watch, notes);
  }

  static void factor(const LockstepProgram& P, const R* values, R* to, R* blocks, const PivotRule& rule,
                     LockstepNotes* notes) {
    if (!P.columns.column) return Fronts::factor(P, values, to, blocks, rule, notes);
    over_parts(P, values, to, rule, notes, [](const Elimination& elimination, int) { return eliminate(elimination); });
  }
  static void solve(const LockstepProgram& P, const R* factor, Trans trans, int columns, R* x) {
    if (!P.columns.column) return Fronts::solve(P, factor, trans, columns, x);
    const bool conjugated = has_pairs<V> && trans == Trans::conj_transpose, transposed = trans != Trans::none;
    if (conjugated) Fronts::conjugate_all(P, columns, x);
    if (columns == 1) solve_columns<1>(P.columns, factor, transposed, x);
    else solve_columns<lockstep_columns>(P.columns, factor, transposed, x);
    if (conjugated) Fronts::conjugate_all(P, columns, x);
  }
  static void factor_solve(const LockstepProgram& P, const R* values, R* to, R* blocks, const PivotRule& rule,
                           LockstepNotes* notes, Trans trans, int columns, R* x) {
    if (!P.columns.column) return Fronts::factor_solve(P, values, to, blocks, rule, notes, trans, columns, x);
    if (trans != Trans::none) {
      factor(P, values, to, blocks, rule, notes);
      return solve(P, to, trans, columns, x);
    }
    over_parts(P, values, to, rule, notes, [&](const Elimination& elimination, int part) {
      return columns == 1 ? eliminate_and_solve<1>(elimination, entries(x, part))
                          : eliminate_and_solve<lockstep_columns>(elimination, entries(x, part));
    });
  }
};

}  // namespace gs::GS_SIMD
