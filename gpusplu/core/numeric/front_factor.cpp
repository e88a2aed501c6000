#include "numeric/front_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/graph.hpp"
#include "base/job_kind.hpp"
#include "base/operation.hpp"
#include "base/range_flags.hpp"
#include "base/stopwatch.hpp"
#include "base/types.hpp"
#include "matrix/sort_rows.hpp"
#include "numeric/front_assembly.hpp"
#include "numeric/front_walks.hpp"

namespace gs {
namespace {

constexpr off kChunk = 1 << 20;    // entries of a front between checks for interrupts
constexpr idx kLeastColumns = 16;  // of a front, minimum that a thread assembles at once

}  // namespace

template <class T> FrontFactor<T>::FrontFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A, bool hermitian)
    : symbolic_(std::move(symbolic)),
      plan_(*symbolic_, A),
      block_limit_(*symbolic_, plan_, sizeof(T)),
      panels_(plan_.panel_ptr.back()),
      pivots_(symbolic_->n),
      hermitian_(hermitian),
      diagonal_(symbolic_->ldlt ? symbolic_->n : 0),
      below_diagonal_(diagonal_.size()),
      contribution_(symbolic_->nsuper(), nullptr) {
  for (idx s = 0; s < symbolic_->nsuper(); s++) {
    const auto [W, H, R] = shape(s);
    nnz_lower_ += off(W) * (W + 1) / 2 + off(W) * H;
    tallest_ = std::max(tallest_, R);
    largest_contribution_ =
        std::max(largest_contribution_, contribution_size(H, symbolic_->one_triangle()) * sizeof(T));
  }
  nnz_upper_ = nnz_lower_;
}

template <class T> off FrontFactor<T>::bytes() const {
  off bytes =
      panels_.size() * sizeof(T) + plan_.bytes() + pivots_.size() * sizeof(idx) + contribution_.size() * sizeof(T*);
  bytes += memory_.bytes();
  for (const auto& scratch : scratch_) bytes += scratch.size() * sizeof(T);
  bytes += 2 * diagonal_.size() * sizeof(T) + place_.size() * sizeof(idx);
  return bytes;
}

