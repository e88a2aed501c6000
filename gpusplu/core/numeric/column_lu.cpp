// Column LU: left-looking sparse LU with threshold partial pivoting, then refactorization on the fixed pattern.
//
// factor() is Gilbert & Peierls, "Sparse partial pivoting in time proportional to arithmetic operations", SIAM J. Sci.
// Stat. Comput. 9 (1988), with the symmetric pruning of Eisenstat & Liu (1992) and the diagonal preference and block
// triangular form of KLU (Davis & Palamadai Natarajan, ACM TOMS 37 (2010), Algorithm 907). refactor() keeps pivots and
// pattern and runs a program compiled from them (column_nodes.hpp).
//
// Invariant: with s the scaling and P, Q the permutations of the Symbolic refined by the pivoting inside each diagonal
// block, B = (Dr A Dc)[row_perm][:, col_perm] is block upper triangular and each diagonal block is L_bb U_bb.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "analysis/graph.hpp"
#include "base/job_kind.hpp"
#include "base/operation.hpp"
#include "base/parallel.hpp"
#include "base/range_flags.hpp"
#include "base/reusable.hpp"
#include "base/threads.hpp"
#include "base/wide.hpp"
#include "certify/accuracy_policy.hpp"
#include "matrix/sort_rows.hpp"
#include "matrix/values.hpp"
#include "numeric/column_nodes.hpp"
#include "numeric/column_sweeps.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

// ---- systems with intermediate results outside the range of the type

// A column LU in numbers with unlimited exponents.
template <class T> class WideColumns {
 public:
  // As factor_with_pivoting without scales.
  FactorInfo factor(const PermutedPattern& B, const std::vector<idx>& block_ptr, const T* values,
                    const PivotOptions& options, std::vector<idx>& row_order) {
    std::vector<Number> wide(B.row.size());
    for (std::size_t p = 0; p < wide.size(); p++) wide[p] = widen(values[p]);
    return factor_with_pivoting<Number>(B, block_ptr, wide.data(), nullptr, nullptr, options, columns_, row_order);
  }

  // Solves op(B) y = b for one right-hand side: B's entry k is from[k] of b, and to[k] of x.
  void solve(const std::vector<idx>& block_ptr, Trans trans, const idx* from, const T* b, const idx* to, T* x) const {
    const bool conjugate = trans == Trans::conj_transpose;
    const idx n = (idx)columns_.pivot.size();
    std::vector<Number> y(n);
    for (idx k = 0; k < n; k++) y[k] = widen(conj_if(b[from[k]], conjugate));
    if (trans == Trans::none) solve_plain(block_ptr, y);
    else solve_transposed(block_ptr, y);
    for (idx k = 0; k < n; k++) x[to[k]] = conj_if(rounded(y[k]), conjugate);
  }

  // Infinite or zero where T cannot represent a number.
  ColumnNodes<T> rounded() const {
    ColumnNodes<T> out;
    out.node = columns_.node;
    out.lower_row = columns_.lower_row, out.upper_row = columns_.upper_row;
    out.a_row = columns_.a_row, out.phase = columns_.phase;
    round_all(columns_.lower, out.lower), round_all(columns_.upper, out.upper);
    round_all(columns_.pivot, out.pivot), round_all(columns_.inverse_pivot, out.inverse_pivot);
    return out;
  }

  off bytes() const {
    const ColumnNodes<Number>& f = columns_;
    return off((f.lower_row.size() + f.upper_row.size()) * (sizeof(Number) + sizeof(idx)) +
               f.pivot.size() * (2 * sizeof(Number) + sizeof(ColumnNode)));
  }

 private:
  using Number = wide_t<T>;

  static Number widen(T v) {
    if constexpr (is_complex<T>) return Number(std::complex<double>(v));
    else return Number((double)v);
  }
  static T rounded(Number v) {
    if constexpr (is_complex<T>) return T(std::complex<double>(v));
    else return T(double(v));
  }
  static void round_all(const auto& from, auto& to) {
    to.resize(from.size());
    for (std::size_t p = 0; p < from.size(); p++) to[p] = rounded(from[p]);
  }

  void solve_plain(const std::vector<idx>& block_ptr, std::vector<Number>& y) const {
    const ColumnNodes<Number>& f = columns_;
    for (std::size_t block = block_ptr.size() - 1; block-- > 0;) {
      const idx begin = block_ptr[block], end = block_ptr[block + 1];
      for (idx k = begin; k < end; k++)
        for (off p = f.node[k].lower_row; p < f.node[k + 1].lower_row; p++) y[f.lower_row[p]] -= f.lower[p] * y[k];
      for (idx k = end; k-- > begin;) {
        y[k] = y[k] / f.pivot[k];
        for (off p = f.node[k].upper_row; p < f.node[k + 1].upper_row; p++) y[f.upper_row[p]] -= f.upper[p] * y[k];
      }
    }
  }

  void solve_transposed(const std::vector<idx>& block_ptr, std::vector<Number>& y) const {
    const ColumnNodes<Number>& f = columns_;
    for (std::size_t block = 0; block + 1 < block_ptr.size(); block++) {
      const idx begin = block_ptr[block], end = block_ptr[block + 1];
      for (idx k = begin; k < end; k++) {
        for (off p = f.node[k].upper_row; p < f.node[k + 1].upper_row; p++) y[k] -= f.upper[p] * y[f.upper_row[p]];
        y[k] = y[k] / f.pivot[k];
      }
      for (idx k = end; k-- > begin;)
        for (off p = f.node[k].lower_row; p < f.node[k + 1].lower_row; p++) y[k] -= f.lower[p] * y[f.lower_row[p]];
    }
  }

  ColumnNodes<Number> columns_;  // of one column each
};

