// Multifrontal LU, Cholesky and LDL^T factorization over the supernodal structure of a Symbolic.
//
// B = (Dr A Dc)[row_perm][:, col_perm] is eliminated front by front: the entries of A and the contribution blocks of
// the children are summed directly in the front's storage in the factor, the dense kernels eliminate its W columns, and
// the Schur complement of its H rows is the contribution block for the parent (Duff & Reid, "The multifrontal solution
// of indefinite sparse symmetric linear equations", ACM TOMS 9 (1983); Liu, "The multifrontal method for sparse matrix
// solution: theory and practice", SIAM Review 34 (1992)). LU works on the symmetrized structure and pivots inside the
// diagonal block of a front; pivots that stay too small are perturbed and counted.
//
// Sums run over children in a fixed order and the dense kernels do not depend on the team: results are bitwise the same
// for any number of threads.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "base/raw_vector.hpp"
#include "base/reusable.hpp"
#include "numeric/block_limit.hpp"
#include "numeric/dense_front.hpp"
#include "numeric/front_memory.hpp"
#include "numeric/front_plan.hpp"
#include "numeric/ldlt_front.hpp"
#include "numeric/numeric.hpp"

namespace gs {

template <class T> class FrontFactor : public FrontNumeric {
 public:
  // A has the pattern that `symbolic` was made for and holds both triangles. `hermitian`: for LDL^T, else A equals its
  // transpose.
  FrontFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A, bool hermitian = true);

  FactorInfo factor(const void* values, const PivotRule& rule, bool flush = false) override;
  void solve(Trans trans, idx nrhs, const void* b, void* x) const override;  // b and x may be the same

  // For an analysis with an interface of m unknowns: the Schur complement on it, by columns, m x m without scaling.
  void complement(T* S) const;
  // The two halves of a solve with A. `halfway` has n rows in the order of the fronts, those of the interface last:
  // first its right-hand side after elimination of all other unknowns; then, for the second half, its solution.
  void condense(idx nrhs, const T* b, T* halfway) const {
    solve_halves(Trans::none, nrhs, b, nullptr, halfway, nullptr);
  }
  void expand(idx nrhs, const T* halfway, T* x) const { solve_halves(Trans::none, nrhs, nullptr, halfway, nullptr, x); }

  bool update(const AnyMatrix& C, int sign) override;
  bool update_pays(const Pattern& C) const override;

  void inverse_on_pattern(PatternView P, void* inverse, bool again) const override;
  std::vector<char> has_places(PatternView P) const override;

  AnyMatrix lower() const override { return triangle(false); }
  AnyMatrix upper() const override { return triangle(true); }
  std::vector<idx> row_perm() const override;
  std::vector<idx> col_perm() const override { return symbolic_->ldlt ? row_perm() : symbolic_->col_perm; }
  Values diagonal() const override;
  Values below_diagonal() const override;

  const std::vector<idx>& perturbed_columns() const override { return perturbed_columns_; }
  std::pair<idx, idx> inertia_of_pivots() const override;

  const Symbolic& symbolic() const { return *symbolic_; }
  off nnz_lower() const override { return nnz_lower_; }  // zeros of relaxed supernodes included
  off nnz_upper() const override { return nnz_upper_; }
  off bytes() const override;  // including the plan

 private:
  struct Run;      // one factorization: front_factor.cpp
  struct Solver;   // one solve: front_solve.cpp
  struct Inverse;  // one selected inverse: front_inverse.cpp

  // Memory of a solve; right-hand sides of a row are adjacent except in scratch.
  struct Workspace {
    idx block;                            // right-hand sides
    ZeroedArray<T> solution, carry;       // n rows; plan.carry_size rows
    std::vector<ZeroedArray<T>> sums;     // per thread: n rows, all zero between tasks
    std::vector<ZeroedArray<T>> scratch;  // per thread: columns of the tallest front
    Workspace(const FrontFactor& factor, idx block, int threads);
  };

  // Memory of a selected inverse.
  struct InverseSpace {
    struct Entry {
      off k, place;  // of the pattern; in the inverse block of its front
    };
    std::vector<off> ptr;  // entries by front
    RawVector<Entry> entries;
    BlockMemory memory;
    std::vector<RawVector<T>> scratch;  // per thread
    void place(const Symbolic& symbolic, PatternView P);
  };

  AnyMatrix triangle(bool upper) const;
  void solve_halves(Trans trans, idx nrhs, const T* b, const T* from, T* to, T* x) const;
  double time_of_solve() const;  // with one right-hand side and one thread, in the unit of TaskCosts
  int threads_of_solve() const;
  std::vector<idx> first_fronts(const Pattern& C) const;
  idx row_in_front(idx s, idx place) const;
  bool update_along_paths(const Pattern& C, const T* values, const idx* which, idx count, const std::vector<idx>& first,
                          int sign, idx* at, T* vectors, T* below);
  FrontShape shape(idx s) const { return FrontShape(*symbolic_, s); }
  T* panel(idx s) { return panels_.data() + plan_.panel_ptr[s]; }
  const T* panel(idx s) const { return panels_.data() + plan_.panel_ptr[s]; }

  std::shared_ptr<const Symbolic> symbolic_;
  FrontPlan plan_;
  BlockLimit block_limit_;
  RawVector<T> panels_;  // pages are allocated during assembly, near the assembling thread
  // By column: the row of the front's diagonal block it was exchanged with; LDL^T: the column that was moved here.
  std::vector<idx> pivots_;
  bool hermitian_;  // LDL^T
  std::vector<idx> perturbed_columns_;
  std::vector<T> diagonal_, below_diagonal_;  // of D (numeric/ldlt_front.hpp)
  std::vector<RawVector<T>> scratch_;         // LDL^T, per thread
  std::vector<T*> contribution_;              // by front, until the parent takes it
  BlockMemory memory_;
  mutable std::vector<idx> place_;  // of A's unknowns in the order of the fronts; created by the first update
  off nnz_lower_ = 0, nnz_upper_ = 0;
  idx tallest_ = 0;                       // rows of the tallest front
  std::size_t largest_contribution_ = 0;  // [bytes]

  mutable Reusable<Workspace> workspace_;         // of the last solve with one right-hand side, for the next one
  mutable Reusable<InverseSpace> inverse_space_;  // of the last selected inverse, for the next one
};

}  // namespace gs