// One factorization. Data that threads share is either constant or owned by the front that a thread works on.
template <class T> struct FrontFactor<T>::Run {
  struct Member {
    PivotStats stats;
    real_t<T> largest_entry = 0, smallest_pivot = std::numeric_limits<real_t<T>>::max(), largest_pivot = 0;
    idx n_off_diagonal = 0;
    bool flushed = false;
    std::vector<idx> perturbed;  // columns
    Pace pace;
    std::vector<FrontSpan> spans;
  };

  FrontFactor& factor;
  const Symbolic& symbolic;
  const FrontPlan& plan;
  const T* values;
  const PivotRule& rule;
  std::vector<Member> members;
  std::vector<PivotStats*> stats;  // per thread
  std::vector<T*> scratch;         // per thread, LDL^T
  // Fronts from this one on need not be factored: the lowest front with a failed pivot. Lower ones are still factored,
  // so the reported column is the first in elimination order for any schedule of threads.
  std::atomic<idx> failed_front;
  std::atomic<idx> failed_column{-1};
  std::atomic<bool> out_of_memory{false};
  bool complete = false;
  std::mutex failing;
  std::optional<Stopwatch> watch;  // set if times of fronts are recorded

  Run(FrontFactor& factor, const T* values, const PivotRule& rule, int threads)
      : factor(factor),
        symbolic(*factor.symbolic_),
        plan(factor.plan_),
        values(values),
        rule(rule),
        members(threads),
        failed_front(symbolic.nsuper()) {
    for (Member& member : members) stats.push_back(&member.stats);
    for (auto& own : factor.scratch_) scratch.push_back(own.data());
    if (!recorded_fronts) return;
    for (Member& member : members) member.spans.reserve(symbolic.nsuper());
    watch.emplace();
  }

  // After an incomplete run, frees the contribution blocks that no parent has taken.
  ~Run() {
    for (idx s = 0; s < symbolic.nsuper() && !complete; s++) give_contribution(0, s);
    factor.memory_.start_again();
  }

  // Records how long a thread works on a front, if requested.
  struct AtFront {
    Run& run;
    int rank;
    idx front;
    double begin = run.watch ? run.watch->seconds() : 0;
    ~AtFront() {
      if (run.watch) run.members[rank].spans.push_back({rank, front, begin, run.watch->seconds()});
    }
  };

  void leave_record() const {
    if (!watch) return;
    for (const Member& member : members)
      recorded_fronts->insert(recorded_fronts->end(), member.spans.begin(), member.spans.end());
  }

  bool skip(idx s) const {
    return s > failed_front.load(std::memory_order_relaxed) || out_of_memory.load(std::memory_order_relaxed);
  }

  void fail(idx s, idx column) {
    std::lock_guard<std::mutex> lock(failing);
    if (s >= failed_front.load()) return;
    failed_front = s, failed_column = symbolic.super_ptr[s] + column;
  }

  std::size_t contribution_bytes(idx s) const {
    return contribution_size(factor.shape(s).H, symbolic.one_triangle()) * sizeof(T);
  }

  // Rows of child c in its parent.
  const idx* rel(idx c) const { return symbolic.rel_ind.data() + symbolic.row_ptr[c]; }

  bool take_contribution(int rank, idx s) {
    try {
      if (const std::size_t bytes = contribution_bytes(s))
        factor.contribution_[s] = static_cast<T*>(factor.memory_.take(rank, bytes));
      return true;
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
      return false;
    }
  }

  void give_contribution(int rank, idx s) {
    if (T* block = std::exchange(factor.contribution_[s], nullptr))
      factor.memory_.give(rank, block, contribution_bytes(s));
  }

  FrontBlocks<T> blocks(idx s) const {
    const FrontShape shape = factor.shape(s);
    T* L = factor.panel(s);
    return {shape, L, L + off(shape.W) * shape.R, contribution(s), symbolic.one_triangle()};
  }

  Strips<T> contribution(idx s) const {
    const idx H = factor.shape(s).H;
    return {factor.contribution_[s], H, strip_width(H, symbolic.one_triangle())};
  }

  // The child that is added first may be copied into C if it covers all of it.
  bool covers(const FrontShape& shape, idx child) const {
    const idx n_rows = factor.shape(child).H;
    return shape.H > 0 && n_rows >= shape.H && rel(child)[n_rows - shape.H] == shape.W;
  }

  // Assembles columns of front s; children from the last to the first, because the last is the most recent in the
  // cache.
  void assemble_children(const FrontBlocks<T>& front, idx s, ColumnRange columns, bool assign_c) {
    for (idx c = plan.child_ptr[s + 1]; c-- > plan.child_ptr[s]; assign_c = false) {
      const idx child = plan.child[c];
      if (factor.contribution_[child])
        add_child(front, columns, factor.shape(child).H, rel(child), contribution(child), assign_c);
    }
  }

  // Processes columns of large fronts in chunks, because their memory faults page by page.
  template <class Work> static void by_chunks(const FrontBlocks<T>& front, ColumnRange columns, Work&& work) {
    const idx most = std::max<idx>(64, idx(kChunk / (front.shape.R + 1)));
    if (columns.end - columns.begin <= most) return work(columns);
    for (idx begin = columns.begin; begin < columns.end && !must_stop(); begin += most)
      work(ColumnRange{begin, std::min(columns.end, begin + most)});
  }

  bool assigns_c(const FrontShape& shape, idx s) const {
    return plan.child_ptr[s] < plan.child_ptr[s + 1] && covers(shape, plan.child[plan.child_ptr[s + 1] - 1]);
  }

  // Runs a task. After an interrupt, fronts and those that depend on them stay unfinished.
  void task(Loops& loops, const FrontTask& task) {
    if (must_stop()) return;
    const int rank = loops.rank();
    Loops serial(rank);
    for (idx s = task.first; s <= task.last; s++) {
      const off R = factor.shape(s).R;
      if (members[rank].pace.must_stop(R * R)) return;
      front(task.is_large ? loops : serial, s);
    }
    have_done(task.work);
  }

  void front(Loops& loops, idx s) {
    const int rank = loops.rank();
    if (skip(s) || !take_contribution(rank, s)) return;
    const AtFront at{*this, rank, s};
    const FrontBlocks<T> front = blocks(s);
    const bool assign_c = assigns_c(front.shape, s);
    const int parts = loops.parts(front.shape.R, kLeastColumns);
    const auto share_out = [&](auto&& work) { parts == 1 ? work(0, rank) : loops.run(parts, work); };
    const auto by_columns = [&](auto&& work) {
      share_out([&](int k, int) { by_chunks(front, part(front, k, parts), work); });
    };
    by_columns([&](ColumnRange chunk) { clear_front(front, chunk, assign_c); });
    share_out([&](int k, int rank) {
      const off begin = plan.entry_ptr[s], end = plan.entry_ptr[s + 1];
      const auto entry = [&](int k) { return k == parts ? end : k == 0 ? begin : begin + (end - begin) * k / parts; };
      const real_t<T> largest = place_values(plan, entry(k), entry(k + 1), values, front.L);
      members[rank].largest_entry = std::max(members[rank].largest_entry, largest);
    });
    by_columns([&](ColumnRange chunk) { assemble_children(front, s, chunk, assign_c); });
    for (idx c = plan.child_ptr[s]; c < plan.child_ptr[s + 1]; c++) give_contribution(rank, plan.child[c]);
    eliminate(loops, s, front);
  }

  // Columns of equal area: in one triangle, column j has R - j rows.
  static ColumnRange part(const FrontBlocks<T>& front, int k, int parts) {
    const idx R = front.shape.R;
    auto boundary = [&](int k) {
      if (k == 0 || k == parts) return k == 0 ? 0 : R;
      const double share = double(k) / parts;
      return idx(R * (front.one_triangle ? 1 - std::sqrt(1 - share) : share));
    };
    return {boundary(k), boundary(k + 1)};
  }

  void eliminate(Loops& loops, idx s, const FrontBlocks<T>& front) {
    if (symbolic.is_interface(s)) return;
    if (symbolic.ldlt) return eliminate_ldlt(loops, s, front);
    Member& member = members[loops.rank()];
    const auto [W, H, R] = front.shape;
    idx* pivots = factor.pivots_.data() + symbolic.super_ptr[s];
    if (symbolic.cholesky) {
      const idx column = cholesky_front(loops, W, H, front.L, off(R), front.C);
      if (column >= 0) return fail(s, column);
    } else {
      lu_front(loops, W, H, front.L, off(R), front.Ut, off(H), front.C.data, off(H), pivots, rule_for(H), stats.data());
    }
    for (idx k = 0; k < W; k++) {
      const real_t<T> pivot =
          symbolic.cholesky ? abs1(front.L[k + off(k) * R] * front.L[k + off(k) * R]) : abs1(front.L[k + off(k) * R]);
      member.smallest_pivot = std::min(member.smallest_pivot, pivot);
      member.largest_pivot = std::max(member.largest_pivot, pivot);
      if (!symbolic.cholesky) member.n_off_diagonal += pivots[k] != k;
    }
  }

  // If a front has no rows except its own pivots, pivoting is complete and a small pivot is a property of the matrix.
  PivotRule rule_for(idx H) const {
    return {H > 0 ? rule.perturb_below : std::min(rule.perturb_below, rule.tiny_below), rule.tiny_below};
  }

  void eliminate_ldlt(Loops& loops, idx s, const FrontBlocks<T>& front) {
    Member& member = members[loops.rank()];
    const auto [W, H, R] = front.shape;
    const idx start = symbolic.super_ptr[s];
    T *const d = factor.diagonal_.data() + start, *const e = factor.below_diagonal_.data() + start;
    idx* const order = factor.pivots_.data() + start;
    const LdltBlocks<T> blocks{W, H, front.L, off(R), front.C, d, e, order, factor.hermitian_};
    const idx n_perturbed = member.stats.n_perturbed;
    ldlt_front(loops, blocks, scratch.data(), rule_for(H), stats.data());
    if (H > 0 && member.stats.n_perturbed > n_perturbed) note_perturbed(member, s, blocks);
    for (idx k = 0; k < W; k++) {
      const real_t<T> below = abs1(e[k]), pivot = below > 0 ? below : abs1(d[k]);
      member.smallest_pivot = std::min(member.smallest_pivot, pivot);
      member.largest_pivot = std::max(member.largest_pivot, pivot);
      member.n_off_diagonal += order[k] != k;
      k += below > 0;
    }
  }

  // Recognizes perturbed pivots by the size that the perturbation gives them.
  void note_perturbed(Member& member, idx s, const LdltBlocks<T>& front) {
    const double size = rule_for(front.H).perturb_below;
    const auto is_perturbed = [&](idx k) {
      return front.e[k] == T(0) && std::abs(abs1(front.d[k]) - size) <= 1e-3 * size;
    };
    try {
      for (idx k = 0; k < front.W; k++)
        if (is_perturbed(k)) member.perturbed.push_back(symbolic.col_perm[symbolic.super_ptr[s] + front.order[k]]);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  }

  FactorInfo report() {
    FactorInfo info;
    Member all;
    factor.perturbed_columns_.clear();
    for (const Member& member : members) {
      factor.perturbed_columns_.insert(factor.perturbed_columns_.end(), member.perturbed.begin(),
                                       member.perturbed.end());
      merge(all.stats, member.stats);
      all.largest_entry = std::max(all.largest_entry, member.largest_entry);
      all.smallest_pivot = std::min(all.smallest_pivot, member.smallest_pivot);
      all.largest_pivot = std::max(all.largest_pivot, member.largest_pivot);
      info.n_off_diagonal += member.n_off_diagonal;
      info.flushed = info.flushed || member.flushed;
    }
    std::sort(factor.perturbed_columns_.begin(), factor.perturbed_columns_.end());
    info.n_perturbed = all.stats.n_perturbed;
    info.n_tiny = all.stats.n_tiny;
    info.min_pivot = symbolic.n ? all.smallest_pivot : 0, info.max_pivot = all.largest_pivot;
    info.max_multiplier = all.stats.max_multiplier;
    info.max_entry = all.largest_entry;
    if (all.largest_entry > 0) info.pivot_growth = all.stats.max_upper / all.largest_entry;
    info.flops = symbolic.flops;
    if (const idx column = failed_column; column >= 0) {
      const idx s = failed_front, k = column - symbolic.super_ptr[s];
      const real_t<T> pivot = std::real(factor.panel(s)[k + off(k) * factor.shape(s).R]);
      info.status = std::isfinite(pivot) ? FactorInfo::not_positive_definite : FactorInfo::not_finite;
      info.column = symbolic.col_perm[column], info.min_pivot = pivot;
    } else if (!all.stats.finite) {
      info.status = FactorInfo::not_finite;
    }
    return info;
  }
};

template <class T> FactorInfo FrontFactor<T>::factor(const void* values, const PivotRule& rule, bool flush) {
  const int want = (int)std::min<double>(num_threads(), 1 + plan_.total_work / symbolic_->costs.threads.factor);
  memory_.prepare(want, largest_contribution_, (std::size_t)block_limit_.bytes());
  if (symbolic_->ldlt) {
    if ((int)scratch_.size() < want) scratch_.resize(want);
    for (auto& scratch : scratch_) scratch.resize(ldlt_scratch(tallest_));
  }
  Run run(*this, (const T*)values, rule, want);
  UpwardWalk walk(plan_, want > 1 ? &block_limit_ : nullptr);
  begin_phase("factor", plan_.total_work);
  static constinit JobKind kind;
  SharedLoops shared(want);
  const auto body = [&](const Team& team) {
    const FlushToZero zeros(flush);
    walk.run(team, shared, [&](Loops& loops, idx t) { run.task(loops, plan_.tasks[t]); });
    run.members[team.rank].flushed = flush && zeros.flushed();
  };
  run_helpers(want, body, &kind, plan_.total_work);
  run.complete = !run.out_of_memory && run.failed_column < 0;
  if (run.out_of_memory) throw std::bad_alloc();
  run.leave_record();
  return run.report();
}

// ---- extraction
// The factors as compressed columns. Cost: O(panels), twice: entries that are exactly zero are counted, then omitted.
//
// A front exchanges only its own rows. The same rows of L in its descendants move too: an entry of row i belongs to row
// new_row[i].

namespace {

// scale[perm[k]], or ones.
std::vector<double> gathered(const std::vector<double>& scale, const std::vector<idx>& perm) {
  std::vector<double> out(perm.size(), 1.0);
  if (!scale.empty())
    for (std::size_t k = 0; k < perm.size(); k++) out[k] = scale[perm[k]];
  return out;
}

}  // namespace

template <class T> std::vector<idx> FrontFactor<T>::row_perm() const {
  std::vector<idx> perm = symbolic_->row_perm;
  if (symbolic_->cholesky) return perm;
  for (idx s = 0; s < symbolic_->nsuper(); s++) {
    const idx start = symbolic_->super_ptr[s], W = shape(s).W;
    for (idx k = 0; k < W; k++)
      if (symbolic_->ldlt) perm[start + k] = symbolic_->row_perm[start + pivots_[start + k]];
      else std::swap(perm[start + k], perm[start + pivots_[start + k]]);
  }
  return perm;
}

template <class T> AnyMatrix FrontFactor<T>::triangle(bool upper) const {
  const Symbolic& symbolic = *symbolic_;
  const std::vector<idx> perm = row_perm();
  const std::vector<double> row_scale = gathered(symbolic.row_scale, perm);
  const std::vector<double> col_scale = gathered(symbolic.col_scale, symbolic.col_perm);
  const std::vector<idx> new_row = gather(inverse_permutation(perm.data(), symbolic.n), symbolic.row_perm);
  const bool unit = !upper && !symbolic.cholesky;
  Pace pace;
  const auto each_entry = [&](auto&& visit) {  // visit(row, column, value)
    for (idx s = 0; s < symbolic.nsuper(); s++) {
      const auto [W, H, R] = shape(s);
      const idx start = symbolic.super_ptr[s];
      const idx* rows = symbolic.row_ind.data() + symbolic.row_ptr[s];
      for (idx k = 0; k < W; k++) {
        pace.go_on(R);
        const idx j = start + k;
        const T* column = panel(s) + off(k) * R;
        const T* beyond = upper ? panel(s) + off(R) * W + off(k) * H : column + W;
        for (idx i = k; i < R; i++) {
          const T v = i >= W ? beyond[i - W] : upper ? panel(s)[k + off(i) * R] : column[i];
          if (i > k && v == T(0)) continue;
          const idx other = i < W ? start + i : upper ? rows[i - W] : new_row[rows[i - W]];
          if (upper) visit(j, other, unscaled(v, 1 / row_scale[j], 1 / col_scale[other]));
          else visit(other, j, i == k && unit ? T(1) : unscaled(v, row_scale[j], 1 / row_scale[other]));
        }
      }
    }
  };
  Matrix<T> out;
  out.pattern.n = symbolic.n;
  out.pattern.ptr.assign(symbolic.n + 1, 0);
  each_entry([&](idx, idx j, T) { out.pattern.ptr[j + 1]++; });
  for (idx j = 0; j < symbolic.n; j++) out.pattern.ptr[j + 1] += out.pattern.ptr[j];
  std::vector<off> next(out.pattern.ptr);
  out.pattern.ind.resize(next.back()), out.values.resize(next.back());
  each_entry([&](idx i, idx j, T v) {
    const off p = next[j]++;
    out.pattern.ind[p] = i, out.values[p] = v;
  });
  sort_rows(out);
  return out;
}

template <class T> Values FrontFactor<T>::diagonal() const {
  const std::vector<double> row_scale = gathered(symbolic_->row_scale, row_perm());
  const std::vector<double> col_scale = gathered(symbolic_->col_scale, col_perm());
  std::vector<T> diagonal(symbolic_->n);
  for (std::size_t k = 0; k < diagonal_.size(); k++)
    diagonal[k] = unscaled(diagonal_[k], 1 / row_scale[k], 1 / col_scale[k]);
  if (symbolic_->ldlt) return diagonal;
  for (idx s = 0; s < symbolic_->nsuper(); s++) {
    const auto [W, H, R] = shape(s);
    for (idx k = 0; k < W; k++) {
      const idx j = symbolic_->super_ptr[s] + k;
      diagonal[j] = unscaled(panel(s)[k + off(k) * R], 1 / row_scale[j], 1 / col_scale[j]);
    }
  }
  return diagonal;
}

template <class T> Values FrontFactor<T>::below_diagonal() const {
  const std::vector<double> scale = gathered(symbolic_->row_scale, row_perm());
  std::vector<T> below(below_diagonal_);
  for (std::size_t k = 0; k + 1 < below.size(); k++) below[k] = unscaled(below[k], 1 / scale[k], 1 / scale[k + 1]);
  return below;
}

template <class T> std::pair<idx, idx> FrontFactor<T>::inertia_of_pivots() const {
  idx positive = 0, negative = 0;
  for (std::size_t k = 0; k < diagonal_.size(); k++) {
    const real_t<T> d = std::real(diagonal_[k]), e = std::abs(below_diagonal_[k]);
    if (e == 0) {
      (d > 0 ? positive : negative)++;
    } else if (d / e * (std::real(diagonal_[++k]) / e) < 1) {
      positive++, negative++;
    } else {
      (d > 0 ? positive : negative) += 2;
    }
  }
  return {positive, negative};
}

// ---- updates: Cholesky factors of A + C C^H and A - C C^H from those of A.
//
// A vector changes the columns on the path in the tree from its first row to the root, and nothing else (T. A. Davis
// and W. W. Hager, "Row modifications of a sparse Cholesky factorization", SIAM J. Matrix Anal. Appl. 26 (2005), and
// "Multiple-rank modifications of a sparse Cholesky factorization", 22 (2001)). Here the path goes from front to front.
// In a front a vector has one entry per row; each column rotates it, by a plane rotation or for a downdate a hyperbolic
// one in mixed form (A. Bojanczyk, R. Brent, P. Van Dooren and F. de Hoog, "A note on downdating the Cholesky
// factorization", SIAM J. Sci. Stat. Comput. 8 (1987)), and the entries below go to the parent. Vectors with paths that
// have met pass through a front together, column by column, so that it is read once. One thread does all of this, so
// the result does not depend on the number of threads.

namespace {

constexpr idx block_of_vectors = 8;  // vectors

// One plane or hyperbolic rotation: L <- (L + sign conj(s) w) / c, then w <- c w - s L, for n rows.
template <class T> void rotate(idx n, T* __restrict L, T* __restrict w, real_t<T> c, T s, int sign) {
  const real_t<T> inverse = 1 / c;
  const T t = real_t<T>(sign) * conj_if(s, true);
  for (idx i = 0; i < n; i++) {
    const T l = (L[i] + t * w[i]) * inverse;
    w[i] = c * w[i] - s * l;
    L[i] = l;
  }
}

// Column L with its pivot first, and the vector from the same row on. False if less than half of the digits of the
// pivot would be left, or if it is not positive.
template <class T> bool update_column(idx n, T* L, T* w, int sign) {
  using R = real_t<T>;
  const R size = std::abs(w[0]);
  if (size == 0) return true;
  const R pivot = std::real(L[0]);
  const R changed = sign > 0 ? std::hypot(pivot, size) : std::sqrt((pivot - size) * (pivot + size));
  const R c = changed / pivot;
  if (!(c * c > std::sqrt(std::numeric_limits<R>::epsilon())) || !std::isfinite(changed)) return false;
  rotate(n - 1, L + 1, w + 1, c, w[0] / pivot, sign);
  L[0] = T(changed);
  return true;
}

}  // namespace

// The fronts where the columns of C begin.
template <class T> std::vector<idx> FrontFactor<T>::first_fronts(const Pattern& C) const {
  const Symbolic& symbolic = *symbolic_;
  if (place_.empty()) place_ = inverse_permutation(symbolic.col_perm.data(), symbolic.n);
  std::vector<idx> first(C.n, -1);
  for (idx r = 0; r < C.n; r++) {
    idx lowest = symbolic.n;
    for (off p = C.ptr[r]; p < C.ptr[r + 1]; p++) lowest = std::min(lowest, place_[C.ind[p]]);
    if (lowest < symbolic.n)
      first[r] = (idx)(std::upper_bound(symbolic.super_ptr.begin(), symbolic.super_ptr.end(), lowest) -
                       symbolic.super_ptr.begin()) -
                 1;
  }
  return first;
}

template <class T> bool FrontFactor<T>::update_pays(const Pattern& C) const {
  double entries = 0;
  for (idx s : first_fronts(C))
    for (; s >= 0; s = symbolic_->super_parent[s]) entries += double(shape(s).W) * shape(s).R;
  return entries * symbolic_->costs.tasks.entries * num_threads() < plan_.total_work;
}

template <class T> bool FrontFactor<T>::update(const AnyMatrix& C, int sign) {
  const std::vector<idx> first = first_fronts(C.pattern);
  std::vector<idx> order(first.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](idx a, idx b) { return first[a] < first[b]; });
  const auto begin = std::partition_point(order.begin(), order.end(), [&](idx r) { return first[r] < 0; });
  std::vector<T> vectors((std::size_t)block_of_vectors * tallest_), below(tallest_);
  std::vector<idx> at(block_of_vectors);  // all memory is allocated before anything changes
  for (auto next = begin; next != order.end();) {
    const idx count = (idx)std::min<std::ptrdiff_t>(block_of_vectors, order.end() - next);
    if (!update_along_paths(C.pattern, std::get<std::vector<T>>(C.values).data(), &*next, count, first, sign, at.data(),
                            vectors.data(), below.data()))
      return false;
    next += count;
  }
  return true;
}