// ---- refactorization

// A thread that waits for nodes of others.
struct PipelineMember {
  const Team& team;
  const int epoch;
  const int& failed;

  static bool wait_for(const int* done, const void* self) {
    const auto& [team, epoch, failed] = *static_cast<const PipelineMember*>(self);
    const auto has_failed = [&] { return __atomic_load_n(&failed, __ATOMIC_RELAXED) != 0; };
    const auto is_done = [&] { return __atomic_load_n(done, __ATOMIC_ACQUIRE) == epoch; };
    team.wait([&] { return is_done() || has_failed(); });
    return is_done();
  }
};

// Runs all tasks of the schedule. A thread begins with the same subtrees each time because its caches may still hold
// their data, continues with unclaimed ones, and then takes nodes of the pipeline by ticket: a thread that starts late
// delays no other thread, and every dependency of a node is finished or in progress. After a long wait, which means
// that some thread has lost its processor, the helpers leave: otherwise the threads would wait for each other again and
// again.
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
  const auto claim = [&](int* subtree) {
    return __atomic_load_n(subtree, __ATOMIC_RELAXED) != f.epoch &&
           __atomic_exchange_n(subtree, f.epoch, __ATOMIC_RELAXED) != f.epoch;
  };
  const auto body = [&](const Team& team) {
    const RangeFlags flags;
    constexpr int kReported = 64;  // nodes of the pipeline at a time: all threads add to one number
    int unreported = 0;
    ColumnTask<Real> task = shared;
    ColumnMonitor<Real>& monitor = monitors[team.rank];
    task.work = reinterpret_cast<Real*>(f.work[team.rank].data());
    const PipelineMember member{team, f.epoch, failed};
    if (n_threads > 1) {
      task.done = f.done.data(), task.epoch = f.epoch;
      task.wait_for = PipelineMember::wait_for, task.team = &member;
    }
    const auto run = [&](idx t) {
      task.nodes = schedule.nodes.data() + schedule.ptr[t];
      task.count = schedule.ptr[t + 1] - schedule.ptr[t];
      task.wait = n_threads > 1 && t >= schedule.n_subtrees;
      with_kernels([&](auto level) { level.template refactor_columns<T>(program, task, monitor); });
      if (++unreported == kReported || !task.wait) have_done(std::exchange(unreported, 0));
    };
    const idx n_subtrees = schedule.n_subtrees, own = (idx)((off)n_subtrees * team.rank / team.size);
    for (idx i = 0; i < n_subtrees && monitor.status == 0 && !must_stop(); i++) {
      const idx t = own + i < n_subtrees ? own + i : own + i - n_subtrees;
      if (n_threads == 1 || claim(&f.claimed[t])) run(t);
    }
    while (monitor.status == 0 && !must_stop() && !team.may_leave()) {
      const idx t = ticket.fetch_add(1, std::memory_order_relaxed);
      if (t >= schedule.n_tasks()) break;
      run(t);
    }
    have_done(unreported);
    if (monitor.status != 0 || must_stop()) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    if (flags.overflow()) __atomic_store_n(&overflowed, 1, __ATOMIC_RELAXED);
  };
  static constinit JobKind kind;
  begin_phase("factor", schedule.n_tasks());
  try {
    if (n_threads > 1) run_helpers(n_threads, body, &kind, schedule.work / kCyclesPerSecond);
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
    all.max_pivot = std::max(all.max_pivot, m.max_pivot);
    all.min_pivot = std::min(all.min_pivot, m.min_pivot);
  }
  if (failed) f.work.clear();  // columns abandoned halfway are still in it
  // Maxima ignore NaN. A stored zero becomes NaN where the product of two scales is out of range.
  const auto finite = [](const RawVector<T>& v) { return all_finite(v.data(), (off)v.size()); };
  if (!failed && overflowed && !(finite(f.lower) && finite(f.upper))) all.status = FactorInfo::not_finite;
  return all;
}

