// Numeric refactorization of a column LU on its fixed pattern: left-looking over nodes of 1, 2, 4 or 8 columns.
//
// A node's columns lie interleaved in a dense work array (row r of the node at r * width), so one load of a source's
// index and one broadcast of its value update all of them with vector instructions, and several columns of a source
// node are applied in one pass over its rows (supernode-panel updates; Demmel, Eisenstat, Gilbert, Li, Liu, SIAM J.
// Matrix Anal. Appl. 20 (1999), sections 2-3). Segments come in ascending order, which is topological.
// A node of several columns without segments is computed in place; A's entries are placed a few nodes ahead, when
// their stores have long been done as vectors load them. Cost: the multiply-adds of the factorization plus its padding.
// Invariant: work is zero between nodes.
#include "base/must_stop.hpp"
#include "simd/column_kernels.hpp"
#include "simd/column_row.hpp"
#include "simd/select.hpp"

namespace gs::GS_SIMD {
namespace {

template <class Real, bool Complex> class Worker {
 public:
  Worker(const ColumnProgram<Real>& program, const ColumnTask<Real>& task, ColumnMonitor<Real>& monitor)
      : P(program), task_(task), monitor_(monitor), work_(task.work) {}

  void run() {
    off left = kBetweenPolls;
    for (off i = 0; i < task_.count && i < kAhead; i++) place_if_direct(i);
    for (off i = 0; i < task_.count; i++) {
      const idx s = task_.nodes[i];
      if (i + kPrefetched < task_.count) prefetch(P.node + task_.nodes[i + kPrefetched]);
      if (i + kAhead < task_.count) place_if_direct(i + kAhead);
      left -= kOfNode + (P.node[s + 1].upper_value - P.node[s].upper_value);
      if (left < 0) {
        left = kBetweenPolls;
        if (kernel_must_stop()) return fail(kStopped, -1);
      }
      if (!process(P.node + s)) return;
      if (task_.done) __atomic_store_n(task_.done + s, task_.epoch, __ATOMIC_RELEASE);
    }
  }

  // Entry by entry. work: zeros, all lower and upper values and pivots, and the factor in the end.
  void run(const ColumnSteps<Real>& steps) {
    using R = Row<Real, Complex, 1>;
    using V = typename R::Vector;
    Real* const x = work_;
    Real largest[2] = {};  // of even and odd entries: maxima are slow one after another
    const auto put = [&](off q, Real& so_far) {
      const Real scale = steps.a_scale ? steps.a_scale[q] : Real(1);
      for (int part = 0; part < numbers; part++) {
        const Real v = task_.values[q * numbers + part] * scale;
        x[(off)steps.a_place[q] * numbers + part] = v;
        so_far = so_far > absolute(v) ? so_far : absolute(v);
      }
    };
    off q = 0;
    for (; q + 1 < steps.nnz; q += 2) put(q, largest[0]), put(q + 1, largest[1]);
    if (q < steps.nnz) put(q, largest[0]);
    monitor_.max_entry = largest[0] > largest[1] ? largest[0] : largest[1];
    V upper = R::zero();
    const EntryRun* run = steps.run;
    const idx* target = steps.target;
    for (idx k = 0; k < steps.n; k++) {
      const ColumnEntries& column = steps.column[k];
      for (const EntryRun* end = steps.run + column.end; run < end; run++) {
        const V u = R::load(x + (off)run->upper * numbers), turned = R::rotate(u);
        const Real* l = x + (off)run->lower * numbers;
        const off step = (off)run->stride * numbers;
        for (const idx* last = target + run->count; target < last; target++, l += step) {
          Real* const y = x + (off)*target * numbers;
          R::store(y, R::subtract(R::load(y), l, u, turned));
        }
      }
      Real inverse[numbers];
      if (!take_pivot(k, x + (off)column.pivot * numbers, inverse)) return;
      V multiplier = R::zero();
      Real* l = x + (off)column.lower * numbers;
      for (idx i = 0; i < column.n_lower; i++, l += (off)column.stride * numbers) {
        const V v = divide_out<1>(R::load(l), 0, inverse, R::zero(), R::zero());
        multiplier = R::larger(multiplier, v);
        R::store(l, v);
      }
      if (!multipliers_fit(R::largest(multiplier), k)) return;
      const auto observe = [&](idx first, idx count) {
        for (const Real *v = x + (off)first * numbers, *end = v + (off)count * numbers; v < end; v += numbers)
          upper = R::larger(upper, R::load(v));
      };
      observe(column.upper, column.n_upper), observe(column.diagonal, column.n_block);
    }
    monitor_.max_upper = R::largest(upper);
  }

 private:
  static constexpr int numbers = Complex ? 2 : 1;
  // In entries of U, each of which adds a column of L; a node itself counts as `kOfNode` entries.
  static constexpr off kBetweenPolls = 1 << 13, kOfNode = 64;
  static constexpr off kAhead = 6, kPrefetched = 16;  // nodes
  const ColumnProgram<Real>& P;
  const ColumnTask<Real>& task_;
  ColumnMonitor<Real>& monitor_;
  Real* work_;

  static bool is_direct(const ColumnNode* node) {
    return node[0].segment == node[1].segment && node[1].first - node[0].first > 1;
  }

  bool process(const ColumnNode* node) {
    return with_constant<1, 2, 4, 8>(node[1].first - node[0].first, [&](auto w) {
      if constexpr (w.value > 1)
        if (is_direct(node)) return process<w.value, true>(node);
      return process<w.value, false>(node);
    });
  }

  // The values are in A's order, so that the processor does not foresee them.
  void prefetch(const ColumnNode* node) const {
    __builtin_prefetch(task_.values + P.a_first[node[0].first] * numbers);
    __builtin_prefetch(task_.values + P.a_first[node[1].first - 1] * numbers);
    if (is_direct(node)) __builtin_prefetch(P.lower + node->lower_value * numbers, 1);
  }

  // Places the entries of node i of the task if it is computed in place; others need the work array, later.
  void place_if_direct(off i) {
    const ColumnNode* node = P.node + task_.nodes[i];
    if (!is_direct(node)) return;
    with_constant<2, 4, 8>(node[1].first - node[0].first, [&](auto w) { place_node<w.value>(node); });
  }

  template <int Width> void place_node(const ColumnNode* node) {
    using R = Row<Real, Complex, Width>;
    const off n_lower = node->n_lower + Width, n_outer = node->n_outer;
    Real* lower = P.lower + node->lower_value * numbers;
    Real* upper_end = P.upper + node->upper_value * numbers + n_outer * R::size;
    if (P.a_ptr[node[1].first] - P.a_ptr[node->first] < (n_lower + n_outer) * Width) {
      for (off i = 0; i < n_lower; i++) R::store(lower + i * R::size, R::zero());
      for (off i = 0; i < n_outer; i++) R::store(upper_end - (i + 1) * R::size, R::zero());
    }
    for (idx k = node[0].first; k < node[1].first; k++) place<Width, true>(k, lower, upper_end);
  }

  void fail(int status, idx column) {
    monitor_.status = status;
    monitor_.column = column;
  }

  bool multipliers_fit(Real largest, idx column) {
    if (largest > monitor_.max_multiplier) monitor_.max_multiplier = largest;
    if (largest <= task_.bound) return true;
    fail(2, column);
    return false;
  }

  // Stores column k of A, scaled.
  template <int Width, bool Direct> void place(idx k, Real* lower, Real* upper_end) {
    const off begin = P.a_ptr[k], count = P.a_ptr[k + 1] - begin;
    const idx *place = P.a_place + begin, *row = P.a_row + begin;
    const Real* value = task_.values + P.a_first[k] * numbers;
    const Real *row_scale = P.row_scale, scale = P.col_scale ? P.col_scale[k] : Real(1);
    Real largest[2] = {};  // of even and odd entries: maxima are slow one after another
    const auto put = [&](off p, Real& so_far) {
      const idx at = place[p];
      Real* x = (Direct && at < 0 ? upper_end : lower) + (off)at * numbers;
      const Real s = row_scale ? row_scale[Direct ? row[p] : idx((unsigned)at / Width)] * scale : scale;
      for (int part = 0; part < numbers; part++) {
        const Real v = value[p * numbers + part] * s;
        x[part] = v;
        so_far = so_far > absolute(v) ? so_far : absolute(v);
      }
    };
    off p = 0;
    for (; p + 1 < count; p += 2) put(p, largest[0]), put(p + 1, largest[1]);
    if (p < count) put(p, largest[0]);
    for (const Real v : largest)
      if (v > monitor_.max_entry) monitor_.max_entry = v;
  }

  // Eliminates one column of a source node of width 1: the common case, kept short.
  template <int Width> void apply_single(const ColumnSegment& segment, Real* upper, auto& largest) {
    using R = Row<Real, Complex, Width>;
    Real* work = work_;
    Real* x = work + (off)segment.first_row * R::size;
    const auto v = R::load(x), turned = R::rotate(v);
    largest = R::larger(largest, v);
    R::store(upper, v);
    R::store(x, R::zero());
    const Real* panel = P.lower + segment.lower_value * numbers;
    const idx* row = P.lower_row + segment.lower_row;
    const idx* end = row + segment.n_lower;
    for (; row + 1 < end; row += 2, panel += 2 * numbers) {
      Real *first = work + (off)row[0] * R::size, *second = work + (off)row[1] * R::size;
      const auto a = R::subtract(R::load(first), panel, v, turned);
      const auto b = R::subtract(R::load(second), panel + numbers, v, turned);
      R::store(first, a);
      R::store(second, b);
    }
    if (row < end) {
      Real* target = work + (off)*row * R::size;
      R::store(target, R::subtract(R::load(target), panel, v, turned));
    }
  }

  // Eliminates the last Count columns of a source node from the work array and keeps their rows of U.
  template <int Width, int Count> void apply(const ColumnSegment& segment, Real* upper, auto& largest) {
    using R = Row<Real, Complex, Width>;
    using V = typename R::Vector;
    const off ld = segment.width, skipped = segment.skipped;
    const Real* block = P.lower + (segment.lower_value + skipped) * numbers;
    V v[Count], turned[Count];
    Real* x = work_ + (off)segment.first_row * R::size;
#pragma GCC unroll 8
    for (int i = 0; i < Count; i++) {
      v[i] = R::load(x + i * R::size);
#pragma GCC unroll 8
      for (int j = 0; j < i; j++) v[i] = R::subtract(v[i], block + ((skipped + i) * ld + j) * numbers, v[j], turned[j]);
      turned[i] = R::rotate(v[i]);
      largest = R::larger(largest, v[i]);
      R::store(upper + i * R::size, v[i]);
      R::store(x + i * R::size, R::zero());
    }
    const Real* panel = block + ld * ld * numbers;
    const off step = ld * numbers;
    const idx* row = P.lower_row + segment.lower_row;
    const idx* end = row + segment.n_lower;
    Real* work = work_;
    for (; row < end; row++, panel += step) {
      Real* target = work + (off)*row * R::size;
      V acc = R::load(target);
#pragma GCC unroll 8
      for (int j = 0; j < Count; j++) acc = R::subtract(acc, panel + j * numbers, v[j], turned[j]);
      R::store(target, acc);
    }
  }

  // False if the node will not be finished.
  bool wait_for(idx s) const {
    return __atomic_load_n(task_.done + s, __ATOMIC_ACQUIRE) == task_.epoch ||
           task_.wait_for(task_.done + s, task_.team);
  }

  template <int Width> bool eliminate(const ColumnNode* node, auto& largest) {
    using R = Row<Real, Complex, Width>;
    Real* upper = P.upper + node->upper_value * numbers;
    const ColumnSegment* end = P.segment + node[1].segment;
    for (const ColumnSegment* s = P.segment + node[0].segment; s < end; s++) {
      if (task_.wait && !wait_for(s->source)) return false;
      if (s->width == 1) {
        apply_single<Width>(*s, upper, largest);
        upper += R::size;
        continue;
      }
      const int count = s->width - s->skipped;
      with_constant<1, 2, 3, 4, 5, 6, 7, 8>(count, [&](auto n) { apply<Width, n.value>(*s, upper, largest); });
      upper += count * R::size;
    }
    // Rows outside the diagonal block: A's entries unchanged.
    const idx* row = P.upper_row + node[1].upper_row - node->n_outer;
    for (const idx* last = row + node->n_outer; row < last; row++, upper += R::size) {
      Real* x = work_ + (off)*row * R::size;
      R::store(upper, R::load(x));
      R::store(x, R::zero());
    }
    return true;
  }

  // Keeps pivot k and its reciprocal, which it returns; false if it is unusable.
  bool take_pivot(idx k, const Real* pivot, Real* inverse) {
    Real size = absolute(pivot[0]);
    if constexpr (Complex) size += absolute(pivot[1]);
    Real* kept = P.pivot + k * numbers;
    kept[0] = pivot[0];
    inverse[0] = 1 / pivot[0];
    if constexpr (Complex) {
      kept[1] = pivot[1];
      const Real re = pivot[0] / size, im = pivot[1] / size;  // of size about 1: no overflow in the square
      const Real norm = fused(re, re, im * im) * size;
      inverse[0] = re / norm, inverse[1] = -im / norm;
    }
    if (size > monitor_.max_pivot) monitor_.max_pivot = size;
    if (size < monitor_.min_pivot) monitor_.min_pivot = size;
    Real* out = P.inverse_pivot + k * numbers;
    out[0] = inverse[0];
    if constexpr (Complex) out[1] = inverse[1];
    const Real finite = absolute(inverse[0]) * size + (Complex ? absolute(inverse[numbers - 1]) * size : Real(0));
    if (finite * 0 == 0 && finite >= std::numeric_limits<Real>::min()) return true;  // otherwise it has lost digits
    fail(size * 0 == 0 ? 1 : 3, k);
    return false;
  }

  template <int Width, bool Direct> bool process(const ColumnNode* node) {
    using R = Row<Real, Complex, Width>;
    using V = typename R::Vector;
    const idx first = node->first, *row = P.lower_row + node->lower_row;
    Real* lower = P.lower + node->lower_value * numbers;
    V largest = R::zero(), multiplier = R::zero();
    if constexpr (!Direct) {
      for (int c = 0; c < Width; c++) place<Width, false>(first + c, work_, nullptr);
      if (!eliminate<Width>(node, largest)) return false;
    }

    V u[Width], turned[Width];  // rows of U of the diagonal block, zero up to the diagonal
    Real inverse[Width][numbers];
    Real* x = Direct ? lower : work_ + (off)first * R::size;
    const auto take_row = [&](auto at) __attribute__((always_inline)) {
      constexpr int i = at.value;
      V v = R::load(x + i * R::size);
      if (!Direct) R::store(x + i * R::size, R::zero());
#pragma GCC unroll 8
      for (int c = 0; c < i; c++) v = divide_out<Width>(v, c, inverse[c], u[c], turned[c]);
      if (Width > 1) R::store(lower + i * R::size, v);
      alignas(64) Real kept[R::size];
      R::store(kept, v);
      if (!take_pivot(first + i, kept + i * numbers, inverse[i])) return false;
      u[i] = R::template from<(i + 1) * numbers>(v);
      multiplier = R::larger(multiplier, R::template up_to<i * numbers>(v));
      largest = R::larger(largest, v);
      turned[i] = R::rotate(u[i]);
      return true;
    };
    if (!in_turn<Width>(take_row)) return false;
    if (Width > 1) lower += Width * R::size;

    for (idx p = 0; p < node->n_lower; p++, lower += R::size) {
      Real* target = Direct ? lower : work_ + (off)row[p] * R::size;
      V l = R::load(target);
      if (!Direct) R::store(target, R::zero());
#pragma GCC unroll 8
      for (int c = 0; c < Width; c++) l = divide_out<Width>(l, c, inverse[c], u[c], turned[c]);
      multiplier = R::larger(multiplier, l);
      R::store(lower, l);
    }
    const Real largest_upper = R::largest(largest);
    if (largest_upper > monitor_.max_upper) monitor_.max_upper = largest_upper;
    return multipliers_fit(R::largest(multiplier), first);
  }

  // step(Constant<0>()), ... until one of them returns false.
  template <int count> GS_INLINE bool in_turn(auto&& step) {
    return [&]<int... i>(std::integer_sequence<int, i...>) { return (step(Constant<i>()) && ...); }
    (std::make_integer_sequence<int, count>());
  }

  // One row of L: divides its number c by the pivot, and subtracts that multiple of U's row c from the rest.
  template <int Width> GS_INLINE auto divide_out(typename Row<Real, Complex, Width>::Vector x, int c,
                                                 const Real* inverse, typename Row<Real, Complex, Width>::Vector u,
                                                 typename Row<Real, Complex, Width>::Vector turned) {
    using R = Row<Real, Complex, Width>;
    if constexpr (R::size == 1) {
      return x * inverse[0];
    } else {
      Real l[2];
      if constexpr (Complex) {
        const Real re = x[2 * c], im = x[2 * c + 1];
        l[0] = fused(re, inverse[0], -(im * inverse[1]));
        l[1] = fused(re, inverse[1], im * inverse[0]);
        x = R::subtract(x, l, u, turned);
        x[2 * c] = l[0], x[2 * c + 1] = l[1];
      } else {
        l[0] = x[c] * inverse[0];
        x = R::subtract(x, l, u, turned);
        x[c] = l[0];
      }
      return x;
    }
  }
};

}  // namespace

template <class T> void Kernels::refactor_columns(const ColumnProgram<real_t<T>>& program,
                                                  const ColumnTask<real_t<T>>& task,
                                                  ColumnMonitor<real_t<T>>& monitor) {
  Worker<real_t<T>, is_complex<T>>(program, task, monitor).run();
}

template <class T>
void Kernels::refactor_entries(const ColumnProgram<real_t<T>>& program, const ColumnSteps<real_t<T>>& steps,
                               const ColumnTask<real_t<T>>& task, ColumnMonitor<real_t<T>>& monitor) {
  Worker<real_t<T>, is_complex<T>>(program, task, monitor).run(steps);
}

#define GS_INSTANTIATE(T)                                                                                    \
  template void Kernels::refactor_columns<T>(const ColumnProgram<real_t<T>>&, const ColumnTask<real_t<T>>&,  \
                                             ColumnMonitor<real_t<T>>&);                                     \
  template void Kernels::refactor_entries<T>(const ColumnProgram<real_t<T>>&, const ColumnSteps<real_t<T>>&, \
                                             const ColumnTask<real_t<T>>&, ColumnMonitor<real_t<T>>&);
GS_FOR_SCALARS(GS_INSTANTIATE)
#undef GS_INSTANTIATE

}  // namespace gs::GS_SIMD
