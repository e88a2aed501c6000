#include <algorithm>
#include <atomic>
#include <limits>

#include "base/job_kind.hpp"
#include "base/operation.hpp"
#include "base/range_flags.hpp"
#include "base/scalars.hpp"
#include "base/threads.hpp"
#include "matrix/values.hpp"
#include "numeric/column_lu.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/column_schedule.hpp"
#include "numeric/column_wide.hpp"
#include "simd/column_kernels.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

template <class Real> void refactor_columns(const ColumnProgram<Real>& program, const ColumnTask<Real>& task,
                                            bool is_complex, ColumnMonitor<Real>& monitor) {
#define GS_CASE(number, level) \
  case number:                 \
    return level::refactor_columns(program, task, is_complex, monitor);
  switch (simd_level()) { GS_LEVELS(GS_CASE) }
#undef GS_CASE
}

template <class T> void pivot_range(const RawVector<T>& pivot, FactorInfo& info) {
  real_t<T> smallest = std::numeric_limits<real_t<T>>::max(), largest = 0;
  for (const T p : pivot) {
    const real_t<T> size = abs1(p);
    smallest = std::min(smallest, size), largest = std::max(largest, size);
  }
  info.min_pivot = pivot.empty() ? 0 : smallest;
  info.max_pivot = largest;
}

// Runs all tasks of the schedule. A thread begins with the same subtrees each time because its caches may still hold
// their data, continues with unclaimed ones, and then takes nodes of the pipeline by ticket: a thread that starts late
// delays no other thread, and every dependency of a node is finished or in progress.
template <class T, class Real> ColumnMonitor<Real> run_tasks(ColumnNodes<T>& f, const ColumnProgram<Real>& program,
                                                             const ColumnTask<Real>& shared, int n_threads) {
  const ColumnSchedule& schedule = f.schedule;
  while ((int)f.work.size() < n_threads) f.work.emplace_back((off)f.pivot.size() * f.widest);
  f.done.resize(f.n_nodes());
  f.claimed.resize(schedule.n_subtrees);
  f.epoch++;
  std::vector<ColumnMonitor<Real>> monitors(n_threads);
  std::atomic<idx> ticket{schedule.n_subtrees};
  int failed = 0, overflowed = 0;
  const auto body = [&](const Team& team) {
    const RangeFlags flags;
    ColumnTask<Real> task = shared;
    ColumnMonitor<Real>& monitor = monitors[team.rank];
    task.work = reinterpret_cast<Real*>(f.work[team.rank].data());
    if (n_threads > 1) task.done = f.done.data(), task.epoch = f.epoch, task.failed = &failed, task.relax = relax;
    const auto run = [&](idx t) {
      task.nodes = schedule.nodes.data() + schedule.ptr[t];
      task.count = schedule.ptr[t + 1] - schedule.ptr[t];
      task.wait = n_threads > 1 && t >= schedule.n_subtrees;
      refactor_columns(program, task, is_complex<T>, monitor);
      have_done(1);
    };
    const idx n_subtrees = schedule.n_subtrees, own = (idx)((off)n_subtrees * team.rank / team.size);
    for (idx i = 0; i < n_subtrees && monitor.status == 0 && !must_stop(); i++) {
      const idx t = own + i < n_subtrees ? own + i : own + i - n_subtrees;
      if (n_threads == 1 || __atomic_exchange_n(&f.claimed[t], f.epoch, __ATOMIC_RELAXED) != f.epoch) run(t);
    }
    while (monitor.status == 0 && !must_stop()) {
      const idx t = ticket.fetch_add(1, std::memory_order_relaxed);
      if (t >= schedule.n_tasks()) break;
      run(t);
    }
    if (monitor.status != 0 || must_stop()) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    if (flags.overflow()) __atomic_store_n(&overflowed, 1, __ATOMIC_RELAXED);
  };
  static constinit JobKind kind;
  begin_phase("factor", schedule.n_tasks());
  try {
    if (n_threads > 1) run_helpers(n_threads, body, &kind, schedule.work);
    else body(Team{}), go_on();
  } catch (const Interrupted&) {
    f.work.clear();
    throw;
  }

  ColumnMonitor<Real> all = monitors[0];
  for (const ColumnMonitor<Real>& m : monitors) {
    if (m.status != 0) all.status = m.status, all.column = m.column;
    all.max_entry = std::max(all.max_entry, m.max_entry);
    all.max_upper = std::max(all.max_upper, m.max_upper);
    all.max_multiplier = std::max(all.max_multiplier, m.max_multiplier);
  }
  if (failed) f.work.clear();  // columns abandoned halfway are still in it
  // Maxima ignore NaN. A stored zero becomes NaN where the product of two scales is out of range.
  const auto finite = [](const RawVector<T>& v) { return all_finite(v.data(), (off)v.size()); };
  if (!failed && overflowed && !(finite(f.lower) && finite(f.upper))) all.status = FactorInfo::not_finite;
  return all;
}

// Below this many cycles (about 0.2 ms) a team does not pay if it has to be woken, or if two of its members share a
// core: add20 (2.6e5) took 0.06 ms instead of 0.09 with 2 threads at best, and 0.12 otherwise; case3375wp_nrjac (8e5)
// 0.16 instead of 0.28, and 0.27 otherwise.
constexpr double worth_a_team = 5e5;

}  // namespace

template <class T> FactorInfo ColumnLU<T>::refactor(const void* given) {
  using Real = real_t<T>;
  const T* const values = (const T*)given;
  FactorInfo info;
  if (!all_finite(values, (off)pattern_.row.size())) {
    info.status = FactorInfo::not_finite;
    return info;
  }
  if (wide_) {
    info.status = FactorInfo::bad_growth;
    return info;
  }
  origin_.refactored = true;
  ColumnNodes<T>& f = *nodes_;
  if (!f.compiled) f = compile_nodes(pattern_, block_ptr_, std::move(f));
  const int n_threads = num_threads();
  if (f.schedule.n_threads != n_threads) f.schedule = schedule_nodes(f, pattern_.ptr, n_threads);
  const ColumnProgram<Real> program = f.program(pattern_, scale_row_.empty() ? nullptr : scale_row_.data(),
                                                scale_col_.empty() ? nullptr : scale_col_.data());
  ColumnTask<Real> task{};
  task.values = reinterpret_cast<const Real*>(values);
  task.bound = (Real)std::min<double>(bound_, std::numeric_limits<Real>::max());
  // A team would only pass a chain from thread to thread.
  const int team = f.schedule.work >= worth_a_team && !f.schedule.chained ? n_threads : 1;
  ColumnMonitor<Real> monitor = run_tasks(f, program, task, team);
  // Timing decides which of several bad columns a team finds first; one thread always finds the same one.
  if (monitor.status != FactorInfo::ok && team > 1) {
    f.schedule = schedule_nodes(f, pattern_.ptr, 1);
    monitor = run_tasks(f, program, task, 1);
  }

  info.status = (FactorInfo::Status)monitor.status;
  info.column = monitor.column < 0 ? -1 : col_perm_[monitor.column];
  pivot_range(f.pivot, info);
  info.max_multiplier = monitor.max_multiplier;
  info.max_entry = monitor.max_entry;
  info.pivot_growth = monitor.max_entry > 0 ? monitor.max_upper / monitor.max_entry : 0;
  info.n_off_diagonal = n_off_diagonal_;
  info.flops = flops_;
  decide_division(info.max_pivot);
  return info;
}

#define GS_INSTANTIATE(T) template FactorInfo ColumnLU<T>::refactor(const void*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