// Entry by entry, on the calling thread. False if a column is bad: then nodes find which.
template <class T, class Real> bool run_steps(ColumnNodes<T>& f, const ColumnProgram<Real>& program,
                                              const ColumnTask<Real>& shared, ColumnMonitor<Real>& monitor) {
  std::memset((void*)f.lower.data(), 0, f.lower.size() * sizeof(T));
  const RangeFlags flags;
  ColumnTask<Real> task = shared;
  task.work = reinterpret_cast<Real*>(f.lower.data());
  with_kernels([&](auto level) { level.template refactor_entries<T>(program, f.entries.steps(), task, monitor); });
  return monitor.status == 0 && !flags.overflow();
}

// Refactorizations by one thread before their steps are compiled, which takes as long as this many save.
constexpr int kBeforeSteps = 16;

// Below this many cycles (about 0.2 ms) a team does not pay if it has to be woken, or if two of its members share a
// core: add20 (2.6e5) took 0.06 ms instead of 0.09 with 2 threads at best, and 0.12 otherwise; case3375wp_nrjac (8e5)
// 0.16 instead of 0.28, and 0.27 otherwise.
constexpr double worth_a_team = 5e5, worth_a_thread = worth_a_team / 2;

// ---- extraction
// L and U of A[row_perm][:, col_perm] = L U without scaling, from the nodes. Stored zeros (padding, cancellation) are
// omitted. Above the diagonal blocks the factor holds entries of A, so U_ab = L_aa^-1 A_ab is computed here, by sparse
// forward substitution column by column.

// Calls visit(row, place of the value) for column k of L, in node s, below the diagonal, in no particular order.
template <class T, class Visit> void each_lower(const ColumnNodes<T>& nodes, idx s, idx k, Visit&& visit) {
  const ColumnNode& node = nodes.node[s];
  const idx width = nodes.width(s), c = k - node.first, n_below = node.n_lower;
  const off below = node.lower_value + (width > 1 ? width * width : 0) + c;
  const idx* rows = nodes.lower_row.data() + node.lower_row;
  for (idx i = c + 1; i < width; i++) visit(node.first + i, node.lower_value + i * width + c);
  for (idx p = 0; p < n_below; p++) visit(rows[p], below + (off)p * width);
}

// Calls visit(row, value) for column k of U above the diagonal, the last eliminated row first; with `outer` for the
// rows outside its diagonal block too.
template <bool outer, class T, class Visit> void each_upper(const ColumnNodes<T>& nodes, idx s, idx k, Visit&& visit) {
  const ColumnNode& node = nodes.node[s];
  const idx width = nodes.width(s), c = k - node.first;
  const T* block = nodes.lower.data() + node.lower_value;
  for (idx i = c; i-- > 0;) visit(node.first + i, block[i * width + c]);
  const T* value = nodes.upper_values() + node.upper_value;
  const idx* rows = nodes.upper_row.data() + node.upper_row;
  for (off p = nodes.node[s + 1].upper_row - node.upper_row - (outer ? 0 : node.n_outer); p-- > 0;)
    visit(rows[p], value[p * width + c]);
}

template <class T> std::vector<idx> nodes_of_columns(const ColumnNodes<T>& nodes) {
  std::vector<idx> node_of(nodes.pivot.size());
  for (idx s = 0; s < nodes.n_nodes(); s++)
    std::fill(node_of.begin() + nodes.node[s].first, node_of.begin() + nodes.node[s + 1].first, s);
  return node_of;
}

