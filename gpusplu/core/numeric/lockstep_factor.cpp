#include "numeric/lockstep_factor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "analysis/graph.hpp"
#include "base/threads.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "matrix/products.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

std::vector<idx> columns_of_entries(PatternView A) {
  std::vector<idx> column(A.nnz());
  for (idx j = 0; j < A.n; j++) std::fill(column.begin() + A.ptr[j], column.begin() + A.ptr[j + 1], j);
  return column;
}

idx longest_line(PatternView A, const std::vector<idx>& column) {
  std::vector<idx> rows(A.n), columns(A.n);
  for (off k = 0; k < A.nnz(); k++) rows[A.ind[k]]++, columns[column[k]]++;
  return A.n == 0 ? 0 : std::max(std::ranges::max(rows), std::ranges::max(columns));
}

static_assert(no_entry == SymmetricPairs::none);

gpu::LockstepPlan plan_of_columns(const Symbolic& symbolic, PatternView A, const LockstepColumns& columns) {
  gpu::LockstepPlan plan;
  plan.n = symbolic.n, plan.nnz = A.nnz(), plan.factor_size = (off)columns.row.size();
  plan.row_perm = columns.row_perm, plan.col_perm = symbolic.col_perm;
  plan.row_scale = symbolic.row_scale, plan.col_scale = symbolic.col_scale;
  return plan;
}

LockstepProgram program_of(const gpu::LockstepPlan& plan, const LockstepColumns& columns, PatternView A,
                           const std::vector<idx>& column, const LockstepSums& sums, const SymmetricPairs* pairs) {
  const auto or_null = [](const auto& v) { return v.empty() ? nullptr : v.data(); };
  return {.n = plan.n,
          .nf = plan.nf,
          .n_entries = (idx)plan.entry_source.size(),
          .cholesky = plan.cholesky,
          .A = A,
          .longest = longest_line(A, column),
          .column = column.data(),
          .first = pairs ? pairs->first.data() : nullptr,
          .second = pairs ? pairs->second.data() : nullptr,
          .n_pairs = pairs ? (off)pairs->first.size() : 0,
          .fronts = plan.fronts.data(),
          .below = plan.below.data(),
          .child = plan.child.data(),
          .entry_source = plan.entry_source.data(),
          .place = plan.place.data(),
          .sums = sums.ptr.data(),
          .sum_from = sums.from.data(),
          .sum_to = sums.to.data(),
          .most_listed = most_listed_rows,
          .entry_target = plan.entry_target.data(),
          .entry_scale = or_null(plan.entry_scale),
          .row_perm = plan.row_perm.data(),
          .col_perm = plan.col_perm.data(),
          .row_scale = or_null(plan.row_scale),
          .col_scale = or_null(plan.col_scale),
          .columns = {.n = plan.n,
                      .column = or_null(columns.column),
                      .row = columns.row.data(),
                      .segment = columns.segment.data(),
                      .target = columns.target.data(),
                      .entry_scale = or_null(columns.entry_scale),
                      .phase = columns.phase.data(),
                      .n_phases = (idx)columns.phase.size()}};
}

// Calls add(in_block, from, to) for the entries of a child's block, as simd/lockstep_front.hpp adds them.
template <class Add> void each_entry(const gpu::LockstepPlan& plan, const gpu::LockstepFront& front,
                                     const gpu::LockstepFront& child, Add&& add) {
  const std::uint16_t* place = plan.place.data() + child.below;
  const idx m = child.rows - child.width, pivots = child.above_pivots;
  const off R = front.rows, W = front.width, H = R - W;
  const off upper = R * W;
  for (idx j = 0; j < m; j++)
    for (idx i = plan.cholesky ? j : 0; i < m; i++) {
      const off from = child.block + off(j) * m + i, row = place[i], column = place[j];
      if (j < pivots) add(false, from, column * R + row);
      else if (i < pivots) add(false, from, upper + row * H + column - W);
      else add(true, from, (column - W) * H + row - W);
    }
}

