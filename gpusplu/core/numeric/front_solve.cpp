// Solves with the fronts, from the leaves up and back down.
//
// Up: below the cut of the plan, a thread collects what a front subtracts from the rows of its ancestors in a work
// vector of the thread; at the root of a subtree it moves that vector to the carry of the root. Above the cut, a front
// sums the carries of its children. Sums thus have the same order for any number of threads, and no thread writes what
// another one reads. Down: a front only reads its ancestors' part of the solution.
//
// Large fronts are solved in blocks of columns, whose products are loops that idle threads share: near the root a front
// has a large part of the factor.
//
// Right-hand sides are processed in blocks, stored row by row. Cost: two passes over the factor for each block.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/parallel.hpp"
#include "base/types.hpp"
#include "numeric/front_factor.hpp"
#include "numeric/front_walks.hpp"

namespace gs {
namespace {

constexpr idx kLargestBlock = 32;                          // right-hand sides
constexpr off kShared = 100'000;                           // entries of a front that is worth loops
constexpr idx kColumns = 128;                              // least columns of a block in such a front
constexpr int kLeastRows = 64;                             // of an iteration
constexpr std::size_t kWorkspace = std::size_t(64) << 20;  // [bytes]

bool has_loops(const FrontShape& shape) { return off(shape.W) * shape.R >= kShared; }

// Range k of `parts` of 0 .. n-1, of multiples of 8.
Slice<idx> part_of(idx n, int k, int parts) {
  const auto [begin, end] = slice((n + 7) / 8, Team{k, parts});
  return {8 * begin, std::min(8 * end, n)};
}

}  // namespace

template <class T> FrontFactor<T>::Workspace::Workspace(const FrontFactor& factor, idx block, int threads)
    : block(block), solution((off)factor.symbolic_->n * block), carry(factor.plan_.carry_size * block) {
  for (int t = 0; t < threads; t++) {
    sums.emplace_back((off)factor.symbolic_->n * block);
    scratch.emplace_back((off)factor.tallest_ * (block + 1));  // including one for permutations
  }
}

template <class T> struct FrontFactor<T>::Solver {
  const FrontFactor& factor;
  const Symbolic& symbolic;
  const FrontPlan& plan;
  const DenseKernels<T>& kernel = kernels<T>();
  const bool transposed, conj, cholesky, ldlt;
  const bool mirrored;  // LDL^T: solves with the conjugate of A
  // Right-hand side k of the permuted system is b[from[k]] * from_scale[from[k]], solution k goes to x[to[k]].
  const idx *from, *to;
  const double *from_scale = nullptr, *to_scale = nullptr;

  const T* b = nullptr;
  T* x = nullptr;
  idx width = 0;  // right-hand sides of the block, at most `block`
  std::unique_ptr<Workspace> space;
  bool complete = false;

  Solver(const FrontFactor& factor, Trans trans, idx nrhs, int threads)
      : factor(factor),
        symbolic(*factor.symbolic_),
        plan(factor.plan_),
        transposed(trans != Trans::none && !symbolic.one_triangle()),
        conj(symbolic.cholesky ? trans == Trans::transpose : trans == Trans::conj_transpose),
        cholesky(symbolic.cholesky),
        ldlt(symbolic.ldlt),
        mirrored(symbolic.ldlt && trans == (factor.hermitian_ ? Trans::transpose : Trans::conj_transpose)),
        from((transposed ? symbolic.col_perm : symbolic.row_perm).data()),
        to((transposed ? symbolic.row_perm : symbolic.col_perm).data()) {
    if (!symbolic.row_scale.empty()) {
      from_scale = (transposed ? symbolic.col_scale : symbolic.row_scale).data();
      to_scale = (transposed ? symbolic.row_scale : symbolic.col_scale).data();
    }
    if (nrhs == 1) space = factor.workspace_.take();
    if (space && (int)space->sums.size() >= threads) return;
    const std::size_t row_bytes = sizeof(T) * (std::size_t(symbolic.n) * (threads + 1) + plan.carry_size);
    const std::size_t fitting =
        std::max(kWorkspace, factor.panels_.size() * sizeof(T) / 4) / std::max<std::size_t>(row_bytes, 1);
    const idx block = (idx)std::clamp<std::size_t>(fitting, 1, std::min(nrhs, kLargestBlock));
    space = std::make_unique<Workspace>(factor, block, threads);
  }

  ~Solver() {
    if (space->block == 1 && complete) factor.workspace_.keep(std::move(space));  // otherwise sums are not zero
  }

  // Calls body(begin, end) for blocks of W columns, multiples of 8.
  template <class Body> static void each_block(idx W, bool descending, Body&& body) {
    const int blocks = std::max(1, W / kColumns);
    for (int k = 0; k < blocks; k++) {
      const auto [begin, end] = part_of(W, descending ? blocks - 1 - k : k, blocks);
      body(begin, end);
    }
  }

  // Y (m rows) -= A X, A of K columns, 8 at a time as in kernels for whole fronts.
  void subtract(Loops& loops, idx m, idx K, bool descending, const T* A, off lda, const T* X, off ldx, T* Y, off ldy,
                bool conjugate) const {
    const int parts = loops.parts(m, kLeastRows);
    loops.run(parts, [&](int part, int) {
      const auto [i, end] = part_of(m, part, parts);
      for (idx step = 0; step < K; step += 8) {
        const idx k = descending ? (K - 1 - step) / 8 * 8 : step;
        kernel.subtract_product(end - i, width, std::min(K - k, 8), A + i + k * lda, lda, X + k, ldx, Y + i, ldy,
                                conjugate);
      }
    });
  }

  // Y (m rows) -= A^T X, A of K rows.
  void subtract_t(Loops& loops, idx m, idx K, const T* A, off lda, const T* X, off ldx, T* Y, off ldy,
                  bool conjugate) const {
    const int parts = loops.parts(m, 8);
    loops.run(parts, [&](int part, int) {
      const auto [i, end] = part_of(m, part, parts);
      kernel.subtract_product_t(end - i, width, K, A + i * lda, lda, X, ldx, Y + i, ldy, conjugate);
    });
  }

  // The elimination step of one front: X is W x width with leading dimension ldx, Y is H x width.
  void forward(Loops& loops, idx s, const FrontShape& shape, T* X, off ldx, T* Y, off ldy, T* work) const {
    if (symbolic.is_interface(s)) return;
    const auto [W, H, R] = shape;
    const idx start = symbolic.super_ptr[s], *pivots = factor.pivots_.data() + start;
    const T *L = factor.panel(s), *below = transposed ? L + off(R) * W : L + W;
    const off ldb = transposed ? H : R;
    if (ldlt) apply_order(W, pivots, width, X, ldx, work, false);
    else if (!cholesky && !transposed) apply_pivots(W, pivots, width, X, ldx);
    const auto solve = cholesky ? kernel.cholesky_forward : transposed ? kernel.lu_forward_t : kernel.lu_forward;
    if (has_loops(shape)) {
      each_block(W, false, [&](idx k0, idx k1) {
        const T* block = L + off(R) * k0;
        if (transposed) subtract_t(loops, k1 - k0, k0, block, R, X, ldx, X + k0, ldx, conj);
        solve(k1 - k0, 0, width, block + k0, R, nullptr, 1, X + k0, ldx, nullptr, 1, conj);
        if (!transposed)
          subtract(loops, W - k1, k1 - k0, false, block + k1, R, X + k0, ldx, X + k1, ldx, conj && cholesky);
      });
      const int parts = loops.parts(H, kLeastRows);
      loops.run(parts, [&](int part, int) {
        const auto [i, end] = part_of(H, part, parts);
        kernel.subtract_product(end - i, width, W, below + i, ldb, X, ldx, Y + i, ldy,
                                conj && (cholesky || transposed));
      });
    } else {
      solve(W, H, width, L, R, below, ldb, X, ldx, Y, ldy, conj);
    }
    if (ldlt)
      solve_pivots(W, factor.diagonal_.data() + start, factor.below_diagonal_.data() + start, factor.hermitian_, width,
                   X, ldx);
  }

  void backward(Loops& loops, idx s, const FrontShape& shape, T* X, off ldx, const T* Y, off ldy, T* work) const {
    if (symbolic.is_interface(s)) return;
    const auto [W, H, R] = shape;
    const bool by_upper = !cholesky && !ldlt && !transposed;
    const idx* pivots = factor.pivots_.data() + symbolic.super_ptr[s];
    const T *L = factor.panel(s), *below = by_upper ? L + off(R) * W : L + W;
    const auto solve = cholesky ? kernel.cholesky_backward : by_upper ? kernel.lu_backward : kernel.lu_backward_t;
    const bool conjugate = by_upper ? false : cholesky ? !conj : ldlt ? factor.hermitian_ : conj;
    const off ldb = by_upper ? H : R;
    if (has_loops(shape)) {
      subtract_t(loops, W, H, below, ldb, Y, ldy, X, ldx, conjugate);
      each_block(W, true, [&](idx k0, idx k1) {
        const T* block = L + off(R) * k0;
        if (!by_upper) subtract_t(loops, k1 - k0, W - k1, block + k1, R, X + k1, ldx, X + k0, ldx, conjugate);
        solve(k1 - k0, 0, width, block + k0, R, nullptr, 1, X + k0, ldx, nullptr, 1, conjugate);
        if (by_upper) subtract(loops, k0, k1 - k0, true, block, R, X + k0, ldx, X, ldx, false);
      });
    } else {
      solve(W, H, width, L, R, below, ldb, X, ldx, Y, ldy, conjugate);
    }
    if (ldlt) apply_order(W, pivots, width, X, ldx, work, true);
    else if (transposed) apply_pivots(W, pivots, width, X, ldx, true);
  }

  // Row k of the permuted right-hand side.
  T right_hand_side(idx k, idx r) const {
    const idx i = from[k];
    const T v = conj_if(b[i + r * off(symbolic.n)], mirrored);
    return from_scale ? scaled(v, from_scale[i]) : v;
  }

  // Entries that a solve visits in front s.
  off entries(idx s) const {
    const FrontShape shape = factor.shape(s);
    return off(shape.W) * shape.R * width;
  }

  void up(Loops& loops, idx t) const {
    const FrontTask& task = plan.tasks[t];
    if (must_stop()) return;
    Pace pace;
    for (idx s = task.first; s <= task.last && !pace.must_stop(entries(s)); s++) {
      if (width == 1) up_front<true>(loops, s);
      else up_front<false>(loops, s);
    }
  }

  // Z: front rows x width by columns. Above the cut the carries of the children hold all contributions, below it `sum`
  // does.
  template <bool single> void up_front(Loops& loops, idx s) const {
    T *sum = space->sums[loops.rank()].data(), *Z = space->scratch[loops.rank()].data();
    const idx width = single ? 1 : this->width;
    const FrontShape shape = factor.shape(s);
    const auto [W, H, R] = shape;
    const idx start = symbolic.super_ptr[s];
    const idx* rows = symbolic.row_ind.data() + symbolic.row_ptr[s];
    T* own = sum + off(start) * width;
    for (idx r = 0; r < width; r++) {
      T* z = Z + off(r) * R;
      for (idx k = 0; k < W; k++) z[k] = right_hand_side(start + k, r) + own[k * width + r];
      std::fill(z + W, z + R, T(0));
    }
    std::fill(own, own + off(W) * width, T(0));
    for (idx c = plan.child_ptr[s]; c < plan.child_ptr[s + 1]; c++) {
      const idx child = plan.child[c];
      if (plan.carry_ptr[child] < 0) break;  // below the cut, as are all children
      const idx n_rows = factor.shape(child).H;
      const idx* rel = symbolic.rel_ind.data() + symbolic.row_ptr[child];
      const T* in = space->carry.data() + plan.carry_ptr[child] * width;
      for (idx i = 0; i < n_rows; i++)
        for (idx r = 0; r < width; r++) Z[rel[i] + off(r) * R] += in[off(i) * width + r];
    }
    forward(loops, s, shape, Z, R, Z + W, R, Z + off(width) * R);
    T* solved = space->solution.data() + off(start) * width;
    for (idx k = 0; k < W; k++)
      for (idx r = 0; r < width; r++) solved[k * width + r] = Z[k + off(r) * R];
    if (plan.carry_ptr[s] < 0) {
      for (idx i = 0; i < H; i++)
        for (idx r = 0; r < width; r++) sum[off(rows[i]) * width + r] += Z[W + i + off(r) * R];
    } else {
      T* out = space->carry.data() + plan.carry_ptr[s] * width;
      for (idx i = 0; i < H; i++)
        for (idx r = 0; r < width; r++)
          out[off(i) * width + r] = std::exchange(sum[off(rows[i]) * width + r], T(0)) + Z[W + i + off(r) * R];
    }
  }

  // Rows of `halfway` are scaled as in the permuted system, except those of the interface.
  void leave(T* halfway) const {
    const idx n = symbolic.n, first = n - symbolic.n_interface;
    const T* own = space->solution.data();
    for (idx r = 0; r < width; r++)
      for (idx k = 0; k < n; k++) {
        const T v = own[off(k) * width + r];
        halfway[k + off(r) * n] = from_scale && k >= first ? scaled(v, 1 / from_scale[from[k]]) : v;
      }
  }

  void resume(const T* halfway) const {
    const idx n = symbolic.n, first = n - symbolic.n_interface;
    T* own = space->solution.data();
    for (idx r = 0; r < width; r++)
      for (idx k = 0; k < n; k++) {
        const T v = halfway[k + off(r) * n];
        own[off(k) * width + r] = to_scale && k >= first ? scaled(v, 1 / to_scale[to[k]]) : v;
      }
  }

  void down(Loops& loops, idx t) const {
    const FrontTask& task = plan.tasks[t];
    if (must_stop()) return;
    Pace pace;
    for (idx s = task.last; s >= task.first && !pace.must_stop(entries(s)); s--) {
      if (width == 1) down_front<true>(loops, s);
      else down_front<false>(loops, s);
    }
  }

  template <bool single> void down_front(Loops& loops, idx s) const {
    T* Z = space->scratch[loops.rank()].data();
    const idx width = single ? 1 : this->width;
    const FrontShape shape = factor.shape(s);
    const auto [W, H, R] = shape;
    const idx start = symbolic.super_ptr[s];
    const idx* rows = symbolic.row_ind.data() + symbolic.row_ptr[s];
    T* own = space->solution.data() + off(start) * width;
    for (idx r = 0; r < width; r++) {
      T* z = Z + off(r) * R;
      for (idx k = 0; k < W; k++) z[k] = own[k * width + r];
      for (idx i = 0; i < H; i++) z[W + i] = space->solution.data()[off(rows[i]) * width + r];
    }
    backward(loops, s, shape, Z, R, Z + W, R, Z + off(width) * R);
    for (idx k = 0; k < W; k++) {
      const idx row = to[start + k];
      for (idx r = 0; r < width; r++) {
        const T v = Z[k + off(r) * R], u = conj_if(v, mirrored);
        own[k * width + r] = v;
        x[row + r * off(symbolic.n)] = to_scale ? scaled(u, to_scale[row]) : u;
      }
    }
  }
};

template <class T> double FrontFactor<T>::time_of_solve() const {
  const TaskCosts& costs = symbolic_->costs.tasks;
  return 2 * (costs.bytes * panels_.size() * sizeof(T) + costs.visits * symbolic_->nsuper());
}

template <class T> int FrontFactor<T>::threads_of_solve() const {
  return (int)std::min<double>(num_threads(), 1 + time_of_solve() / symbolic_->costs.threads.solve);
}

// Solves from b up to the roots and down to x, but only down if there is `from`, and only up if there is `to`.
template <class T>
void FrontFactor<T>::solve_halves(Trans trans, idx nrhs, const T* b, const T* from, T* to, T* x) const {
  const int want = threads_of_solve();
  Solver solver(*this, trans, nrhs, want);
  static constinit JobKind whole, half;
  const bool shared = want > 1 && std::any_of(plan_.tasks.begin(), plan_.tasks.end(),
                                              [&](const FrontTask& task) { return has_loops(shape(task.last)); });
  for (idx first = 0; first < nrhs; first += solver.space->block) {
    const off begin = (off)first * symbolic_->n;
    solver.width = std::min(solver.space->block, nrhs - first);
    solver.b = b + begin, solver.x = x + begin;
    if (from) solver.resume(from + begin);
    UpwardWalk up(plan_);
    DownwardWalk down(plan_);
    SharedLoops up_loops(want), down_loops(want);
    const auto body = [&](const Team& team) {
      if (shared) {
        if (!from) up.run(team, up_loops, [&](Loops& loops, idx t) { solver.up(loops, t); });
        if (!to) down.run(team, down_loops, [&](Loops& loops, idx t) { solver.down(loops, t); });
        return;
      }
      Loops serial(team.rank);
      if (!from) {
        up.run([&](idx t) { solver.up(serial, t); });
        up.wait(team);
      }
      if (!to) down.run(team, [&](idx t) { solver.down(serial, t); });
    };
    run_helpers(want, body, from || to ? &half : &whole, time_of_solve() * solver.width);
    if (to) solver.leave(to + begin);
    have_done(solver.width);
  }
  solver.complete = true;
}

template <class T> void FrontFactor<T>::solve(Trans trans, idx nrhs, const void* b, void* x) const {
  if (symbolic_->n == 0 || nrhs == 0) return;
  begin_phase("solve", nrhs);
  solve_halves(trans, nrhs, (const T*)b, nullptr, nullptr, (T*)x);
}

template <class T> void FrontFactor<T>::complement(T* S) const {
  const Symbolic& symbolic = *symbolic_;
  const idx m = symbolic.n_interface, start = symbolic.n - m;
  const T* own = panel(symbolic.nsuper() - 1);
  const bool hermitian = symbolic.cholesky || hermitian_;
  for (idx j = 0; j < m; j++)
    for (idx i = 0; i < m; i++) {
      const bool mirrored = symbolic.one_triangle() && i < j;
      const T v = mirrored ? conj_if(own[j + off(i) * m], hermitian) : own[i + off(j) * m];
      S[i + off(j) * m] = symbolic.row_scale.empty() ? v
                                                     : unscaled(v, 1 / symbolic.row_scale[symbolic.row_perm[start + i]],
                                                                1 / symbolic.col_scale[symbolic.col_perm[start + j]]);
    }
}

#define GS_INSTANTIATE(T)                                                                   \
  template int FrontFactor<T>::threads_of_solve() const;                                    \
  template void FrontFactor<T>::solve(Trans, idx, const void*, void*) const;                \
  template void FrontFactor<T>::solve_halves(Trans, idx, const T*, const T*, T*, T*) const; \
  template void FrontFactor<T>::complement(T*) const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