// Solves L x = x for one sparse column with nonzeros in `rows`, and appends the nonzeros of the result, rows ascending.
template <class T> class OuterSolve {
 public:
  OuterSolve(const ColumnNodes<T>& nodes, const std::vector<idx>& node_of)
      : nodes_(nodes), node_of_(node_of), x_(node_of.size(), T(0)), queued_(node_of.size(), false) {}
  void add(idx row, T v) {
    x_[row] += v;
    if (queued_[row]) return;
    queued_[row] = true;
    queue_.push(row);
  }
  template <class F> void run(F&& entry) {
    while (!queue_.empty()) {
      const idx row = queue_.top();
      queue_.pop();
      queued_[row] = false;
      const T v = x_[row];
      x_[row] = T(0);
      if (v == T(0)) continue;
      entry(row, v);
      each_lower(nodes_, node_of_[row], row, [&](idx below, off at) {
        if (const T l = nodes_.lower[at]; l != T(0)) add(below, -l * v);
      });
      pace_.go_on(kOfRow + nodes_.node[node_of_[row]].n_lower);
    }
  }

 private:
  const ColumnNodes<T>& nodes_;
  const std::vector<idx>& node_of_;
  std::vector<T> x_;
  static constexpr off kOfRow = 16;  // entries that take as long as taking a row from the queue
  Pace pace_;
  std::vector<char> queued_;
  std::priority_queue<idx, std::vector<idx>, std::greater<idx>> queue_;
};

template <class T> void append(Matrix<T>& out, idx row, T v) {
  out.pattern.ind.push_back(row);
  out.values.push_back(v);
}

// ---- entries of the inverse
// From the columns of L and U: the recurrence of Takahashi, Fagan and Chen (Formation of a sparse bus
// impedance matrix and its application to short circuit study, PICA 1973; Erisman and Tinney, On computing certain
// elements of the inverse of a sparse matrix, CACM 18 (1975)).
//
// With B = L U and Z = B^-1, from U Z = L^-1 and Z L = U^-1 follow, for rows k of column j of L and columns i of row j
// of U,
//   Z_jk = -1/U_jj sum_i U_ji Z_ik,   Z_ij = -sum_k Z_ik L_kj,   Z_jj = 1/U_jj - sum_k Z_jk L_kj,
// and all Z_ik that they need have (k, i) in the pattern of L + U, because of the fill. Columns i of L + U are
// processed from the last to the first. A dense column holds Z_ik for the rows k of column i; each entry U_ji, from the
// last eliminated to the first, reads the column of L that it was eliminated with, gives Z_ij, and adds its term to the
// sums of Z_jk, which are stored at the positions of L's entries. These are the steps of the left-looking factorization
// in reverse order, with twice its arithmetic.
//
// Entries (k, i) of B outside the diagonal blocks are above them; the corresponding Z_ik are below them and zero.

template <class T> class ColumnInverse {
 public:
  explicit ColumnInverse(const ColumnNodes<T>& nodes)
      : nodes_(nodes), node_of_(nodes_of_columns(nodes)), sums_(nodes.lower.size(), T(0)), z_(node_of_.size(), T(0)) {}

  // Calls column(i, z) for each column, from the last to the first: z[k] is Z_ik for the rows k of L + U, else 0.
  template <class Column> void run(Column&& column) {
    for (idx i = (idx)z_.size(); i-- > 0;) {
      start(i);
      eliminated_with(i, [&](idx j, T u) {
        step(j, u);
        pace_.go_on(1 + nodes_.node[node_of_[j]].n_lower);
      });
      column(i, z_.data());
      lower_column(i, [&](idx k, off) { z_[k] = T(0); });
      eliminated_with(i, [&](idx j, T) { z_[j] = T(0); });
      z_[i] = T(0);
    }
  }

  // Calls row(k) for the rows of column i of L + U inside its diagonal block, without padding and cancelled entries.
  template <class Row> void rows_of(idx i, Row&& row) const {
    row(i);
    lower_column(i, [&](idx k, off at) {
      if (nodes_.lower[at] != T(0)) row(k);
    });
    eliminated_with(i, [&](idx j, T u) {
      if (u != T(0)) row(j);
    });
  }

 private:
  void start(idx i) {
    const T inverse_pivot = nodes_.inverse_pivot[i];
    T diagonal = inverse_pivot;
    lower_column(i, [&](idx k, off at) {
      z_[k] = sums_[at] * inverse_pivot;
      diagonal -= z_[k] * nodes_.lower[at];
    });
    z_[i] = diagonal;
  }

  template <class Visit> void lower_column(idx k, Visit&& visit) const { each_lower(nodes_, node_of_[k], k, visit); }
  template <class Visit> void eliminated_with(idx i, Visit&& visit) const {
    each_upper<false>(nodes_, node_of_[i], i, visit);
  }

  void step(idx j, T u) {
    T sum(0);
    lower_column(j, [&](idx k, off at) {
      sum -= z_[k] * nodes_.lower[at];
      sums_[at] -= z_[k] * u;
    });
    z_[j] = sum;
  }

  const ColumnNodes<T>& nodes_;
  std::vector<idx> node_of_;
  std::vector<T> sums_;
  std::vector<T> z_;
  Pace pace_;
};

