// Large fronts. The W x W block is factored right-looking by blocks of columns with one block of lookahead (Strazdins,
// A comparison of lookahead and algorithmic blocking techniques for parallel matrix factorization, 1998): the leader
// updates and factors the next block of columns while the others update the columns behind it. Then come the rows of
// the off-diagonal blocks, then those of the contribution block. Kernels compute every entry by the same operations
// however rows and columns are split, so the result depends only on the block size, which depends on W.
#include "numeric/dense_front.hpp"
#include "base/scalars.hpp"
#include "numeric/strips.hpp"

#include <algorithm>

namespace gs {
namespace {

constexpr double serial_flops = 16e6;  // one thread factors smaller fronts: about 0.4 ms [flop]
constexpr idx wide_block = 128, narrow_block = 64;

idx block_size(idx W) { return W > 768 ? wide_block : narrow_block; }

template <class T> struct LuFront {
  Loops& loops;
  const DenseKernels<T>& kernel;
  idx W, H;
  T* L;
  off ldl;
  T* Ut;
  off ldu;
  T* C;
  off ldc;
  idx* pivots;
  const PivotRule& rule;
  PivotStats* const* stats;

  T* at(idx i, idx j) const { return L + i + j * ldl; }

  void factor_panel(idx j0, idx j1) const {
    kernel.lu_panel(W - j0, j1 - j0, at(j0, j0), ldl, pivots + j0, &rule, stats[loops.rank()]);
    for (idx k = j0; k < j1; k++) pivots[k] += j0;
  }

  // Columns c0 .. c1-1 receive the interchanges and the update of the block of columns j0 .. j1-1.
  void update_columns(idx j0, idx j1, idx c0, idx c1) const {
    kernel.swap_rows(c1 - c0, at(0, c0), ldl, j0, j1, pivots);
    kernel.solve_left(j1 - j0, c1 - c0, at(j0, c0), ldl, at(j0, j0), ldl);
    kernel.update(W - j1, c1 - c0, j1 - j0, at(j1, j0), ldl, at(j0, c0), ldl, at(j1, c0), ldl);
  }

  void factor_square() const {
    const idx nb = block_size(W), strip = nb / 2;
    if (!must_stop()) factor_panel(0, std::min(nb, W));
    for (idx j0 = 0, j1 = nb; j1 < W && !must_stop(); j0 = j1, j1 += nb) {
      const idx j2 = std::min(W, j1 + nb);
      const auto columns = [&](int task, int) {
        const idx c0 = j2 + task * strip;
        update_columns(j0, j1, c0, std::min(W, c0 + strip));
      };
      loops.run(chunks_of(W - j2, strip), columns, [&] {
        update_columns(j0, j1, j1, j2);
        factor_panel(j1, j2);
      });
    }
    loops.run(chunks_of(W, nb), [&](int task, int rank) {  // the interchanges made after each block of columns
      const idx j0 = task * nb, j1 = std::min(W, j0 + nb);
      kernel.swap_rows(j1 - j0, at(0, j0), ldl, j1, W, pivots);
      kernel.largest_upper(j0, j1, L, ldl, stats[rank]);
    });
  }

  void finish() const {
    const idx chunks = chunks_of(H, rows_per_task);
    loops.run(2 * chunks, [&](int task, int rank) {
      const idx i = task / 2 * rows_per_task, m = std::min(H - i, rows_per_task);
      if (task % 2) {
        kernel.swap_upper(W, m, Ut + i, ldu, pivots);
        kernel.solve_lower_t(m, W, Ut + i, ldu, L, ldl, stats[rank]);
      } else {
        kernel.solve_upper(m, W, at(W + i, 0), ldl, L, ldl, stats[rank]);
      }
    });
    loops.run(chunks, [&](int task, int) {
      const idx i = task * rows_per_task, m = std::min(H - i, rows_per_task);
      kernel.update_t(m, H, W, at(W + i, 0), ldl, Ut, ldu, C + i, ldc, false);
    });
  }
};

template <class T> struct CholeskyFront {
  Loops& loops;
  const DenseKernels<T>& kernel;
  idx W, H;
  T* L;
  off ldl;
  const Strips<T>& C;

  T* at(idx i, idx j) const { return L + i + j * ldl; }

  // Returns -1 or the first bad column.
  idx factor_panel(idx j0, idx j1) const {
    const idx bad = kernel.cholesky_square(j1 - j0, at(j0, j0), ldl);
    if (bad >= 0) return j0 + bad;
    kernel.solve_lower_h(W - j1, j1 - j0, at(j1, j0), ldl, at(j0, j0), ldl);
    return -1;
  }

  void update_columns(idx j0, idx j1, idx c0, idx c1) const {
    kernel.update_lower(c1 - c0, j1 - j0, at(c0, j0), ldl, at(c0, c0), ldl);
    kernel.update_t(W - c1, c1 - c0, j1 - j0, at(c1, j0), ldl, at(c0, j0), ldl, at(c1, c0), ldl, true);
  }

  idx factor_square() const {
    const idx nb = block_size(W), strip = nb / 2;
    idx bad = must_stop() ? -1 : factor_panel(0, std::min(nb, W));
    for (idx j0 = 0, j1 = nb; j1 < W && bad < 0 && !must_stop(); j0 = j1, j1 += nb) {
      const idx j2 = std::min(W, j1 + nb);
      const auto columns = [&](int task, int) {
        const idx c0 = j2 + task * strip;
        update_columns(j0, j1, c0, std::min(W, c0 + strip));
      };
      loops.run(chunks_of(W - j2, strip), columns, [&] {
        update_columns(j0, j1, j1, j2);
        bad = factor_panel(j1, j2);
      });
    }
    return bad;
  }

  void finish() const {
    const idx chunks = chunks_of(H, rows_per_task);
    loops.run(chunks, [&](int task, int) {
      const idx i = task * rows_per_task, m = std::min(H - i, rows_per_task);
      kernel.solve_lower_h(m, W, at(W + i, 0), ldl, L, ldl);
    });
    loops.run(chunks, [&](int task, int) {  // longest rows first
      const idx i = (chunks - 1 - task) * rows_per_task, m = std::min(H - i, rows_per_task);
      update_rows(C, i, m, W, at(W + i, 0), ldl, at(W, 0), ldl, true);
    });
  }
};

double lu_flops(double W, double H) { return 2 * W * (W * W / 3 + W * H + H * H); }

}  // namespace

template <class T> void lu_front(Loops& loops, idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc, idx* pivots,
                                 const PivotRule& rule, PivotStats* const* stats) {
  if (lu_flops(W, H) < serial_flops)
    return kernels<T>().lu_front(W, H, L, ldl, Ut, ldu, C, ldc, pivots, &rule, stats[loops.rank()]);
  const LuFront<T> front{loops, kernels<T>(), W, H, L, ldl, Ut, ldu, C, ldc, pivots, rule, stats};
  front.factor_square();
  if (H > 0) front.finish();
}

template <class T> idx cholesky_front(Loops& loops, idx W, idx H, T* L, off ldl, const Strips<T>& C) {
  if (lu_flops(W, H) < 2 * serial_flops) return kernels<T>().cholesky_front(W, H, L, ldl, C);
  const CholeskyFront<T> front{loops, kernels<T>(), W, H, L, ldl, C};
  const idx bad = front.factor_square();
  if (bad < 0 && H > 0) front.finish();
  return bad;
}

#define GS_INSTANTIATE(T)                                                                                          \
  template void lu_front(Loops&, idx, idx, T*, off, T*, off, T*, off, idx*, const PivotRule&, PivotStats* const*); \
  template idx cholesky_front(Loops&, idx, idx, T*, off, const Strips<T>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