// Throws std::length_error if blocks are too large for its indices.
LockstepSums make_lockstep_sums(const gpu::LockstepPlan& plan) {
  if (plan.task_size + plan.shared_size > std::numeric_limits<idx>::max())
    throw std::length_error("the blocks of a system have more than 2147483647 entries");
  LockstepSums sums;
  sums.ptr = {0};
  for (const gpu::LockstepFront& front : plan.fronts)
    for (const bool of_block : {false, true}) {
      for (idx c = front.child_begin; c < front.child_end; c++) {
        const gpu::LockstepFront& child = plan.fronts[plan.child[c]];
        if (child.rows - child.width > most_listed_rows) continue;
        each_entry(plan, front, child, [&](bool in_block, off from, off to) {
          if (in_block == of_block) sums.from.push_back((idx)from), sums.to.push_back((idx)to);
        });
      }
      sums.ptr.push_back((off)sums.to.size());
    }
  return sums;
}

}  // namespace

template <class T>
LockstepFactor<T>::LockstepFactor(const Symbolic& symbolic, PatternView A, idx count, const SupernodeCosts& merging,
                                  const AccuracyPolicy& policy, const Canonical* compared, const T* guide)
    : A_(A),
      count_(count),
      columns_(symbolic.method == Method::column ? make_lockstep_columns<T>(symbolic, A, guide) : LockstepColumns()),
      plan_(symbolic.method == Method::column ? plan_of_columns(symbolic, A, columns_)
                                              : gpu::make_lockstep_plan(symbolic, A, {merging})),
      policy_(policy),
      column_(columns_of_entries(A)),
      pairs_(compared ? std::optional<SymmetricPairs>(std::in_place, *compared, true, is_complex<T>) : std::nullopt),
      sums_(make_lockstep_sums(plan_)),
      program_(program_of(plan_, columns_, A, column_, sums_, pairs_ ? &*pairs_ : nullptr)),
      kernels_(lockstep_kernels<T>()),
      values_(n_groups() * A.nnz() * numbers),
      factor_(n_groups() * plan_.factor_size * numbers),
      notes_((std::size_t)n_groups() * lanes),
      errors_(count, -1),
      steps_(count),
      refined_(n_groups()) {}

template <class T> off LockstepFactor<T>::bytes() const {
  off bytes = (values_.size() + factor_.size()) * sizeof(R);
  for (const auto& work : work_) bytes += work.size() * sizeof(R);
  return bytes;
}

// Rows of the systems in the lanes of a group, `stride` numbers apart; unused lanes contain the last system.
template <class T> template <class Row>
void LockstepFactor<T>::rows_of(idx group, Row* begin, off stride, Row** rows) const {
  for (int l = 0; l < lanes; l++) rows[l] = begin + std::min<off>((off)group * lanes + l, count_ - 1) * stride;
}

// Runs work(group, memory) with `workspace` numbers of memory. Allocations come first, so that an exception leaves
// nothing half done. A thread begins with the same groups each time, because its caches may hold their factors.
template <class T> template <class Work> void LockstepFactor<T>::over_groups(off workspace, Work&& work) {
  const idx n = n_groups();
  const int threads = std::min<int>(num_threads(), n);
  if ((int)work_.size() < threads) work_.resize(threads);
  for (int rank = 0; rank < threads; rank++)
    if ((off)work_[rank].size() < workspace) work_[rank] = RawVector<R>(workspace);
  claimed_.assign(n, 0);
  const auto claim = [&](std::uint8_t* group) {
    return !__atomic_load_n(group, __ATOMIC_RELAXED) && !__atomic_exchange_n(group, 1, __ATOMIC_RELAXED);
  };
  const auto body = [&](const Team& team) {
    const idx own = (idx)((off)n * team.rank / team.size);
    for (idx i = 0; i < n && !must_stop(); i++) {
      const idx group = own + i < n ? own + i : own + i - n;
      if (!claim(&claimed_[group])) continue;
      work(group, work_[team.rank].data());
      have_done(1);
    }
  };
  run_helpers(threads, body);
}

// The same for new values of the systems.
template <class T> template <class Work> void LockstepFactor<T>::over_new_values(off workspace, Work&& work) {
  begin_phase("factor", n_groups());
  try {
    over_groups(workspace, work);
  } catch (const Interrupted&) {
    half_ = true;
    throw;
  }
  half_ = false;
}

