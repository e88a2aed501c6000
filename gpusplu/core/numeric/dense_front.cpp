// Large fronts. The W x W block is factored right-looking by blocks of columns with one block of lookahead (Strazdins,
// A comparison of lookahead and algorithmic blocking techniques for parallel matrix factorization, 1998): rank 0
// updates and factors the next block of columns while the others update the columns behind it. Then come the rows of
// the off-diagonal blocks, then those of the contribution block, in tasks that members take in turn. Kernels compute
// every entry by the same operations however rows and columns are split, so only the block size, which depends on W,
// matters.
#include "numeric/dense_front.hpp"
#include "base/scalars.hpp"
#include "numeric/phases.hpp"
#include "numeric/strips.hpp"

#include <algorithm>

namespace gs {
namespace {

constexpr double serial_flops = 16e6;  // smaller fronts are left to one thread: about 0.4 ms [flop]
constexpr idx wide_block = 128, narrow_block = 64;

idx block_size(idx W) { return W > 768 ? wide_block : narrow_block; }

template <class T> struct LuFront {
  const Team& team;
  Phases& phases;
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
  PivotStats& stats;

  T* at(idx i, idx j) const { return L + i + j * ldl; }

  void factor_panel(idx j0, idx j1) const {
    kernel.lu_panel(W - j0, j1 - j0, at(j0, j0), ldl, pivots + j0, &rule, &stats);
    for (idx k = j0; k < j1; k++) pivots[k] += j0;
  }

  // Columns c0 .. c1-1 receive the interchanges and the update of the block of columns j0 .. j1-1.
  void update_columns(idx j0, idx j1, idx c0, idx c1) const {
    kernel.swap_rows(c1 - c0, at(0, c0), ldl, j0, j1, pivots);
    kernel.solve_left(j1 - j0, c1 - c0, at(j0, c0), ldl, at(j0, j0), ldl);
    kernel.update(W - j1, c1 - c0, j1 - j0, at(j1, j0), ldl, at(j0, c0), ldl, at(j1, c0), ldl);
  }

  void factor_square() const {
    const idx nb = block_size(W);
    if (phases.leads()) factor_panel(0, std::min(nb, W));
    phases.next_phase();
    for (idx j0 = 0, j1 = nb; j1 < W; j0 = j1, j1 += nb) {
      const idx j2 = std::min(W, j1 + nb);
      if (phases.leads()) {
        update_columns(j0, j1, j1, j2);
        factor_panel(j1, j2);
      }
      for (idx c0; (c0 = j2 + phases.take() * (nb / 2)) < W;) update_columns(j0, j1, c0, std::min(W, c0 + nb / 2));
      phases.next_phase();
    }
    for (idx j0; (j0 = phases.take() * nb) < W;) {  // the interchanges that came after each block of columns
      const idx j1 = std::min(W, j0 + nb);
      kernel.swap_rows(j1 - j0, at(0, j0), ldl, j1, W, pivots);
      kernel.largest_upper(j0, j1, L, ldl, &stats);
    }
    phases.next_phase();
  }

  void finish() const {
    const idx chunks = (H + rows_per_task - 1) / rows_per_task;
    for (idx task; (task = phases.take()) < 2 * chunks;) {
      const idx i = task / 2 * rows_per_task, m = std::min(H - i, rows_per_task);
      if (task % 2) {
        kernel.swap_upper(W, m, Ut + i, ldu, pivots);
        kernel.solve_lower_t(m, W, Ut + i, ldu, L, ldl, &stats);
      } else {
        kernel.solve_upper(m, W, at(W + i, 0), ldl, L, ldl, &stats);
      }
    }
    phases.next_phase();
    for (idx task; (task = phases.take()) < chunks;) {
      const idx i = task * rows_per_task, m = std::min(H - i, rows_per_task);
      kernel.update_t(m, H, W, at(W + i, 0), ldl, Ut, ldu, C + i, ldc, false);
    }
    phases.next_phase();
  }
};

template <class T> struct CholeskyFront {
  const Team& team;
  Phases& phases;
  const DenseKernels<T>& kernel;
  idx W, H;
  T* L;
  off ldl;
  const Strips<T>& C;

  T* at(idx i, idx j) const { return L + i + j * ldl; }

  // Returns -1 or the bad column.
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
    const idx nb = block_size(W);
    if (phases.leads()) phases.set_word(factor_panel(0, std::min(nb, W)));
    idx bad = phases.next_phase();
    for (idx j0 = 0, j1 = nb; j1 < W && bad < 0; j0 = j1, j1 += nb) {
      const idx j2 = std::min(W, j1 + nb);
      if (phases.leads()) {
        update_columns(j0, j1, j1, j2);
        phases.set_word(factor_panel(j1, j2));
      }
      for (idx c0; (c0 = j2 + phases.take() * (nb / 2)) < W;) update_columns(j0, j1, c0, std::min(W, c0 + nb / 2));
      bad = phases.next_phase();
    }
    return bad;
  }

  void finish() const {
    const idx chunks = (H + rows_per_task - 1) / rows_per_task;
    for (idx task; (task = phases.take()) < chunks;) {
      const idx i = task * rows_per_task, m = std::min(H - i, rows_per_task);
      kernel.solve_lower_h(m, W, at(W + i, 0), ldl, L, ldl);
    }
    phases.next_phase();
    for (idx task; (task = phases.take()) < chunks;) {  // longest rows first
      const idx i = (chunks - 1 - task) * rows_per_task, m = std::min(H - i, rows_per_task);
      update_rows(C, i, m, W, at(W + i, 0), ldl, at(W, 0), ldl, true);
    }
    phases.next_phase();
  }
};

double lu_flops(double W, double H) { return 2 * W * (W * W / 3 + W * H + H * H); }

}  // namespace

template <class T> void lu_front(const Team& team, idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc,
                                 idx* pivots, const PivotRule& rule, PivotStats& stats) {
  if (lu_flops(W, H) < serial_flops) {
    if (team.rank == 0) kernels<T>().lu_front(W, H, L, ldl, Ut, ldu, C, ldc, pivots, &rule, &stats);
    return team.sync();
  }
  Phases phases(team);
  const LuFront<T> front{team, phases, kernels<T>(), W, H, L, ldl, Ut, ldu, C, ldc, pivots, rule, stats};
  front.factor_square();
  if (H > 0) front.finish();
}

template <class T> idx cholesky_front(const Team& team, idx W, idx H, T* L, off ldl, const Strips<T>& C) {
  const bool serial = lu_flops(W, H) < 2 * serial_flops;
  if (serial && team.size == 1) return kernels<T>().cholesky_front(W, H, L, ldl, C);
  Phases phases(team);
  if (serial) {
    if (team.rank == 0) phases.set_word(kernels<T>().cholesky_front(W, H, L, ldl, C));
    return phases.next_phase();
  }
  const CholeskyFront<T> front{team, phases, kernels<T>(), W, H, L, ldl, C};
  const idx bad = front.factor_square();
  if (bad < 0 && H > 0) front.finish();
  return bad;
}

#define GS_INSTANTIATE(T)                                                                                        \
  template void lu_front(const Team&, idx, idx, T*, off, T*, off, T*, off, idx*, const PivotRule&, PivotStats&); \
  template idx cholesky_front(const Team&, idx, idx, T*, off, const Strips<T>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
