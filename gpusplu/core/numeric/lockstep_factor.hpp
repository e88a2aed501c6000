// Factors and solves many systems of one pattern in lockstep: one group at a time, one system in each lane of the
// processor's vectors, so that the overhead (indices, fronts, tree) is paid once per group.
//
// Pivots are fixed, so every system is monitored and every solve is measured and, where the accuracy policy requires
// it, refined; each system has a status, and the caller decides what to do about it. Systems do not influence each
// other: the results of a system are the same, bit for bit, for a single system and for any position in any batch, on
// any number of threads. Threads divide the groups.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/fork.hpp"
#include "certify/accuracy_policy.hpp"
#include "matrix/symmetry.hpp"
#include "plan/lockstep/plan.hpp"
#include "simd/lockstep_kernels.hpp"

namespace gs {

using gpu::LockstepReport;

// Contributions of children as lists of single entries: fronts of circuits are so small that loops over the rows of a
// child end before a branch predictor learns their lengths. The lists omit children of more rows than
// `most_listed_rows`.
constexpr int most_listed_rows = 12;

// Of front f, entries ptr[2 f] .. ptr[2 f + 1] - 1 go to its panels, and those up to ptr[2 f + 2] - 1 to its block:
// entry from[k] of the blocks' memory to entry to[k] of the target. Ordered by its children.
struct LockstepSums {
  std::vector<off> ptr;
  std::vector<idx> from, to;
};

// A program of LU by columns (simd/lockstep_kernels.hpp), for matrices with so little fill that fronts would be mostly
// overhead, or whose block triangular form has many blocks.
struct LockstepColumns {
  std::vector<LockstepColumn> column;
  std::vector<idx> row;
  std::vector<LockstepSegment> segment;
  std::vector<std::uint16_t> target;
  std::vector<double> entry_scale;
  std::vector<LockstepPhase> phase;
  std::vector<idx> row_perm;  // gather, with the interchanges of the pivots
};
constexpr idx most_lockstep_order = 65535;  // of matrices by columns: places in a column have 16 bits

// Of an analysis by columns. The pivots are those of a factorization of `guide`, canonical values, or without these
// those of the analysis.
template <class T> LockstepColumns make_lockstep_columns(const Symbolic& symbolic, PatternView A, const T* guide);

template <class T> class LockstepFactor {
 public:
  using R = real_t<T>;
  // By columns or by fronts, as the analysis says. The arrays of `A` must outlive it. Nothing is factored until
  // `refactor` is called. Throws as make_lockstep_plan and make_lockstep_columns do. Cholesky compares values on the
  // pattern `compared` if there is one.
  LockstepFactor(const Symbolic& symbolic, PatternView A, idx count, const SupernodeCosts& merging,
                 const AccuracyPolicy& policy, const Canonical* compared = nullptr, const T* guide = nullptr);

  // Entry k of system s is values[s * stride + source[k]]; a null source is the identity. After a call with new values
  // was interrupted, later calls throw std::runtime_error until a call sets new values.
  void refactor(const T* values, off stride, const off* source);
  // Solves op(A) X = B: B and X are (count, n, nrhs). X must not overlap B.
  void solve(Trans trans, idx nrhs, const T* b, T* x);
  // Refactors and solves group by group, so that the factor of a group is still in the cache for its solve. The factor
  // is not kept until a caller requests one afterwards, which recomputes it from the current values.
  void refactor_solve(const T* values, off stride, const off* source, Trans trans, idx nrhs, const T* b, T* x);

  std::vector<LockstepReport> report() const;
  std::vector<double> errors() const;  // normwise backward errors of the last solve, maximum over its columns
  std::vector<idx> steps() const;      // refinement steps of that solve, maximum over its columns
  void slogdet(T* sign, double* log_modulus);
  std::vector<T> values(idx system) const;  // canonical, of the last factorization
  // Entry (j, i) of the inverse for each entry (i, j) of A, (count, nnz), from the factors; returns the identity error
  // of each system (numeric/error_checks.hpp). Fronts only.
  std::vector<double> inverse_on_pattern(T* inverse);

  idx count() const { return count_; }
  idx n() const { return plan_.n; }
  off nnz() const { return A_.nnz(); }
  off bytes() const;
  bool abandoned() const { return use_.abandoned(); }  // as in Factor

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
  // Values and factor of a group, or memory for them and for the blocks of its fronts.
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
  bool by_columns() const { return !columns_.phase.empty(); }
  LockstepNotes* notes_of(idx group) { return notes_.data() + (off)group * lanes; }
  PivotRule pivot_rule() const;
  const R* load_group(idx group, const Values& values, R* workspace);
  void factor_group(idx group, const R* values, R* factor, R* blocks);
  // If the values exceed the cache, a thread works on a group in its own memory and stores the values past the cache:
  // ordinary stores would read the lines of the group first and write them back later.
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
  LockstepColumns columns_;  // empty: fronts
  gpu::LockstepPlan plan_;   // of columns only what they share with fronts
  AccuracyPolicy policy_;
  std::vector<idx> column_;  // of each entry of A
  std::optional<SymmetricPairs> pairs_;
  LockstepSums sums_;
  LockstepProgram program_;
  const LockstepKernels<T>& kernels_;
  RawVector<R> values_, factor_;
  std::vector<RawVector<R>> work_;     // per thread
  std::vector<std::uint8_t> claimed_;  // groups, by a thread
  std::vector<LockstepNotes> notes_;   // per lane
  std::vector<double> errors_;
  std::vector<idx> steps_;
  std::vector<std::uint8_t> refined_;  // groups refined since the last refactor_solve began
  bool held_ = true;                   // factor_ belongs to the current values
  bool half_ = false;                  // some systems have new values and others old ones: a call was interrupted
  bool factors_requested_ = false;     // a caller requested factors after a refactor_solve
  mutable UseLock use_;
};

// ---- Entries of the inverses of systems in lockstep, from their factors: system by system, front by front from the
// roots down

// Entry (j, i) of the inverse for each entry (i, j) of A, of all systems: `inverse` is (count, nnz). fetch(system,
// factor, values) copies the data of a system, on any thread. Returns the identity errors (numeric/error_checks.hpp).
template <class T> std::vector<double> lockstep_inverse(const gpu::LockstepPlan& plan, PatternView A, idx count,
                                                        const std::function<void(idx, T*, T*)>& fetch, T* inverse);

}  // namespace gs