template <class T> void LockstepFactor<T>::must_be_whole() const {
  if (half_)
    throw std::runtime_error(
        "a refactorization of this batch was interrupted, so some systems have new values and others old ones: "
        "refactor it");
}

template <class T> PivotRule LockstepFactor<T>::pivot_rule() const {
  const auto [perturb_below, tiny_below] = small_pivots_of_fronts(eps<T>, plan_.n);
  return {perturb_below, tiny_below};
}

// Returns the position of the loaded values.
template <class T>
const typename LockstepFactor<T>::R* LockstepFactor<T>::load_group(idx group, const Values& values, R* workspace) {
  const T* rows[lanes];
  rows_of(group, values.begin, values.stride, rows);
  R *const held = values_of(group), *const to = values_workspace() ? workspace : held;
  kernels_.load(program_, rows, values.source, to, to == held ? nullptr : held, notes_of(group));
  return to;
}

// Deterministic: the same bits every time.
template <class T> void LockstepFactor<T>::factor_group(idx group, const R* values, R* factor, R* blocks) {
  kernels_.factor(program_, values, factor, blocks, pivot_rule(), notes_of(group));
}

template <class T> void LockstepFactor<T>::refactor(const T* values, off stride, const off* source) {
  const auto lock = use_.exclusive();
  over_new_values(factor_workspace() + values_workspace(), [&](idx group, R* work) {
    const R* const own = load_group(group, {values, stride, source}, work + factor_workspace());
    factor_group(group, own, factor_of(group), work);
  });
  held_ = true;
}

template <class T> void LockstepFactor<T>::hold_factors() {
  must_be_whole();
  if (held_) return;
  factors_requested_ = true;
  over_groups(factor_workspace(),
              [&](idx group, R* work) { factor_group(group, values_of(group), factor_of(group), work); });
  held_ = true;
}

// Some columns of a group's solution during measurement and refinement.
template <class T> struct LockstepFactor<T>::Solving {
  LockstepFactor& factor;
  Made made;
  idx group;
  Trans trans;
  int present;  // systems
  int columns, capacity;
  R *b, *x, *r, *y, *before;
  double errors[lanes];
  idx steps[lanes] = {};

  Solving(LockstepFactor& factor, const Made& made, idx group, Trans trans, int columns, R* work)
      : factor(factor),
        made(made),
        group(group),
        trans(trans),
        present(std::min<idx>(lanes, factor.count_ - group * lanes)),
        columns(columns),
        capacity(columns == 1 ? 1 : lockstep_columns) {
    const off size = entries() * numbers;
    b = work, x = b + size, r = x + size, y = r + size, before = y + size;
  }

  off entries() const { return (off)factor.plan_.n * capacity; }

  // to = op(A)^-1 from, where solve(y) solves in the plan's order.
  template <class Solve> void substitute(const R* from, R* to, Solve&& solve) const {
    const LockstepProgram& P = factor.program_;
    const bool plain = trans == Trans::none;
    const idx *in = plain ? P.row_perm : P.col_perm, *out = plain ? P.col_perm : P.row_perm;
    const double *scale_in = plain ? P.row_scale : P.col_scale, *scale_out = plain ? P.col_scale : P.row_scale;
    factor.kernels_.permute(P.n, capacity, in, scale_in, false, from, y);
    solve(y);
    factor.kernels_.permute(P.n, capacity, out, scale_out, true, y, to);
  }
  void substitute(const R* from, R* to) const {
    substitute(from, to, [&](R* y) { factor.kernels_.solve(factor.program_, made.factor, trans, capacity, y); });
  }
  void factor_and_substitute(const R* from, R* to) const {
    substitute(from, to, [&](R* y) {
      factor.kernels_.factor_solve(factor.program_, made.values, made.factor, made.blocks, factor.pivot_rule(),
                                   factor.notes_of(group), trans, capacity, y);
    });
  }

  void measure(double* errors) const {
    LockstepNorms norms[lockstep_columns];
    LockstepNotes* const notes = factor.notes_of(group);
    const bool sized = notes->norms[trans != Trans::none] >= 0;
    factor.kernels_.residual(factor.program_, made.values, trans, capacity, x, b, r, norms, sized ? nullptr : before,
                             notes);
    for (int l = 0; l < present; l++) {
      const double norm = notes[l].norms[trans != Trans::none];
      errors[l] = 0;
      for (int q = 0; q < columns; q++) {
        const ResidualNorms own{norms[q].residual[l], norms[q].x[l], norms[q].b[l]};
        errors[l] = max_or_nan(errors[l], backward_error(own, norm));
      }
    }
  }

  // Refines the systems that are not accurate enough, except those with numbers that are not finite.
  void refine() {
    std::uint8_t chosen[lanes] = {};
    for (int l = 0; l < present; l++) chosen[l] = std::isfinite(errors[l]) && !factor.policy_.is_enough(errors[l]);
    const auto any = [&] { return std::any_of(chosen, chosen + present, [](std::uint8_t c) { return c; }); };
    if (any()) factor.refined_[group] = 1;
    if (!made.whole && any()) {
      factor.factor_group(group, made.values, made.factor, made.blocks);
      made.whole = true;
    }
    for (int step = 0; step < most_steps && any(); step++) {
      std::memcpy(before, x, entries() * numbers * sizeof(R));
      substitute(r, r);
      factor.kernels_.add(entries(), chosen, r, x);
      double after[lanes];
      measure(after);
      std::uint8_t undone[lanes] = {};
      for (int l = 0; l < present; l++) {
        if (!chosen[l]) continue;
        const Step came = factor.policy_.after_step({errors[l]}, {after[l]});
        undone[l] = came == Step::undo, chosen[l] = came == Step::again;
        if (!undone[l]) errors[l] = after[l], steps[l]++;
      }
      factor.kernels_.choose(entries(), undone, before, x);
    }
  }
};

