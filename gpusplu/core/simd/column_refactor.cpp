// Numeric refactorization of a column LU on its fixed pattern: left-looking over nodes of 1, 2, 4 or 8 columns.
//
// A node's columns lie interleaved in a dense work array (row r of the node at r * width), so one load of a source's
// index and one broadcast of its value update all of them with vector instructions, and several columns of a source
// node are applied in one pass over its rows (supernode-panel updates; Demmel, Eisenstat, Gilbert, Li, Liu, SIAM J.
// Matrix Anal. Appl. 20 (1999), sections 2-3). Segments come in ascending order, which is topological.
// Cost: the multiply-adds of the factorization plus its padding. Invariant: work is zero between nodes.
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
    for (off i = 0; i < task_.count; i++) {
      const idx s = task_.nodes[i];
      if (i + 8 < task_.count) __builtin_prefetch(task_.values + P.a_first[P.node[task_.nodes[i + 8]].first] * numbers);
      left -= kOfNode + (P.node[s + 1].upper_value - P.node[s].upper_value);
      if (left < 0) {
        left = kBetweenPolls;
        if (kernel_must_stop()) return fail(kStopped, -1);
      }
      if (!process(P.node + s)) return;
      if (task_.done) __atomic_store_n(task_.done + s, task_.epoch, __ATOMIC_RELEASE);
    }
  }

 private:
  static constexpr int numbers = Complex ? 2 : 1;
  // In entries of U, each of which adds a column of L; a node itself counts as `kOfNode` entries.
  static constexpr off kBetweenPolls = 1 << 13, kOfNode = 64;
  const ColumnProgram<Real>& P;
  const ColumnTask<Real>& task_;
  ColumnMonitor<Real>& monitor_;
  Real* work_;

  bool process(const ColumnNode* node) {
    return with_constant<1, 2, 4, 8>(node[1].first - node[0].first, [&](auto w) { return process<w.value>(node); });
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

  // Columns of A, scaled, into the work array.
  template <int Width> void scatter(idx first) {
    const Real* row_scale = P.row_scale;
    Real largest = 0;
    for (int c = 0; c < Width; c++) {
      const idx k = first + c;
      const off begin = P.a_ptr[k], count = P.a_ptr[k + 1] - begin;
      const idx* row = P.a_row + begin;
      const Real* value = task_.values + P.a_first[k] * numbers;
      Real* x = work_ + c * numbers;
      const Real scale = P.col_scale ? P.col_scale[k] : Real(1);
      if (row_scale) {
        for (off p = 0; p < count; p++) put<Width>(x, row[p], value + p * numbers, row_scale[row[p]] * scale, largest);
      } else {
        for (off p = 0; p < count; p++) put<Width>(x, row[p], value + p * numbers, scale, largest);
      }
    }
    if (largest > monitor_.max_entry) monitor_.max_entry = largest;
  }
  template <int Width> GS_INLINE void put(Real* x, idx row, const Real* value, Real scale, Real& largest) {
    for (int part = 0; part < numbers; part++) {
      const Real v = value[part] * scale;
      x[(off)row * (Width * numbers) + part] = v;
      largest = largest > absolute(v) ? largest : absolute(v);
    }
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

  // Spins until another thread has finished the node; false if that thread failed instead.
  bool wait_for(idx s) const {
    for (int spin = 0; __atomic_load_n(task_.done + s, __ATOMIC_ACQUIRE) != task_.epoch; spin++) {
      if (__atomic_load_n(task_.failed, __ATOMIC_RELAXED)) return false;
      task_.relax(spin);
    }
    return true;
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

  bool take_pivot(idx k, const Real* pivot, Real* inverse) {
    Real size = absolute(pivot[0]);
    if constexpr (Complex) size += absolute(pivot[1]);
    Real* kept = P.pivot + k * numbers;
    kept[0] = pivot[0];
    inverse[0] = 1 / pivot[0];
    if constexpr (Complex) {
      kept[1] = pivot[1];
      const Real re = pivot[0] / size, im = pivot[1] / size;  // of size about 1: no overflow in the square
      const Real norm = (re * re + im * im) * size;
      inverse[0] = re / norm, inverse[1] = -im / norm;
    }
    Real* out = P.inverse_pivot + k * numbers;
    out[0] = inverse[0];
    if constexpr (Complex) out[1] = inverse[1];
    const Real finite = absolute(inverse[0]) * size + (Complex ? absolute(inverse[numbers - 1]) * size : Real(0));
    if (finite * 0 == 0 && finite >= std::numeric_limits<Real>::min()) return true;  // otherwise it has lost digits
    fail(size * 0 == 0 ? 1 : 3, k);
    return false;
  }

  template <int Width> bool process(const ColumnNode* node) {
    using R = Row<Real, Complex, Width>;
    using V = typename R::Vector;
    const idx first = node->first;
    scatter<Width>(first);
    V largest = R::zero();
    if (!eliminate<Width>(node, largest)) return false;

    V u[Width], turned[Width];                // rows of U of the diagonal block, zero up to the diagonal
    Real inverse[Width][numbers], inner = 0;  // the largest multiplier of the diagonal block
    Real* x = work_ + (off)first * R::size;
    Real* lower = P.lower + node->lower_value * numbers;
    for (int i = 0; i < Width; i++) {
      alignas(64) Real kept[R::size];
      V row = R::load(x + i * R::size);
      R::store(x + i * R::size, R::zero());
      for (int c = 0; c < i; c++) row = divide_out<Width>(row, c, inverse[c], u[c], turned[c]);
      R::store(kept, row);
      if (Width > 1) R::store(lower + i * R::size, row);
      if (!take_pivot(first + i, kept + i * numbers, inverse[i])) return false;
      largest = R::larger(largest, row);
      for (int c = 0; c < i * numbers; c++) inner = inner > absolute(kept[c]) ? inner : absolute(kept[c]);
      for (int c = 0; c <= i; c++) kept[c * numbers] = kept[c * numbers + numbers - 1] = 0;
      u[i] = R::load(kept);
      turned[i] = R::rotate(u[i]);
    }
    if (Width > 1) lower += Width * R::size;

    V multiplier = R::zero();
    const idx* row = P.lower_row + node->lower_row;
    for (idx p = 0; p < node->n_lower; p++, lower += R::size) {
      Real* target = work_ + (off)row[p] * R::size;
      V l = R::load(target);
      R::store(target, R::zero());
#pragma GCC unroll 8
      for (int c = 0; c < Width; c++) l = divide_out<Width>(l, c, inverse[c], u[c], turned[c]);
      multiplier = R::larger(multiplier, l);
      R::store(lower, l);
    }
    const Real largest_upper = R::largest(largest);
    if (largest_upper > monitor_.max_upper) monitor_.max_upper = largest_upper;
    const Real outer = R::largest(multiplier);
    return multipliers_fit(outer > inner ? outer : inner, first);
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
        l[0] = re * inverse[0] - im * inverse[1];
        l[1] = re * inverse[1] + im * inverse[0];
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

#define GS_INSTANTIATE(T)                                                                                   \
  template void Kernels::refactor_columns<T>(const ColumnProgram<real_t<T>>&, const ColumnTask<real_t<T>>&, \
                                             ColumnMonitor<real_t<T>>&);
GS_FOR_SCALARS(GS_INSTANTIATE)
#undef GS_INSTANTIATE

}  // namespace gs::GS_SIMD
