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

double lu_flops(double W, double H) { return 2 * W * (W * W / 3 + W * H + H * H); }

// Calls panel(j0, j1), which returns whether its pivots are good, for blocks of columns of the square, and
// update(j0, j1, c0, c1) for each block and columns behind it.
template <class Panel, class Update> void factor_square(Loops& loops, idx W, Panel&& panel, Update&& update) {
  const idx nb = block_size(W), strip = nb / 2;
  bool good = !must_stop() && panel(0, std::min(nb, W));
  for (idx j0 = 0, j1 = nb; j1 < W && good && !must_stop(); j0 = j1, j1 += nb) {
    const idx j2 = std::min(W, j1 + nb);
    const auto columns = [&](int task, int) {
      const idx c0 = j2 + task * strip;
      update(j0, j1, c0, std::min(W, c0 + strip));
    };
    loops.run(chunks_of(W - j2, strip), columns, [&] {
      update(j0, j1, j1, j2);
      good = panel(j1, j2);
    });
  }
}

}  // namespace

template <class T> void lu_front(Loops& loops, idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc, idx* pivots,
                                 const PivotRule& rule, PivotStats* const* stats) {
  const DenseKernels<T>& kernel = kernels<T>();
  if (lu_flops(W, H) < serial_flops)
    return kernel.lu_front(W, H, L, ldl, Ut, ldu, C, ldc, pivots, rule, *stats[loops.rank()]);
  const auto at = [&](idx i, idx j) { return L + i + j * ldl; };
  const auto panel = [&](idx j0, idx j1) {
    kernel.lu_panel(W - j0, j1 - j0, at(j0, j0), ldl, pivots + j0, rule, *stats[loops.rank()]);
    for (idx k = j0; k < j1; k++) pivots[k] += j0;
    return true;
  };
  factor_square(loops, W, panel, [&](idx j0, idx j1, idx c0, idx c1) {
    kernel.swap_rows(c1 - c0, at(0, c0), ldl, j0, j1, pivots);
    kernel.solve_left(j1 - j0, c1 - c0, at(j0, c0), ldl, at(j0, j0), ldl);
    kernel.update(W - j1, c1 - c0, j1 - j0, at(j1, j0), ldl, at(j0, c0), ldl, at(j1, c0), ldl, false);
  });
  const idx nb = block_size(W), chunks = chunks_of(H, rows_per_task);
  loops.run(chunks_of(W, nb), [&](int task, int rank) {  // the interchanges made after each block of columns
    const idx j0 = task * nb, j1 = std::min(W, j0 + nb);
    kernel.swap_rows(j1 - j0, at(0, j0), ldl, j1, W, pivots);
    kernel.largest_upper(j0, j1, L, ldl, *stats[rank]);
  });
  loops.run(2 * chunks, [&](int task, int rank) {
    const idx i = task / 2 * rows_per_task, m = std::min(H - i, rows_per_task);
    if (task % 2) {
      kernel.swap_upper(W, m, Ut + i, ldu, pivots);
      kernel.solve_lower_t(m, W, Ut + i, ldu, L, ldl, *stats[rank]);
    } else {
      kernel.solve_upper(m, W, at(W + i, 0), ldl, L, ldl, *stats[rank]);
    }
  });
  loops.run(chunks, [&](int task, int) {
    const idx i = task * rows_per_task, m = std::min(H - i, rows_per_task);
    kernel.update_t(m, H, W, at(W + i, 0), ldl, Ut, ldu, C + i, ldc, false);
  });
}

template <class T> idx cholesky_front(Loops& loops, idx W, idx H, T* L, off ldl, const Strips<T>& C) {
  const DenseKernels<T>& kernel = kernels<T>();
  if (lu_flops(W, H) < 2 * serial_flops) return kernel.cholesky_front(W, H, L, ldl, C);
  const auto at = [&](idx i, idx j) { return L + i + j * ldl; };
  idx bad = -1;
  const auto panel = [&](idx j0, idx j1) {
    if (const idx k = kernel.cholesky_square(j1 - j0, at(j0, j0), ldl); k >= 0) bad = j0 + k;
    else kernel.solve_lower_h(W - j1, j1 - j0, at(j1, j0), ldl, at(j0, j0), ldl, true);
    return bad < 0;
  };
  factor_square(loops, W, panel, [&](idx j0, idx j1, idx c0, idx c1) {
    kernel.update_lower(c1 - c0, j1 - j0, at(c0, j0), ldl, at(c0, j0), ldl, at(c0, c0), ldl, true);
    kernel.update_t(W - c1, c1 - c0, j1 - j0, at(c1, j0), ldl, at(c0, j0), ldl, at(c1, c0), ldl, true);
  });
  if (bad >= 0) return bad;
  const idx chunks = chunks_of(H, rows_per_task);
  loops.run(chunks, [&](int task, int) {
    const idx i = task * rows_per_task, m = std::min(H - i, rows_per_task);
    kernel.solve_lower_h(m, W, at(W + i, 0), ldl, L, ldl, true);
  });
  loops.run(chunks, [&](int task, int) {  // longest rows first
    const idx i = (chunks - 1 - task) * rows_per_task, m = std::min(H - i, rows_per_task);
    update_rows(C, i, m, W, at(W + i, 0), ldl, at(W, 0), ldl, true);
  });
  return -1;
}

#define GS_INSTANTIATE(T)                                                                                          \
  template void lu_front(Loops&, idx, idx, T*, off, T*, off, T*, off, idx*, const PivotRule&, PivotStats* const*); \
  template idx cholesky_front(Loops&, idx, idx, T*, off, const Strips<T>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
