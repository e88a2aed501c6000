#include "numeric/front_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "base/flush_to_zero.hpp"
#include "base/huge_pages.hpp"
#include "base/job_kind.hpp"
#include "base/operation.hpp"
#include "base/scalars.hpp"
#include "base/stopwatch.hpp"
#include "base/timeline.hpp"
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
      panels_(plan_.panel_ptr.back()),
      pivots_(symbolic_->n),
      hermitian_(hermitian),
      diagonal_(symbolic_->ldlt ? symbolic_->n : 0),
      below_diagonal_(diagonal_.size()),
      contribution_(symbolic_->nsuper(), nullptr) {
  prefer_huge_pages(panels_);
  for (idx s = 0; s < symbolic_->nsuper(); s++) {
    const auto [W, H, R] = shape(s);
    nnz_lower_ += off(W) * (W + 1) / 2 + off(W) * H;
    tallest_ = std::max(tallest_, R);
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
    const idx H = factor.shape(s).H;
    return size_of_strips(H, strip_width(H, symbolic.one_triangle())) * sizeof(T);
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

  void front_by_one(int rank, idx s) {
    if (skip(s) || !take_contribution(rank, s)) return;
    const AtFront at{*this, rank, s};
    Member& member = members[rank];
    const FrontBlocks<T> front = blocks(s);
    const ColumnRange all{0, front.shape.R};
    const bool assign_c = assigns_c(front.shape, s);
    by_chunks(front, all, [&](ColumnRange chunk) { clear_front(front, chunk, assign_c); });
    note_entries(member, place_values(plan, plan.entry_ptr[s], plan.entry_ptr[s + 1], values, front.L));
    by_chunks(front, all, [&](ColumnRange chunk) { assemble_children(front, s, chunk, assign_c); });
    for (idx c = plan.child_ptr[s]; c < plan.child_ptr[s + 1]; c++) give_contribution(rank, plan.child[c]);
    Loops serial(rank);
    eliminate(serial, s, front);
  }

  // Runs a task on one thread. After an interrupt, fronts and those that depend on them stay unfinished.
  void task(int rank, const FrontTask& task) {
    if (must_stop()) return;
    for (idx s = task.first; s <= task.last; s++) {
      const off R = factor.shape(s).R;
      if (members[rank].pace.must_stop(R * R)) return;
      front_by_one(rank, s);
    }
    have_done(task.work);
  }

  void front_in_loops(Loops& loops, idx s) {
    if (loops.size() == 1) return must_stop() ? void() : front_by_one(0, s);
    if (must_stop() || skip(s) || !take_contribution(0, s)) return;
    const AtFront at{*this, 0, s};
    const FrontBlocks<T> front = blocks(s);
    const bool assign_c = assigns_c(front.shape, s);
    const int parts = loops.parts(front.shape.R, kLeastColumns);
    loops.run(parts, [&](int k, int) {
      by_chunks(front, part(front, k, parts), [&](ColumnRange chunk) { clear_front(front, chunk, assign_c); });
    });
    const off begin = plan.entry_ptr[s], count = plan.entry_ptr[s + 1] - begin;
    loops.run(parts, [&](int k, int rank) {
      note_entries(members[rank],
                   place_values(plan, begin + count * k / parts, begin + count * (k + 1) / parts, values, front.L));
    });
    loops.run(parts, [&](int k, int) {
      by_chunks(front, part(front, k, parts), [&](ColumnRange chunk) { assemble_children(front, s, chunk, assign_c); });
    });
    for (idx c = plan.child_ptr[s]; c < plan.child_ptr[s + 1]; c++) give_contribution(0, plan.child[c]);
    eliminate(loops, s, front);
  }

  // Columns of equal area: in one triangle, column j has R - j rows.
  static ColumnRange part(const FrontBlocks<T>& front, int k, int parts) {
    const idx R = front.shape.R;
    auto boundary = [&](int k) {
      const double share = double(k) / parts;
      return k == parts ? R : idx(R * (front.one_triangle ? 1 - std::sqrt(1 - share) : share));
    };
    return {boundary(k), boundary(k + 1)};
  }

  static void note_entries(Member& member, real_t<T> largest) {
    member.largest_entry = std::max(member.largest_entry, largest);
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
    const LdltBlocks<T> blocks{W,
                               H,
                               front.L,
                               off(R),
                               front.C,
                               factor.diagonal_.data() + start,
                               factor.below_diagonal_.data() + start,
                               factor.pivots_.data() + start,
                               factor.hermitian_};
    const idx n_perturbed = member.stats.n_perturbed;
    ldlt_front(loops, blocks, scratch.data(), rule_for(H), stats.data());
    if (H > 0 && member.stats.n_perturbed > n_perturbed) note_perturbed(member, s, blocks);
    for (idx k = 0; k < W; k++) {
      const real_t<T> e = abs1(blocks.e[k]), pivot = e > 0 ? e : abs1(blocks.d[k]);
      member.smallest_pivot = std::min(member.smallest_pivot, pivot);
      member.largest_pivot = std::max(member.largest_pivot, pivot);
      member.n_off_diagonal += blocks.order[k] != k;
      k += e > 0;
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
  memory_.prepare(want);
  if (symbolic_->ldlt) {
    if ((int)scratch_.size() < want) scratch_.resize(want);
    for (auto& scratch : scratch_) scratch.resize(ldlt_scratch(tallest_));
  }
  Run run(*this, (const T*)values, rule, want);
  UpwardWalk walk(plan_, want > 1);
  begin_phase("factor", plan_.total_work);
  static constinit JobKind kind;
  Loops loops;
  const auto body = [&](const Team& team) {
    const FlushToZero zeros(flush);
    walk.run(
        team, loops, [&](idx t) { run.task(team.rank, plan_.tasks[t]); },
        [&](Loops& loops, idx t) {
          run.front_in_loops(loops, plan_.tasks[t].last);
          have_done(plan_.tasks[t].work);
        });
    run.members[team.rank].flushed = flush && zeros.flushed();
  };
  run_helpers(want, body, &kind, plan_.total_work);
  run.complete = !run.out_of_memory && run.failed_column < 0;
  if (run.out_of_memory) throw std::bad_alloc();
  run.leave_record();
  return run.report();
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
  template FactorInfo FrontFactor<T>::factor(const void*, const PivotRule&, bool);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
