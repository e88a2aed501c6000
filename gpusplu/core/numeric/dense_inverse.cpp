#include "numeric/dense_inverse.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "base/types.hpp"
#include "numeric/strips.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

constexpr idx block_columns = 64;
constexpr double serial_inverse_flops = 32e6;  // one thread inverts smaller fronts [flop]

template <class T> class InverseFront {
 public:
  InverseFront(Loops& loops, const FactoredFront<T>& front, T* Z, T* scratch)
      : loops_(loops),
        front_(front),
        mirrored_(front.kind != FrontKind::lu),
        hermitian_(front.kind == FrontKind::cholesky || front.hermitian),
        R_(front.W + front.H),
        Z_(Z) {
    for (T** square : {&lower_, &minus_lower_, &minus_upper_})
      *square = scratch, scratch += block_columns * block_columns;
    X_ = scratch, Y_ = scratch + off(R_) * block_columns;
  }

  void run() {
    for (idx j1 = front_.W, j0; j1 > 0; j1 = j0) {
      j0 = first_of_block(j1);
      block(j0, j1);
    }
    if (front_.kind == FrontKind::lu) undo_interchanges();
    if (front_.kind == FrontKind::ldlt) undo_order();
  }

 private:
  T* at(idx i, idx j) const { return Z_ + i + j * R_; }
  const T* factor(idx i, idx j) const { return front_.L + i + j * R_; }

  // First column of the block that ends at column j1: a pivot of order 2 is not split.
  idx first_of_block(idx j1) const {
    if (front_.kind != FrontKind::ldlt) return (j1 - 1) / block_columns * block_columns;
    const idx j0 = std::max(j1 - block_columns, 0);
    return j0 + (j0 > 0 && front_.e[j0 - 1] != T(0));
  }

  // Processes columns j0 .. j1-1, after those behind them.
  void block(idx j0, idx j1) {
    const idx n = j1 - j0, m = R_ - j1;
    if (!must_stop()) invert_triangles(j0, n);
    over_slices(m, [&](idx begin, idx end, int) { multipliers(j0, j1, begin, end); });
    over_slices(m, [&](idx begin, idx end, int) {
      zero(at(j1 + begin, j0), end - begin, n);
      kernel_.update(end - begin, n, m, at(j1 + begin, j1), R_, X_, m, at(j1 + begin, j0), R_, false);
      if (mirrored_) {
        for (idx j = 0; j < n; j++)
          for (idx i = begin; i < end; i++) *at(j0 + j, j1 + i) = conj_if(*at(j1 + i, j0 + j), hermitian_);
      } else {
        zero(at(j0, j1 + begin), n, end - begin);
        kernel_.update(n, end - begin, m, Y_, n, at(j1, j1 + begin), R_, at(j0, j1 + begin), R_, false);
      }
    });
    if (!must_stop()) diagonal_block(j0, j1);
  }

  // body(begin, end, rank) for slices of 0 .. n - 1.
  template <class Body> void over_slices(idx n, Body&& body) const {
    const int parts = loops_.parts(n, rows_per_task);
    loops_.run(parts, [&](int k, int rank) {
      const auto [begin, end] = slice(n, Team{k, parts});
      body(begin, end, rank);
    });
  }

  void zero(T* block, idx rows, idx columns) const {
    for (idx j = 0; j < columns; j++) std::fill_n(block + j * R_, rows, T(0));
  }

  // The inverses of L_jj and U_jj, or of L_jj and its conjugate transpose (including D's), with the signs for the
  // products: the kernels subtract.
  void invert_triangles(idx j0, idx n) {
    PivotStats unused;
    for (T* square : {minus_lower_, minus_upper_}) {
      std::fill_n(square, n * n, T(0));
      for (idx k = 0; k < n; k++) square[k + k * n] = T(-1);
    }
    switch (front_.kind) {
      case FrontKind::cholesky:
        kernel_.solve_lower_h(n, n, minus_upper_, n, factor(j0, j0), R_, true);
        mirror(n, minus_upper_, minus_lower_);
        break;
      case FrontKind::ldlt:
        kernel_.solve_left(n, n, minus_lower_, n, factor(j0, j0), R_);
        mirror(n, minus_lower_, lower_);
        kernel_.divide_by_pivots(n, n, lower_, n, front_.d + j0, front_.e + j0, minus_upper_, n, hermitian_, unused);
        break;
      case FrontKind::lu:
        kernel_.solve_left(n, n, minus_lower_, n, factor(j0, j0), R_);
        kernel_.solve_upper(n, n, minus_upper_, n, factor(j0, j0), R_, unused);
    }
    for (idx k = 0; k < n * n; k++) lower_[k] = -minus_lower_[k];
  }

  void mirror(idx n, const T* square, T* mirrored) const {
    for (idx j = 0; j < n; j++)
      for (idx i = 0; i < n; i++) mirrored[i + j * n] = conj_if(square[j + i * n], hermitian_);
  }

  // Computes rows begin .. end-1 of X, and columns of Y, counted from column j1 of the front.
  void multipliers(idx j0, idx j1, idx begin, idx end) {
    const idx n = j1 - j0, m = R_ - j1, inside = front_.W - j1;
    for (idx j = 0; j < n; j++) std::fill_n(X_ + begin + off(j) * m, end - begin, T(0));
    kernel_.update(end - begin, n, n, factor(j1 + begin, j0), R_, minus_lower_, n, X_ + begin, m, false);
    if (mirrored_) return;
    std::fill_n(Y_ + off(begin) * n, off(end - begin) * n, T(0));
    if (const idx last = std::min(end, inside); begin < last)
      kernel_.update(n, last - begin, n, minus_upper_, n, factor(j0, j1 + begin), R_, Y_ + off(begin) * n, n, false);
    if (const idx first = std::max(begin, inside); first < end)
      kernel_.update_t(n, end - first, n, minus_upper_, n, front_.Ut + (first - inside) + off(j0) * front_.H, front_.H,
                       Y_ + off(first) * n, n, false);
  }

  void diagonal_block(idx j0, idx j1) {
    const idx n = j1 - j0, m = R_ - j1;
    zero(at(j0, j0), n, n);
    kernel_.update(n, n, n, minus_upper_, n, lower_, n, at(j0, j0), R_, false);
    kernel_.update(n, n, m, at(j0, j1), R_, X_, m, at(j0, j0), R_, false);
    if (!mirrored_) return;
    for (idx j = j0; j < j1; j++) {
      if (hermitian_) *at(j, j) = T(std::real(*at(j, j)));
      for (idx i = j + 1; i < j1; i++) *at(j, i) = conj_if(*at(i, j), hermitian_);
    }
  }

  // Columns of the inverse correspond to rows of A.
  void undo_interchanges() {
    over_slices((idx)R_, [&](idx begin, idx end, int) {
      for (idx k = front_.W; k-- > 0;)
        if (const idx p = front_.pivots[k]; p != k) std::swap_ranges(at(begin, k), at(end, k), at(begin, p));
    });
  }

  // Pivot k is column and row order[k] of the front. Rows of Z are permuted one by one: for wide fronts this costs
  // little compared with the products.
  void undo_order() {
    const idx W = front_.W, *order = front_.pivots;
    if (std::is_sorted(order, order + W)) return;
    const auto move = [&](T* first, off stride, int rank) {
      T* const work = X_ + rank * R_;
      for (idx k = 0; k < W; k++) work[k] = first[k * stride];
      for (idx k = 0; k < W; k++) first[order[k] * stride] = work[k];
    };
    over_slices((idx)R_, [&](idx begin, idx end, int rank) {
      for (idx j = begin; j < end; j++) move(at(0, j), 1, rank);
    });
    over_slices((idx)R_, [&](idx begin, idx end, int rank) {
      for (idx i = begin; i < end; i++) move(at(i, 0), R_, rank);
    });
  }

  Loops& loops_;
  const FactoredFront<T>& front_;
  const bool mirrored_, hermitian_;  // Z22 equals its (conjugate) transpose
  const off R_;
  T* const Z_;
  const DenseKernels<T>& kernel_ = kernels<T>();
  T *lower_, *minus_lower_, *minus_upper_;  // n x n
  T *X_, *Y_;                               // m x n, n x m
};

}  // namespace

off inverse_scratch(idx R, int threads) {
  return off(block_columns) * (3 * block_columns) + off(R) * std::max(2 * block_columns, threads);
}

template <class T> void inverse_front(Loops& loops, const FactoredFront<T>& front, T* Z, T* scratch) {
  const double W = front.W, H = front.H;
  Loops one(loops.rank());
  const bool serial = 4 * W * (W * W / 3 + W * H + H * H) < serial_inverse_flops;
  InverseFront<T>(serial ? one : loops, front, Z, scratch).run();
}

#define GS_INSTANTIATE(T) template void inverse_front(Loops&, const FactoredFront<T>&, T*, T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
