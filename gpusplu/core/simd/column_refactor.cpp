// Numeric refactorization of a column LU on its fixed pattern: left-looking over nodes of 1, 2, 4 or 8 columns.
//
// A node's columns lie interleaved in a dense work array (row r of the node at r * width), so one load of a source's
// index and one broadcast of its value update all of them with vector instructions, and several columns of a source
// node are applied in one pass over its rows (supernode-panel updates; Demmel, Eisenstat, Gilbert, Li, Liu, SIAM J.
// Matrix Anal. Appl. 20 (1999), sections 2-3). Segments come in ascending order, which is topological.
// Cost: the multiply-adds of the factorization plus its padding. Invariant: work is zero between nodes.
#include "simd/column_kernels.hpp"
#include "simd/column_row.hpp"

namespace gs {
namespace GS_SIMD {
namespace {

template <class Real, bool Complex> class Worker {
 public:
  Worker(const ColumnProgram<Real>& program, const ColumnTask<Real>& task, ColumnMonitor<Real>& monitor)
      : P(program), task_(task), monitor_(monitor), work_(task.work) {}

  void run() {
    for (idx i = 0; i < task_.n_nodes_here && monitor_.status == 0; i++) {
      const ColumnNode* node = P.node + task_.nodes[i];
      switch (node[1].first - node[0].first) {
        case 1: process<1>(node); break;
        case 2: process<2>(node); break;
        case 4: process<4>(node); break;
        default: process<8>(node);
      }
    }
  }

 private:
  static constexpr int numbers = Complex ? 2 : 1;
  const ColumnProgram<Real>& P;
  const ColumnTask<Real>& task_;
  ColumnMonitor<Real>& monitor_;
  Real* work_;

  void fail(int status, idx column) {
    if (monitor_.status == 0) monitor_.status = status, monitor_.column = column;
  }

  // Columns of A, scaled, into the work array.
  template <int Width> void scatter(idx first) {
    Real largest = monitor_.max_entry, nonfinite = monitor_.not_finite;
    for (int c = 0; c < Width; c++) {
      const idx k = first + c;
      const off begin = P.a_ptr[k], count = P.a_ptr[k + 1] - begin;
      const idx* row = P.a_row + begin;
      const Real col_scale = P.col_scale ? P.col_scale[k] : Real(1);
      for (off p = 0; p < count; p++) {
        const off from = task_.source ? task_.source[P.a_first[k] + p] : P.a_first[k] + p;
        const Real scale = P.row_scale ? P.row_scale[row[p]] * col_scale : col_scale;
        for (int part = 0; part < numbers; part++) {
          const Real v = task_.values[from * numbers + part] * scale;
          work_[((off)row[p] * Width + c) * numbers + part] = v;
          largest = largest > absolute(v) ? largest : absolute(v);
          nonfinite += v * 0;
        }
      }
    }
    monitor_.max_entry = largest;
    monitor_.not_finite = nonfinite;
    if (nonfinite != 0) fail(3, first);
  }

  // Eliminates the last Count columns of a source node from the work array and keeps their rows of U.
  template <int Width, int Count> void apply(const ColumnNode* source, idx first_row, Real* upper, auto& largest) {
    using R = Row<Real, Complex, Width>;
    using V = typename R::Vector;
    const off ld = source[1].first - source[0].first, skipped = first_row - source->first;
    const Real* block = P.lower + (source->lower_value + skipped) * numbers;
    V v[Count], turned[Count];
    Real* x = work_ + (off)first_row * R::size;
#pragma GCC unroll 8
    for (int i = 0; i < Count; i++) {
      v[i] = R::load(x + i * R::size);
#pragma GCC unroll 8
      for (int j = 0; j < i; j++)
        v[i] = R::subtract(v[i], block + ((skipped + i) * ld + j) * numbers, v[j], turned[j]);
      turned[i] = R::rotate(v[i]);
      largest = R::larger(largest, v[i]);
      R::store(upper + i * R::size, v[i]);
      R::store(x + i * R::size, R::zero());
    }
    const Real* panel = block + (ld > 1 ? ld * ld : 0) * numbers;
    const idx* row = P.lower_row + source->lower_row;
    const idx count = source->n_lower;
#pragma GCC unroll 2
    for (idx p = 0; p < count; p++, panel += ld * numbers) {
      Real* target = work_ + (off)row[p] * R::size;
      V acc = R::load(target);
#pragma GCC unroll 8
      for (int j = 0; j < Count; j++) acc = R::subtract(acc, panel + j * numbers, v[j], turned[j]);
      R::store(target, acc);
    }
  }

  template <int Width> void eliminate(const ColumnNode* node, auto& largest) {
    using R = Row<Real, Complex, Width>;
    Real* upper = P.upper + node->upper_value * numbers;
    for (off s = node[0].segment; s < node[1].segment; s++) {
      const ColumnSegment segment = P.segment[s];
      const ColumnNode* source = P.node + segment.source;
      const idx count = source[1].first - segment.first_row;
      switch (count) {
        case 1: apply<Width, 1>(source, segment.first_row, upper, largest); break;
        case 2: apply<Width, 2>(source, segment.first_row, upper, largest); break;
        case 3: apply<Width, 3>(source, segment.first_row, upper, largest); break;
        case 4: apply<Width, 4>(source, segment.first_row, upper, largest); break;
        case 5: apply<Width, 5>(source, segment.first_row, upper, largest); break;
        case 6: apply<Width, 6>(source, segment.first_row, upper, largest); break;
        case 7: apply<Width, 7>(source, segment.first_row, upper, largest); break;
        default: apply<Width, 8>(source, segment.first_row, upper, largest);
      }
      upper += count * R::size;
    }
    // Rows outside the diagonal block: A's entries as they are.
    const idx* row = P.upper_row + node[0].upper_row + (upper - (P.upper + node->upper_value * numbers)) / R::size;
    for (const idx* end = P.upper_row + node[1].upper_row; row < end; row++, upper += R::size) {
      Real* x = work_ + (off)*row * R::size;
      R::store(upper, R::load(x));
      R::store(x, R::zero());
    }
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
    monitor_.max_pivot = monitor_.max_pivot > size ? monitor_.max_pivot : size;
    monitor_.min_pivot = monitor_.min_pivot < size ? monitor_.min_pivot : size;
    Real finite = inverse[0] * 0 + size * 0;
    if constexpr (Complex) finite += inverse[1] * 0;
    if (finite == 0) return true;
    fail(size * 0 == 0 ? 1 : 3, k);
    return false;
  }

  template <int Width> void process(const ColumnNode* node) {
    using R = Row<Real, Complex, Width>;
    using V = typename R::Vector;
    const idx first = node->first;
    scatter<Width>(first);
    V largest = R::zero();
    eliminate<Width>(node, largest);

    V u[Width], turned[Width];  // rows of U of the diagonal block, zero up to the diagonal
    Real inverse[Width][numbers];
    Real* x = work_ + (off)first * R::size;
    Real* lower = P.lower + node->lower_value * numbers;
    for (int i = 0; i < Width; i++) {
      alignas(64) Real kept[R::size];
      V row = R::load(x + i * R::size);
      R::store(x + i * R::size, R::zero());
      for (int c = 0; c < i; c++) row = divide_out<Width>(row, c, inverse[c], u[c], turned[c]);
      R::store(kept, row);
      if (Width > 1) R::store(lower + i * R::size, row);
      if (!take_pivot(first + i, kept + i * numbers, inverse[i])) return;
      largest = R::larger(largest, row);
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
    const Real largest_multiplier = R::largest(multiplier), largest_upper = R::largest(largest);
    if (largest_multiplier > monitor_.max_multiplier) monitor_.max_multiplier = largest_multiplier;
    if (largest_upper > monitor_.max_upper) monitor_.max_upper = largest_upper;
    if (!(largest_multiplier <= task_.bound)) fail(2, first);
  }

  // One row of L: its number c divided by the pivot, and that multiple of U's row c subtracted from the rest.
  template <int Width>
  GS_INLINE_ROW auto divide_out(typename Row<Real, Complex, Width>::Vector x, int c, const Real* inverse,
                         typename Row<Real, Complex, Width>::Vector u,
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

template <class Real>
void refactor(const ColumnProgram<Real>& program, const ColumnTask<Real>& task, bool is_complex,
              ColumnMonitor<Real>& monitor) {
  if (is_complex) Worker<Real, true>(program, task, monitor).run();
  else Worker<Real, false>(program, task, monitor).run();
}

}  // namespace

void refactor_columns(const ColumnProgram<float>& program, const ColumnTask<float>& task, bool is_complex,
                      ColumnMonitor<float>& monitor) {
  refactor(program, task, is_complex, monitor);
}
void refactor_columns(const ColumnProgram<double>& program, const ColumnTask<double>& task, bool is_complex,
                      ColumnMonitor<double>& monitor) {
  refactor(program, task, is_complex, monitor);
}

}  // namespace GS_SIMD
}  // namespace gs
