// Many systems of one pattern, factored and solved in lockstep: a group of them at a time, one in each lane of the
// processor's vectors, so that all that is not arithmetic (indices, fronts, tree) is paid once for a group.
//
// Pivots are fixed, so every system is watched and every solve is measured, and refined where the ladder asks for that;
// what a system says of itself is in its report, and what is done about it is the caller's business. No system has any
// influence on another one: its results are the same, bit for bit, alone or in any place of any batch, on one thread or
// on many. Groups are shared out over the threads.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/fork.hpp"
#include "certify/accuracy_policy.hpp"
#include "matrix/symmetric_pairs.hpp"
#include "numeric/lockstep_sums.hpp"
#include "plan/lockstep/plan.hpp"
#include "simd/lockstep_kernels.hpp"

namespace gs {

using gpu::LockstepReport;

template <class T> class LockstepFactor {
 public:
  using R = real_t<T>;
  // What `A` points to must outlive it. Nothing is factored until `refactor` is called. Throws as make_lockstep_plan.
  // Of Cholesky, values are compared on the pattern `compared`, if there is one.
  LockstepFactor(const Symbolic& symbolic, PatternView A, idx count, const SupernodeCosts& merging,
                 const AccuracyPolicy& policy, const Canonical* compared = nullptr);

  // Entry k of system s is values[s * stride + source[k]]; a null source is the identity. Where a call with new values
  // was asked to stop, what follows throws std::runtime_error until there are new values again.
  void refactor(const T* values, off stride, const off* source);
  // Solves op(A) X = B: B and X are (count, n, nrhs). X must not overlap B.
  void solve(Trans trans, idx nrhs, const T* b, T* x);
  // One after the other, group by group, so that a group's factor is still in the cache when it is solved with. As long
  // as nobody has asked for a factor afterwards, it is not kept: whoever does has it made again, of the values held.
  void refactor_solve(const T* values, off stride, const off* source, Trans trans, idx nrhs, const T* b, T* x);

  std::vector<LockstepReport> report() const;
  std::vector<double> errors() const;  // normwise backward errors of the last solve, the largest of its columns
  std::vector<idx> steps() const;      // of refinement that it took, the most of its columns
  void slogdet(T* sign, double* log_modulus);
  std::vector<T> values(idx system) const;  // canonical, those factored last
  // Entry (j, i) of the inverse for each entry (i, j) of A, (count, nnz), by the factors; returns how far the entries
  // of each system are from being those of its inverse (numeric/identity_error.hpp).
  std::vector<double> inverse_on_pattern(T* inverse);

  idx count() const { return count_; }
  idx n() const { return plan_.n; }
  off nnz() const { return A_.nnz(); }
  off bytes() const;
  const gpu::LockstepPlan& plan() const { return plan_; }
  bool abandoned() const { return use_.abandoned(); }  // as Factor has it

 private:
  struct Values {
    const T* begin;
    off stride;
    const off* source;
  };
  struct Sides {
    Trans trans;
    idx nrhs;
    const T* b;
    T* x;
  };
  // Values of a group and their factor, or room for that and for the blocks of its fronts.
  struct Made {
    const R* values;
    R *factor, *blocks = nullptr;
    bool whole = true;
  };
  struct Solving;
  idx n_groups() const { return (count_ + lanes - 1) / lanes; }
  off factor_workspace() const { return (plan_.task_size + plan_.shared_size) * numbers; }
  off solve_workspace(idx nrhs) const { return 5 * (off)plan_.n * (nrhs == 1 ? 1 : lockstep_columns) * numbers; }
  template <class Work> void over_groups(off workspace, Work&& work);
  template <class Work> void over_new_values(off workspace, Work&& work);
  void must_be_whole() const;
  LockstepNotes* notes_of(idx group) { return notes_.data() + (off)group * lanes; }
  PivotRule pivot_rule() const;
  const R* load_group(idx group, const Values& values, R* workspace);
  void factor_group(idx group, const R* values, R* factor, R* blocks);
  // Values that are larger than a cache are worked with in memory of the thread, and written past it to where they are
  // held: a group's own lines would be read first, and have to be written back.
  off values_workspace() const { return values_.size() * sizeof(R) > 8 << 20 ? A_.nnz() * numbers : 0; }
  void solve_group(idx group, const Sides& sides, const Made& made, R* work);
  void hold_factors();
  void take_lane(const R* from, off count, int lane, T* to) const;
  template <class Row> void rows_of(idx group, Row* begin, off stride, Row** rows) const;
  R* values_of(idx group) const { return const_cast<R*>(values_.data()) + group * A_.nnz() * numbers; }
  R* factor_of(idx group) const { return const_cast<R*>(factor_.data()) + group * plan_.factor_size * numbers; }

  static constexpr int lanes = lockstep_lanes<T>;
  static constexpr off numbers = lockstep_numbers<T>;

  PatternView A_;
  idx count_;
  gpu::LockstepPlan plan_;
  AccuracyPolicy policy_;
  std::vector<idx> column_;  // of each entry of A
  std::optional<SymmetricPairs> pairs_;
  LockstepSums sums_;
  LockstepProgram program_;
  const LockstepKernels<T>& kernels_;
  RawVector<R> values_, factor_;
  std::vector<RawVector<R>> work_;    // of every thread
  std::vector<LockstepNotes> notes_;  // of every lane
  std::vector<double> errors_;
  std::vector<idx> steps_;
  std::vector<std::uint8_t> refined_;  // groups that have been, since the last refactor_solve began
  bool held_ = true;                   // factor_ is of the values held
  bool half_ = false;                  // some systems have new values and others the old ones: a call was asked to stop
  bool factors_requested_ = false;     // for factors, after a refactor_solve
  mutable UseLock use_;
};

}  // namespace gs
