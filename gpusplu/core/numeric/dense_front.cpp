// Large fronts. The W x W block is factored right-looking by blocks of columns with one block of lookahead (Strazdins,
// A comparison of lookahead and algorithmic blocking techniques for parallel matrix factorization, 1998). The loop of a
// block updates the columns behind it; its first iterations are those of the next block, whose factorization is the
// longest path. Iterations wait only for those before them. Then come the rows of the off-diagonal blocks, then those
// of the contribution block. Kernels compute every entry by the same operations however rows and columns are split. How
// columns are split into blocks matters for complex numbers only, whose products have two sums: there it depends on W.
#include "numeric/dense_front.hpp"
#include "base/types.hpp"
#include "numeric/strips.hpp"

#include <algorithm>
#include <atomic>

namespace gs {
namespace {

constexpr double serial_flops = 16e6;  // one thread factors smaller fronts: about 0.4 ms [flop]
constexpr idx wide_block = 128, narrow_block = 64;
constexpr idx most_blocks = 65536 / wide_block;  // a front has less than 2^32 entries

// Columns up to which narrow blocks are as fast on one thread; they shorten the longest path.
constexpr idx narrow_cholesky = 2048;

// Narrow blocks of LU shorten the longest path, which should take no longer than a thread's share of the work; wide
// ones are faster on one thread: 1.3 times for 1,600 columns.
template <class T> idx lu_block_columns(const Loops& loops, idx W) {
  constexpr idx narrowest = 32;
  return is_complex<T> ? narrowest : std::clamp(W / (3 * loops.size()) / narrowest * narrowest, narrowest, wide_block);
}

// Of n columns behind a block, how many are updated at once: the threads become ready at different times.
idx lu_strip_columns(const Loops& loops, idx n) {
  constexpr idx least = 16;
  return loops.size() == 1 ? std::max(n, least) : std::max(n / (6 * loops.size()) / least * least, least);
}

double lu_flops(double W, double H) { return 2 * W * (W * W / 3 + W * H + H * H); }

// Rows of a chunk: enough chunks for all threads, in multiples of the rows of register tiles.
idx rows_of_chunk(const Loops& loops, idx n_rows) {
  constexpr idx least = 24;
  const idx fair = n_rows / (3 * loops.size());
  return std::clamp(fair / least * least, least, rows_per_task);
}

}  // namespace

template <class T> void lu_front(Loops& loops, idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc, idx* pivots,
                                 const PivotRule& rule, PivotStats* const* stats) {
  const DenseKernels<T>& kernel = kernels<T>();
  if (lu_flops(W, H) < serial_flops)
    return kernel.lu_front(W, H, L, ldl, Ut, ldu, C, ldc, pivots, rule, *stats[loops.rank()]);
  const auto at = [&](idx i, idx j) { return L + i + j * ldl; };
  const auto panel = [&](idx j0, idx j1, int rank) {
    kernel.lu_panel(W - j0, j1 - j0, at(j0, j0), ldl, pivots + j0, rule, *stats[rank]);
    for (idx k = j0; k < j1; k++) pivots[k] += j0;
  };
  const idx nb = lu_block_columns<T>(loops, W);
  if (!must_stop()) panel(0, std::min(nb, W), loops.rank());
  for (idx j0 = 0, j1 = nb; j1 < W && !must_stop(); j0 = j1, j1 += nb) {
    const idx j2 = std::min(W, j1 + nb), strip = lu_strip_columns(loops, W - j2);
    loops.run(1 + chunks_of(W - j2, strip), [&](int task, int rank) {
      const idx c0 = task == 0 ? j1 : j2 + (task - 1) * strip, c1 = task == 0 ? j2 : std::min(W, c0 + strip);
      kernel.swap_rows(c1 - c0, at(0, c0), ldl, j0, j1, pivots);
      kernel.solve_left(j1 - j0, c1 - c0, at(j0, c0), ldl, at(j0, j0), ldl);
      kernel.update(W - j1, c1 - c0, j1 - j0, at(j1, j0), ldl, at(j0, c0), ldl, at(j1, c0), ldl, false);
      if (task == 0) panel(j1, j2, rank);
    });
  }
  loops.run(chunks_of(W, nb), [&](int task, int rank) {  // the interchanges made after each block of columns
    const idx j0 = task * nb, j1 = std::min(W, j0 + nb);
    kernel.swap_rows(j1 - j0, at(0, j0), ldl, j1, W, pivots);
    kernel.largest_upper(j0, j1, L, ldl, *stats[rank]);
  });
  const idx rows = rows_of_chunk(loops, 2 * H);
  loops.run(2 * chunks_of(H, rows), [&](int task, int rank) {
    const idx i = task / 2 * rows, m = std::min(H - i, rows);
    if (task % 2) {
      kernel.swap_upper(W, m, Ut + i, ldu, pivots);
      kernel.solve_lower_t(m, W, Ut + i, ldu, L, ldl, *stats[rank]);
    } else {
      kernel.solve_upper(m, W, at(W + i, 0), ldl, L, ldl, *stats[rank]);
    }
  });
  const idx chunks = chunks_of(H, rows_per_task), columns = columns_per_task;
  loops.run(chunks * chunks_of(H, columns), [&](int task, int) {
    const idx i = task % chunks * rows_per_task, m = std::min(H - i, rows_per_task);
    const idx j = task / chunks * columns, n = std::min(H - j, columns);
    kernel.update_t(m, n, W, at(W + i, 0), ldl, Ut + j, ldu, C + i + j * ldc, ldc, false);
  });
}

template <class T> idx cholesky_front(Loops& loops, idx W, idx H, T* L, off ldl, const Strips<T>& C) {
  const DenseKernels<T>& kernel = kernels<T>();
  if (lu_flops(W, H) < 2 * serial_flops) return kernel.cholesky_front(W, H, L, ldl, C);
  const auto at = [&](idx i, idx j) { return L + i + j * ldl; };
  const idx nb = W > narrow_cholesky ? wide_block : narrow_block, p = chunks_of(W, nb), height = wide_block / nb;
  const auto end = [&](idx tile) { return std::min(W, (tile + 1) * nb); };
  idx bad = kernel.cholesky_square(end(0), L, ldl);
  if (bad >= 0) return bad;
  std::atomic<idx> solved[most_blocks] = {};  // blocks of columns, by block of rows
  for (idx k = 0; k + 1 < p && bad < 0 && !must_stop(); k++) {
    const idx j0 = k * nb, K = nb;
    const auto solve = [&](idx i) {
      kernel.solve_lower_h(end(i) - i * nb, K, at(i * nb, j0), ldl, at(j0, j0), ldl, true);
      solved[i].store(k + 1, std::memory_order_release);
    };
    // Blocks i .. last - 1 of rows of block j of columns.
    const auto update = [&](idx i, idx last, idx j) {
      const idx c = j * nb, n = end(j) - c;
      for (idx tile = i; tile <= last; tile++) {
        const std::atomic<idx>& steps = solved[tile < last ? tile : j];
        loops.wait([&] { return steps.load(std::memory_order_acquire) > k; });
      }
      if (i == j) kernel.update_lower(n, K, at(c, j0), ldl, at(c, j0), ldl, at(c, c), ldl, true);
      const idx r = (i == j ? i + 1 : i) * nb, m = end(last - 1) - r;
      if (m > 0) kernel.update_t(m, n, K, at(r, j0), ldl, at(c, j0), ldl, at(r, c), ldl, true);
    };
    const idx next = k + 1, left = p - next, groups = chunks_of(left, height);  // blocks behind, of rows in a tile
    loops.run(left + left * groups, [&](int task, int) {
      if (task == 0) {
        solve(next), update(next, next + 1, next);
        const idx j = kernel.cholesky_square(end(next) - next * nb, at(next * nb, next * nb), ldl);
        if (j >= 0) bad = next * nb + j;
      } else if (task < left) {
        solve(next + task);
      } else {
        const idx j = (task - left) / groups, first = (task - left) % groups * height;
        const idx i = std::max(first, j == 0 ? 1 : j), last = std::min(first + height, left);
        if (i < last) update(next + i, next + last, next + j);
      }
    });
  }
  if (bad >= 0) return bad;
  const idx rows = rows_of_chunk(loops, H);
  loops.run(chunks_of(H, rows), [&](int task, int) {
    const idx i = task * rows, m = std::min(H - i, rows);
    kernel.solve_lower_h(m, W, at(W + i, 0), ldl, L, ldl, true);
  });
  over_triangle(loops, C, [&](const TrianglePart& part, int) {
    kernel.update_strips(part.i, part.m, part.begin, part.end, W, at(W + part.i, 0), ldl, at(W, 0), ldl, C, true);
  });
  return -1;
}

#define GS_INSTANTIATE(T)                                                                                          \
  template void lu_front(Loops&, idx, idx, T*, off, T*, off, T*, off, idx*, const PivotRule&, PivotStats* const*); \
  template idx cholesky_front(Loops&, idx, idx, T*, off, const Strips<T>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