// ---- the factor

template <class T> class ColumnLU : public ColumnNumeric {
 public:
  ColumnLU(const Symbolic& symbolic, PatternView A)
      : n_(A.n),
        block_ptr_(symbolic.block_ptr),
        analysis_row_perm_(symbolic.row_perm),
        analysis_row_scale_(symbolic.row_scale),
        pattern_(permuted_pattern(symbolic, A)),
        col_perm_(symbolic.col_perm) {
    if (block_ptr_.size() < 2) block_ptr_ = {0, n_};
    if (!symbolic.col_scale.empty()) {
      scale_col_.resize(n_);
      for (idx k = 0; k < n_; k++) scale_col_[k] = (real_t<T>)symbolic.col_scale[col_perm_[k]];
    }
  }

  FactorInfo factor(const void* values, const PivotOptions& options) override {
    using Real = real_t<T>;
    nodes_.reset(), wide_.reset();
    origin_ = {origin_.choice + 1, false};
    std::vector<Real> row_scale(analysis_row_scale_.empty() ? 0 : n_);
    for (std::size_t k = 0; k < row_scale.size(); k++) row_scale[k] = (Real)analysis_row_scale_[analysis_row_perm_[k]];
    const Real* scale_col = scale_col_.empty() ? nullptr : scale_col_.data();
    ColumnNodes<T> columns;
    std::vector<idx> row_order;
    FactorInfo info =
        factor_with_pivoting<T>(pattern_, block_ptr_, (const T*)values, row_scale.empty() ? nullptr : row_scale.data(),
                                scale_col, options, columns, row_order);
    if (info.status == FactorInfo::ok) {
      scale_row_.resize(row_scale.size());
      for (std::size_t k = 0; k < row_scale.size(); k++) scale_row_[k] = row_scale[row_order[k]];
      bound_ = multiplier_bound(options.pivot_threshold, info.max_multiplier);
      nodes_ = std::make_unique<ColumnNodes<T>>(std::move(columns));
    }
    return describe(info, row_order);
  }

  FactorInfo factor_wide(const void* values, const PivotOptions& options) override {
    nodes_.reset(), wide_.reset();
    origin_ = {origin_.choice + 1, false};
    auto wide = std::make_unique<WideColumns<T>>();
    std::vector<idx> row_order;
    const FactorInfo info = wide->factor(pattern_, block_ptr_, (const T*)values, options, row_order);
    if (info.status == FactorInfo::ok) {
      scale_row_.clear(), scale_col_.clear(), analysis_row_scale_.clear();
      nodes_ = std::make_unique<ColumnNodes<T>>(wide->rounded());
      wide_ = std::move(wide);
    }
    return describe(info, row_order);
  }

  off bytes() const override {
    const auto size = [](const auto&... v) { return (off(v.size() * sizeof(v[0])) + ... + 0); };
    off bytes = size(block_ptr_, analysis_row_perm_, analysis_row_scale_, pattern_.ptr, pattern_.first, pattern_.row,
                     row_perm_, col_perm_, scale_row_, scale_col_);
    if (!nodes_) return bytes;
    const ColumnNodes<T>& f = *nodes_;
    bytes += size(f.node, f.lower_row, f.upper_row, f.segment, f.lower, f.upper, f.pivot, f.inverse_pivot, f.a_row,
                  f.a_place, f.phase, f.schedule.ptr, f.schedule.nodes, f.done, f.claimed, f.entries.run,
                  f.entries.target, f.entries.column, f.entries.a_place, f.entries.a_scale);
    for (const ZeroedArray<T>& work : f.work) bytes += work.size() * (off)sizeof(T);
    return wide_ ? bytes + wide_->bytes() : bytes;
  }

  bool is_wide() const override { return wide_ != nullptr; }
  bool factored() const override { return nodes_ != nullptr; }
  std::vector<idx> row_perm() const override { return row_perm_; }
  std::vector<idx> col_perm() const override { return col_perm_; }
  off nnz_lower() const override { return nnz_lower_; }  // unit diagonal included, as SciPy counts
  off nnz_upper() const override { return nnz_upper_; }
  Values below_diagonal() const override { return std::vector<T>(n_); }

  FactorInfo refactor(const void* given) override {
    using Real = real_t<T>;
    const T* const values = (const T*)given;
    FactorInfo info;
    if (wide_) {
      info.status = FactorInfo::bad_growth;
      return info;
    }
    origin_.refactored = true;
    ColumnNodes<T>& f = *nodes_;
    if (!f.compiled) {
      f = compile_nodes(pattern_, block_ptr_, std::move(f));
      f.division = divide_for_solves(f);
      workspace_ = {};
    }
    const int n_threads = num_threads();
    if (f.schedule.n_threads != n_threads) f.schedule = schedule_nodes(f, pattern_.ptr, n_threads);
    // A team would only pass a chain from thread to thread.
    const double worth =
        f.schedule.chained || f.schedule.work < worth_a_team ? 1 : 1 + f.schedule.work / worth_a_thread;
    const int team = (int)std::min<double>(n_threads, worth);
    const Real* row_scale = scale_row_.empty() ? nullptr : scale_row_.data();
    const Real* col_scale = scale_col_.empty() ? nullptr : scale_col_.data();
    if (team == 1 && ++f.n_alone == kBeforeSteps) f.entries = compile_steps(f, pattern_, row_scale, col_scale);
    const ColumnProgram<Real> program = f.program(pattern_, row_scale, col_scale);
    ColumnTask<Real> task{};
    task.values = reinterpret_cast<const Real*>(values);
    task.bound = (Real)std::min<double>(bound_, std::numeric_limits<Real>::max());
    ColumnMonitor<Real> monitor;
    const bool done = team == 1 && !f.entries.column.empty() && run_steps(f, program, task, monitor);
    if (!done) monitor = run_tasks(f, program, task, team);
    // Timing decides which of several bad columns a team finds first; one thread always finds the same one.
    if (monitor.status != FactorInfo::ok && team > 1) {
      f.schedule = schedule_nodes(f, pattern_.ptr, 1);
      monitor = run_tasks(f, program, task, 1);
    }

    info.status = (FactorInfo::Status)monitor.status;
    info.column = monitor.column < 0 ? -1 : col_perm_[monitor.column];
    info.min_pivot = n_ == 0 ? 0 : monitor.min_pivot;
    info.max_pivot = monitor.max_pivot;
    info.max_multiplier = monitor.max_multiplier;
    info.max_entry = monitor.max_entry;
    info.pivot_growth = monitor.max_entry > 0 ? monitor.max_upper / monitor.max_entry : 0;
    info.n_off_diagonal = n_off_diagonal_;
    info.flops = flops_;
    decide_division(info.max_pivot);
    return info;
  }

  void solve(Trans trans, idx nrhs, const void* from_b, void* to_x) const override {
    using Real = real_t<T>;
    const T* b = (const T*)from_b;
    T* x = (T*)to_x;
    const bool transpose = trans != Trans::none, conjugate = trans == Trans::conj_transpose;
    const Real* row_scale = scale_row_.empty() ? nullptr : scale_row_.data();
    const Real* col_scale = scale_col_.empty() ? nullptr : scale_col_.data();
    const idx* from = (transpose ? col_perm_ : row_perm_).data();
    const idx* to = (transpose ? row_perm_ : col_perm_).data();
    if (wide_) {
      for (idx k = 0; k < nrhs; k++, go_on())
        wide_->solve(block_ptr_, trans, from, b + (off)k * n_, to, x + (off)k * n_);
      return;
    }
    const ColumnProgram<Real> program = nodes_->program(pattern_, row_scale, col_scale);
    const ColumnSystem<T> system{
        n_,        from,      to,      transpose ? col_scale : row_scale, transpose ? row_scale : col_scale,
        transpose, conjugate, divides_};
    begin_phase("solve", nrhs);
    const idx n_blocks = (nrhs + 7) / 8;
    const int n_threads = threads_for_blocks(n_blocks, transpose);
    std::vector<std::unique_ptr<Workspace>> spaces(n_threads);  // by rank
    spaces[0] = workspace_.take();
    const auto solve_block = [&](idx block, int rank) {
      if (!spaces[rank]) spaces[rank] = std::make_unique<Workspace>();
      const idx end = std::min(nrhs, 8 * block + 8);
      for (idx width = 8, begin = 8 * block; begin < end; begin += width) {
        while (width > end - begin) width /= 2;
        const off shift = (off)begin * n_;
        ColumnSweeps<T>(*nodes_, program, system, *spaces[rank], width, b + shift, x + shift).run();
        have_done(width);
      }
    };
    if (n_threads == 1) {
      for (idx block = 0; block < n_blocks; block++, go_on()) solve_block(block, 0);
    } else {
      RangeFlagsOfTeam flags;
      share_out(n_threads, n_blocks,
                [&](std::size_t block, int rank) { flags.run(rank, [&] { solve_block((idx)block, rank); }); });
      flags.set();
    }
    workspace_.keep(std::move(spaces[0]));
  }

  AnyMatrix lower() const override {
    Matrix<T> out;
    out.pattern.n = n_;
    out.pattern.ptr.push_back(0);
    Pace pace;
    for (idx s = 0; s < nodes_->n_nodes(); s++)
      for (idx k = nodes_->node[s].first; k < nodes_->node[s + 1].first; k++) {
        pace.go_on(1 + nodes_->node[s].n_lower);
        append(out, k, T(1));
        each_lower(*nodes_, s, k, [&](idx row, off at) {
          const T v = nodes_->lower[at];
          if (v != T(0)) append(out, row, unscaled(v, row_scale(k), 1 / row_scale(row)));
        });
        out.pattern.ptr.push_back((off)out.pattern.ind.size());
      }
    sort_rows(out);
    return out;
  }

  AnyMatrix upper() const override {
    const std::vector<idx> node_of = nodes_of_columns(*nodes_), block_of = part_of_each(block_ptr_, n_);
    OuterSolve<T> outer(*nodes_, node_of);
    Matrix<T> out;
    out.pattern.n = n_;
    out.pattern.ptr.push_back(0);
    Pace pace;
    for (idx k = 0; k < n_; k++) {
      const ColumnNode* const node = nodes_->node.data() + node_of[k];
      pace.go_on(1 + node[1].upper_row - node[0].upper_row);
      const auto emit = [&](idx row, T v) { append(out, row, unscaled(v, 1 / row_scale(row), 1 / col_scale(k))); };
      each_upper<true>(*nodes_, node_of[k], k, [&](idx row, T v) {
        if (v == T(0)) return;
        if (block_of[row] == block_of[k]) emit(row, v);
        else outer.add(row, v);
      });
      outer.run(emit);
      emit(k, nodes_->pivot[k]);
      out.pattern.ptr.push_back((off)out.pattern.ind.size());
    }
    sort_rows(out);
    return out;
  }

  Values diagonal() const override {
    std::vector<T> out(n_);
    for (idx k = 0; k < n_; k++) out[k] = unscaled(nodes_->pivot[k], 1 / row_scale(k), 1 / col_scale(k));
    return out;
  }

  void inverse_on_pattern(PatternView P, void* out, bool) const override {
    T* const inverse = (T*)out;
    const std::vector<idx> place = inverse_permutation(row_perm_.data(), n_);
    ColumnInverse<T>(*nodes_).run([&](idx i, const T* z) {
      const idx j = col_perm_[i];
      for (off p = P.ptr[j]; p < P.ptr[j + 1]; p++) {
        const idx k = place[P.ind[p]];
        inverse[p] = unscaled(z[k], row_scale(k), col_scale(i));
      }
    });
  }

  // The entries of L + U, and those above the diagonal blocks, which are zero in the inverse.
  std::vector<char> has_places(PatternView P) const override {
    const std::vector<idx> place = inverse_permutation(row_perm_.data(), n_), block_of = part_of_each(block_ptr_, n_);
    std::vector<idx> column_of(n_, -1);  // the last one that has a row
    const ColumnInverse<T> columns(*nodes_);
    std::vector<char> has(P.nnz());
    Pace pace;
    for (idx i = 0; i < n_; i++) {
      const off begin = P.ptr[col_perm_[i]], end = P.ptr[col_perm_[i] + 1];
      if (begin == end) continue;
      off visited = end - begin;
      columns.rows_of(i, [&](idx k) { column_of[k] = i, visited++; });
      pace.go_on(visited);
      for (off p = begin; p < end; p++) {
        const idx k = place[P.ind[p]];
        has[p] = column_of[k] == i || block_of[k] < block_of[i];
      }
    }
    return has;
  }

 private:
  // Describes a factorization that produced the order of rows and, if it succeeded, nodes_.
  FactorInfo describe(FactorInfo info, const std::vector<idx>& row_order) {
    if (info.status != FactorInfo::ok) {
      info.column = col_perm_[info.column];
      return info;
    }
    row_perm_.resize(n_);
    for (idx k = 0; k < n_; k++) row_perm_[k] = analysis_row_perm_[row_order[k]];
    nnz_lower_ = (off)nodes_->lower_row.size() + n_;
    nnz_upper_ = (off)nodes_->upper_row.size() + n_;
    flops_ = info.flops;
    n_off_diagonal_ = info.n_off_diagonal;
    decide_division(info.max_pivot);
    return info;
  }

  // Products with reciprocals of pivots are faster than quotients, and as good where L and U have rounding errors
  // anyway. U of a matrix that is triangular in some order has none: quotients are exact where x has few digits, and a
  // rounding error of x may grow in the unknowns that follow until it dominates. A reciprocal below the normal numbers
  // has lost digits itself.
  void decide_division(double max_pivot) { divides_ = nnz_lower_ == n_ || max_pivot > largest_with_reciprocal<T>; }

  // Threads share blocks of 8 right-hand sides where these are enough for all that a solve could use.
  int threads_for_blocks(idx n_blocks, bool transpose) const {
    constexpr double cycles_of_entry = 4;
    const idx most_parts = transpose ? 0 : nodes_->division.most_parts;
    if (n_blocks == 1 || n_blocks < std::min<idx>(num_threads(), most_parts)) return 1;
    const double work = cycles_of_entry * (double)(nnz_lower_ + nnz_upper_) * ColumnSweeps<T>::cost_of(8) * n_blocks;
    return (int)std::min<double>({(double)num_threads(), (double)n_blocks, 1 + work / worth_a_thread});
  }

  double row_scale(idx k) const { return scale_row_.empty() ? 1.0 : scale_row_[k]; }
  double col_scale(idx k) const { return scale_col_.empty() ? 1.0 : scale_col_[k]; }

  const idx n_;
  std::vector<idx> block_ptr_;
  std::vector<idx> analysis_row_perm_;
  std::vector<double> analysis_row_scale_;
  PermutedPattern pattern_;
  std::vector<idx> row_perm_, col_perm_;
  std::vector<real_t<T>> scale_row_, scale_col_;  // by rows and columns of B, pivoting included; empty: all ones
  std::unique_ptr<ColumnNodes<T>> nodes_;
  std::unique_ptr<WideColumns<T>> wide_;  // if present, nodes_ holds its rounded numbers
  using Workspace = typename ColumnSweeps<T>::Workspace;
  mutable Reusable<Workspace> workspace_;  // of the last solve, for the next one
  off nnz_lower_ = 0, nnz_upper_ = 0;
  double flops_ = 0, bound_ = 0;
  idx n_off_diagonal_ = 0;
  bool divides_ = false;  // solves divide by pivots
};

}  // namespace

PermutedPattern permuted_pattern(const Symbolic& symbolic, PatternView A) {
  const idx n = A.n;
  RawVector<idx> place(n);
  for (idx i = 0; i < n; i++) place[symbolic.row_perm[i]] = i;
  PermutedPattern B;
  B.ptr.resize(n + 1), B.first.resize(n), B.row.resize(A.nnz());
  B.lower = std::max<off>(0, symbolic.lnz - n);
  off end = 0;
  for (idx k = 0; k < n; k++) {
    const idx j = symbolic.col_perm[k];
    B.ptr[k] = end, B.first[k] = A.ptr[j];
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) B.row[end++] = place[A.ind[p]];
  }
  B.ptr[n] = end;
  return B;
}

std::shared_ptr<ColumnNumeric> make_column_lu(Dtype dtype, const Symbolic& symbolic, PatternView A) {
  return with_scalar(
      dtype, [&]<class T>(T) -> std::shared_ptr<ColumnNumeric> { return std::make_shared<ColumnLU<T>>(symbolic, A); });
}

}  // namespace gs