template <class T> void LockstepFactor<T>::solve_group(idx group, const Sides& sides, const Made& made, R* work) {
  const off stride = (off)plan_.n * sides.nrhs, first = (off)group * lanes;
  const T* from[lanes];
  T* to[lanes];
  for (idx column = 0; column < sides.nrhs; column += lockstep_columns) {
    Solving one(*this, made, group, sides.trans, std::min<idx>(sides.nrhs - column, lockstep_columns), work);
    rows_of(group, sides.b + column, stride, from);
    rows_of(group, sides.x + column, stride, to);
    kernels_.take(plan_.n, one.columns, sides.nrhs, from, one.b);
    if (made.whole) one.substitute(one.b, one.x);
    else one.factor_and_substitute(one.b, one.x), one.made.whole = by_columns();
    one.measure(one.errors);
    if (policy_.must_measure(Trust::none, {})) one.refine();
    kernels_.give(plan_.n, one.columns, sides.nrhs, one.x, one.present, to);
    for (int l = 0; l < one.present; l++) {
      double& error = errors_[first + l];
      error = column == 0 ? one.errors[l] : max_or_nan(error, one.errors[l]);
      steps_[first + l] = column == 0 ? one.steps[l] : std::max(steps_[first + l], one.steps[l]);
    }
  }
}

template <class T> void LockstepFactor<T>::solve(Trans trans, idx nrhs, const T* b, T* x) {
  const auto lock = use_.exclusive();
  hold_factors();
  over_groups(solve_workspace(nrhs), [&](idx group, R* work) {
    solve_group(group, {trans, nrhs, b, x}, {values_of(group), factor_of(group)}, work);
  });
}