// `at`: the current front of each vector. Vectors in one front are adjacent, as fronts of a subtree are.
template <class T> bool FrontFactor<T>::update_along_paths(const Pattern& C, const T* values, const idx* which,
                                                           idx count, const std::vector<idx>& first, int sign, idx* at,
                                                           T* vectors, T* below) {
  const off ld = tallest_;
  Pace pace;
  std::fill(vectors, vectors + ld * count, T(0));
  for (idx k = 0; k < count; k++) {
    at[k] = first[which[k]];
    for (off p = C.ptr[which[k]]; p < C.ptr[which[k] + 1]; p++)
      vectors[row_in_front(at[k], place_[C.ind[p]]) + k * ld] = values[p];
  }
  for (;;) {
    idx begin = -1;
    for (idx k = 0; k < count; k++)
      if (at[k] >= 0 && (begin < 0 || at[k] < at[begin])) begin = k;
    if (begin < 0) return true;
    const idx s = at[begin];
    const auto [W, H, R] = shape(s);
    pace.go_on((off)W * R * count);
    idx end = begin;
    while (end < count && at[end] == s) end++;
    for (idx j = 0; j < W; j++)
      for (idx k = begin; k < end; k++)
        if (!update_column(R - j, panel(s) + j + off(j) * R, vectors + j + k * ld, sign)) return false;
    const idx* rel = symbolic_->rel_ind.data() + symbolic_->row_ptr[s];
    for (idx k = begin; k < end; k++) {
      T* own = vectors + k * ld;
      at[k] = symbolic_->super_parent[s];
      if (at[k] < 0) continue;
      std::copy(own + W, own + R, below);
      std::fill(own, own + std::max(R, shape(at[k]).R), T(0));
      for (idx i = 0; i < H; i++) own[rel[i]] = below[i];
    }
  }
}

