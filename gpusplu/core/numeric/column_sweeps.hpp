// Solves with the nodes of a column LU, by one thread or by a team.
//
// Diagonal blocks from the last to the first: L forward, U backward, which also subtracts the entries above the block
// (they are stored with U). Transposed, by one thread: from the first to the last, U^T forward, L^T backward.
//
// Members of a team take the parts of a divided block (ColumnParts), each the same ones every time if possible, because
// its caches may hold their data; rank 0 does the rest. Forward, a part collects what it subtracts from rows of the top
// in sums of its own, which the top then adds in the order of the parts. Backward, each part subtracts the columns of
// the top from its rows before it continues with its own. Every sum has the same order for any number of threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/job_kind.hpp"
#include "base/range_flags.hpp"
#include "base/threads.hpp"
#include "numeric/column_nodes.hpp"
#include "simd/select.hpp"

namespace gs {

// Unknown k of the permuted system has the right-hand side b[from[k]] * scale_in[k], and x[to[k]] is it times
// scale_out[k]; scales may be null.
template <class T> struct ColumnSystem {
  idx n;
  const idx *from, *to;
  const real_t<T>*scale_in, *scale_out;
  bool transposed, conjugate, divides;
};

template <class T> class ColumnSweeps {
 public:
  // Kept for the next solve.
  struct Workspace {
    struct alignas(64) Claim {
      std::atomic<std::int64_t> step{0};
    };
    RawVector<T> y;
    std::unique_ptr<Claim[]> claims;  // by part: the last step that a thread has taken it for
    std::int64_t step = 0;
  };

  // For `width` right-hand sides: 1, 2, 4 or 8.
  ColumnSweeps(const ColumnNodes<T>& nodes, const ColumnProgram<real_t<T>>& program, const ColumnSystem<T>& system,
               Workspace& space, int width, const T* b, T* x)
      : division_(nodes.division), program_(program), system_(system), space_(space), width_(width), b_(b), x_(x) {
    const std::size_t size = (std::size_t)(system.n + division_.most_sums) * width;
    if (space.y.size() < size) space.y.resize(size);
    if (division_.most_parts == 0) return;
    if (!space.claims) space.claims.reset(new typename Workspace::Claim[division_.most_parts]);
    if (!system.transposed) program_.lower_row = division_.lower_row.data();
    open_.store(space.step, std::memory_order_relaxed);
  }

  // Time of a solve, compared with one right-hand side.
  static double cost_of(int width) { return 0.5 * (1 + width); }

  void run() {
    if (system_.transposed) return run_transposed();
    const int n_threads = threads();
    if (n_threads == 1) return run_alone();
    static constinit JobKind kind;
    RangeFlagsOfTeam flags;
    const auto body = [&](const Team& team) {
      if (team.size == 1) run_alone();
      else flags.run(team.rank, [&] { run_shared(team); });
    };
    run_helpers(n_threads, body, &kind, division_.cycles * cost_of(width_) / kCyclesPerSecond);
    space_.step = open_.load(std::memory_order_relaxed);
    flags.set();
  }

 private:
  using Real = real_t<T>;
  const ColumnDivision& division_;
  ColumnProgram<Real> program_;
  const ColumnSystem<T>& system_;
  Workspace& space_;
  const int width_;
  const T* const b_;
  T* const x_;
  alignas(64) std::atomic<std::int64_t> open_{0};  // the last step whose parts may be taken
  alignas(64) std::atomic<int> n_done_{0};         // its finished parts

  // That takes the least time, approximately.
  int threads() const {
    constexpr double kTeam = 6e3, kMember = 1.2e3;  // cycles for starting, waiting, and moving data
    const int parts = division_.most_parts, most = std::min(num_threads(), parts);
    const double whole = division_.cycles * cost_of(width_), shared = division_.of_parts * cost_of(width_);
    int best = 1;
    double least = whole;
    for (int n = 2; n <= most; n++) {
      const double time = whole - shared + shared * ((parts + n - 1) / n) / parts + kTeam + kMember * n;
      if (time < least) best = n, least = time;
    }
    return best;
  }

  void run_alone() const {
    load(0, system_.n);
    for (idx i = program_.n_phases - 1; i >= 0; i--) {
      const NodeRange all{program_.phase[i].begin, program_.phase[i].end};
      if (!is_divided(i)) {
        if (program_.phase[i].has_lower) sweep(ColumnSweep::forward, {&all, 1});
        sweep(ColumnSweep::backward, {&all, 1});
        continue;
      }
      const ColumnParts& parts = division_.parts[i];
      const idx top = parts.range_ptr[parts.n_parts()];
      std::fill(row(system_.n), row(system_.n + (idx)parts.sum_row.size()), T(0));
      sweep(ColumnSweep::forward, {parts.ranges.data(), top});
      add_sums(parts);
      sweep(ColumnSweep::forward, ranges(parts, parts.n_parts()));
      sweep(ColumnSweep::backward, {parts.ranges.data(), (idx)parts.ranges.size()});
    }
    store(0, system_.n);
  }

  void run_shared(const Team& team) {
    const bool leads = team.rank == 0;
    const idx last = program_.n_phases - 1;
    const bool parts_load = last >= 0 && is_divided(last);  // otherwise blocks may change the rows of later ones
    std::int64_t step = space_.step;
    if (leads && !parts_load) load(0, system_.n);
    for (idx i = last; i >= 0; i--) {
      if (!is_divided(i)) {
        if (leads) solve_block(program_.phase[i]);
        continue;
      }
      const ColumnParts& parts = division_.parts[i];
      const bool loads = parts_load && i == last;
      share(team, ++step, parts.n_parts(), [&](idx part) { forward(parts, part, loads); });
      if (leads) {
        if (loads) load(0, program_.node[program_.phase[i].begin].first);
        solve_top(parts, loads);
      }
      share(team, ++step, parts.n_parts(), [&](idx part) { backward(parts, part); });
      if (leads) sweep_runs(ColumnSweep::runs, {}, parts, parts.n_parts() + 1);
    }
  }

  bool is_divided(idx phase) const { return division_.most_parts > 0 && division_.parts[phase].n_parts() > 0; }

  // Runs task(part) for all parts; rank 0 returns when all are done.
  template <class Task> void share(const Team& team, std::int64_t step, idx n_parts, Task&& task) {
    if (team.rank == 0) {
      n_done_.store(0, std::memory_order_relaxed);
      open_.store(step, std::memory_order_release);
    } else {
      team.wait([&] { return open_.load(std::memory_order_acquire) >= step; });
    }
    const idx own = (idx)((off)n_parts * team.rank / team.size);
    for (idx k = 0; k < n_parts && !team.may_leave(); k++) {
      const idx part = own + k < n_parts ? own + k : own + k - n_parts;
      std::int64_t before = space_.claims[part].step.load(std::memory_order_relaxed);
      if (before >= step || !space_.claims[part].step.compare_exchange_strong(before, step, std::memory_order_relaxed))
        continue;
      task(part);
      n_done_.fetch_add(1, std::memory_order_acq_rel);
    }
    if (team.rank == 0) team.wait([&] { return n_done_.load(std::memory_order_acquire) == n_parts; });
  }

  // ---- pieces of a solve

  struct Ranges {
    const NodeRange* begin;
    idx count;
  };
  static Ranges ranges(const ColumnParts& parts, idx part) {
    return {parts.ranges.data() + parts.range_ptr[part], parts.range_ptr[part + 1] - parts.range_ptr[part]};
  }

  T* row(idx k) const { return space_.y.data() + (off)k * width_; }

  void load(idx begin, idx end) const { width_ == 1 ? load<true>(begin, end) : load<false>(begin, end); }
  template <bool single> void load(idx begin, idx end) const {
    const auto [n, from, to, scale, scale_out, transposed, conjugate, divides] = system_;
    const int width = single ? 1 : width_;
    for (idx k = begin; k < end; k++)
      for (int q = 0; q < width; q++) {
        const T v = conj_if(b_[from[k] + (off)q * n], conjugate);
        space_.y[(off)k * width + q] = scale ? v * scale[k] : v;
      }
  }
  void store(idx begin, idx end) const { width_ == 1 ? store<true>(begin, end) : store<false>(begin, end); }
  template <bool single> void store(idx begin, idx end) const {
    const auto [n, from, to, scale_in, scale, transposed, conjugate, divides] = system_;
    const int width = single ? 1 : width_;
    for (idx k = begin; k < end; k++)
      for (int q = 0; q < width; q++) {
        const T v = space_.y[(off)k * width + q];
        x_[to[k] + (off)q * n] = conj_if(scale ? v * scale[k] : v, conjugate);
      }
  }
  void load(Ranges its) const {
    for (const NodeRange* r = its.begin; r < its.begin + its.count; r++)
      load(program_.node[r->begin].first, program_.node[r->end].first);
  }
  void store(Ranges its) const {
    for (const NodeRange* r = its.begin; r < its.begin + its.count; r++)
      store(program_.node[r->begin].first, program_.node[r->end].first);
  }

  void sweep(ColumnSweep kind, Ranges its, const ColumnRun* runs = nullptr, off n_runs = 0) const {
    const ColumnSolve<Real> task{
        reinterpret_cast<Real*>(space_.y.data()), width_, kind, its.begin, its.count, runs, n_runs};
    with_kernels([&](auto level) {
      system_.divides ? level.template solve_columns<T, true>(program_, task)
                      : level.template solve_columns<T, false>(program_, task);
    });
  }
  void sweep_runs(ColumnSweep kind, Ranges its, const ColumnParts& parts, idx list) const {
    sweep(kind, its, parts.runs.data() + parts.run_ptr[list], parts.run_ptr[list + 1] - parts.run_ptr[list]);
  }

  void solve_block(const ColumnPhase& phase) const {
    const NodeRange range{phase.begin, phase.end};
    if (phase.has_lower) sweep(ColumnSweep::forward, {&range, 1});
    sweep(ColumnSweep::backward, {&range, 1});
    store({&range, 1});
  }

  void forward(const ColumnParts& parts, idx part, bool loads) const {
    if (loads) load(ranges(parts, part));
    std::fill(row(system_.n + parts.sum_ptr[part]), row(system_.n + parts.sum_ptr[part + 1]), T(0));
    sweep(ColumnSweep::forward, ranges(parts, part));
  }

  void add_sums(const ColumnParts& parts) const {
    for (std::size_t k = 0; k < parts.sum_row.size(); k++)
      for (int q = 0; q < width_; q++) row(parts.sum_row[k])[q] += row(system_.n + (idx)k)[q];
  }

  void solve_top(const ColumnParts& parts, bool loads) const {
    const idx top = parts.n_parts();
    if (loads) load(ranges(parts, top));
    add_sums(parts);
    sweep(ColumnSweep::forward, ranges(parts, top));
    sweep_runs(ColumnSweep::backward_runs, ranges(parts, top), parts, top);
    store(ranges(parts, top));
  }

  void backward(const ColumnParts& parts, idx part) const {
    sweep_runs(ColumnSweep::runs, {}, parts, part);
    const bool has_outer = parts.run_ptr.back() > parts.run_ptr[parts.n_parts() + 1];
    sweep(has_outer ? ColumnSweep::backward_inner : ColumnSweep::backward, ranges(parts, part));
    store(ranges(parts, part));
  }

  void run_transposed() const {
    load(0, system_.n);
    for (const ColumnPhase* phase = program_.phase; phase < program_.phase + program_.n_phases; phase++) {
      const NodeRange range{phase->begin, phase->end};
      sweep(ColumnSweep::forward_transposed, {&range, 1});
      if (phase->has_lower) sweep(ColumnSweep::backward_transposed, {&range, 1});
    }
    store(0, system_.n);
  }
};

}  // namespace gs