// A temporary factor reuses the memory of the thread's previous one, which is still in the cache, and is computed only
// as far as the solve needs it. Refinement needs all of it; if most groups were refined before, it is computed
// completely from the start.
template <class T> void LockstepFactor<T>::refactor_solve(const T* values, off stride, const off* source, Trans trans,
                                                          idx nrhs, const T* b, T* x) {
  const auto lock = use_.exclusive();
  const bool keep = factors_requested_;
  const bool whole = keep || nrhs > lockstep_columns || 2 * std::ranges::count(refined_, 1) > n_groups();
  const off own = keep ? 0 : plan_.factor_size * numbers;
  held_ = false;
  const off vectors = own + factor_workspace(), loaded = vectors + solve_workspace(nrhs);
  over_new_values(loaded + values_workspace(), [&](idx group, R* work) {
    const R* const at_hand = load_group(group, {values, stride, source}, work + loaded);
    const Made made{at_hand, keep ? factor_of(group) : work, work + own, whole};
    if (whole) factor_group(group, at_hand, made.factor, made.blocks);
    refined_[group] = 0;
    solve_group(group, {trans, nrhs, b, x}, made, work + vectors);
  });
  held_ = keep;
}

template <class T> std::vector<LockstepReport> LockstepFactor<T>::report() const {
  const auto lock = use_.together();
  std::vector<LockstepReport> reports(count_);
  for (idx s = 0; s < count_; s++) {
    const LockstepNotes& note = notes_[s];
    LockstepReport& report = reports[s] = {};
    if (!plan_.cholesky) {
      report.multiplier = note.multiplier;
      report.growth = note.largest_entry > 0 ? note.upper / note.largest_entry : 0;
    }
    report.n_perturbed = note.n_perturbed, report.n_tiny = note.n_tiny, report.not_finite = note.not_finite;
    report.not_symmetric = note.not_symmetric;
    report.failed = note.failed < 0 ? -1 : plan_.col_perm[note.failed];
  }
  return reports;
}

template <class T> std::vector<double> LockstepFactor<T>::errors() const {
  const auto lock = use_.together();
  return errors_;
}
template <class T> std::vector<idx> LockstepFactor<T>::steps() const {
  const auto lock = use_.together();
  return steps_;
}

template <class T> void LockstepFactor<T>::slogdet(T* sign, double* log_modulus) {
  const auto lock = use_.exclusive();
  hold_factors();
  double scales = 0;
  for (const double scale : plan_.row_scale) scales += std::log(scale);
  for (const double scale : plan_.col_scale) scales += std::log(scale);
  const R parity_of_order = (R)(parity(plan_.row_perm) * parity(plan_.col_perm));
  for (idx s = 0; s < count_; s++) {
    const R* const factor = factor_of(s / lanes);
    sign[s] = plan_.cholesky ? T(1) : T(parity_of_order), log_modulus[s] = 0;
    const auto multiply = [&](off place) {
      const T reciprocal = kernels_.number(factor + place * numbers, s % lanes);
      log_modulus[s] -= std::log((double)std::abs(reciprocal));
      if (!plan_.cholesky) sign[s] *= T(std::abs(reciprocal)) / reciprocal;
    };
    for (const gpu::LockstepFront& front : plan_.fronts)
      for (idx k = 0; k < front.width; k++) multiply(front.factor + off(k) * front.rows + k);
    for (const LockstepColumn& column : columns_.column) multiply(column.begin + column.pivot());
    log_modulus[s] = plan_.cholesky ? 2 * log_modulus[s] : log_modulus[s] - scales;
  }
}

// Copies `count` entries of the system in a lane.
template <class T> void LockstepFactor<T>::take_lane(const R* from, off count, int lane, T* to) const {
  for (off e = 0; e < count; e++) to[e] = kernels_.number(from + e * numbers, lane);
}

template <class T> std::vector<T> LockstepFactor<T>::values(idx system) const {
  const auto lock = use_.together();
  must_be_whole();
  std::vector<T> values(A_.nnz());
  take_lane(values_of(system / lanes), A_.nnz(), system % lanes, values.data());
  return values;
}

template <class T> std::vector<double> LockstepFactor<T>::inverse_on_pattern(T* inverse) {
  const auto lock = use_.exclusive();
  hold_factors();
  const auto fetch = [&](idx system, T* factor, T* values) {
    take_lane(factor_of(system / lanes), plan_.factor_size, system % lanes, factor);
    take_lane(values_of(system / lanes), A_.nnz(), system % lanes, values);
  };
  return lockstep_inverse<T>(plan_, A_, count_, fetch, inverse);
}

#define GS_INSTANTIATE(T) template class LockstepFactor<T>;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