// Position of a row in front s, from its position in the order of the fronts.
template <class T> idx FrontFactor<T>::row_in_front(idx s, idx place) const {
  const idx begin = symbolic_->super_ptr[s], end = symbolic_->super_ptr[s + 1];
  if (place < end) return place - begin;
  const idx *rows = symbolic_->row_ind.data() + symbolic_->row_ptr[s],
            *rows_end = symbolic_->row_ind.data() + symbolic_->row_ptr[s + 1];
  return end - begin + (idx)(std::lower_bound(rows, rows_end, place) - rows);
}

std::shared_ptr<FrontNumeric> make_front_factor(Dtype dtype, std::shared_ptr<const Symbolic> symbolic, PatternView A,
                                                bool hermitian) {
  return with_scalar(dtype, [&]<class T>(T) -> std::shared_ptr<FrontNumeric> {
    return std::make_shared<FrontFactor<T>>(std::move(symbolic), A, hermitian);
  });
}

#define GS_INSTANTIATE(T)                                                                   \
  template FrontFactor<T>::FrontFactor(std::shared_ptr<const Symbolic>, PatternView, bool); \
  template off FrontFactor<T>::bytes() const;                                               \
  template FactorInfo FrontFactor<T>::factor(const void*, const PivotRule&, bool);          \
  template std::vector<idx> FrontFactor<T>::row_perm() const;                               \
  template AnyMatrix FrontFactor<T>::triangle(bool) const;                                  \
  template Values FrontFactor<T>::diagonal() const;                                         \
  template Values FrontFactor<T>::below_diagonal() const;                                   \
  template std::pair<idx, idx> FrontFactor<T>::inertia_of_pivots() const;                   \
  template bool FrontFactor<T>::update_pays(const Pattern&) const;                          \
  template bool FrontFactor<T>::update(const AnyMatrix&, int);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
