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
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/reusable.hpp"
#include "numeric/dense_front.hpp"
#include "numeric/factor_info.hpp"
#include "numeric/front_memory.hpp"
#include "numeric/front_plan.hpp"
#include "numeric/ldlt_front.hpp"

namespace gs {

template <class T> class FrontFactor {
 public:
  // A has the pattern that `symbolic` was made for and holds both triangles. `hermitian`: for LDL^T, else A equals its
  // transpose.
  FrontFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A, bool hermitian = true);

  // Factors the matrix with these canonical values; a refactorization does the same. `rule` applies to LU and LDL^T:
  // bounds are absolute, for the scaled matrix. If the status is not ok, the factor is unusable. `flush`: results below
  // the normal numbers may become zero.
  FactorInfo factor(const T* values, const PivotRule& rule, bool flush = false);

  // Solves op(A) x = b for nrhs right-hand sides in A's numbering; b and x may be the same, but not overlap otherwise.
  void solve(Trans trans, idx nrhs, const T* b, off ldb, T* x, off ldx) const;

  // For an analysis with an interface of m unknowns: the Schur complement on it, by columns, m x m without scaling.
  void complement(T* S) const;
  // The two halves of a solve with A. `halfway` has n rows in the order of the fronts, those of the interface last:
  // first its right-hand side after elimination of all other unknowns; then, for the second half, its solution.
  void condense(idx nrhs, const T* b, T* halfway) const;
  void expand(idx nrhs, const T* halfway, T* x) const;

  // For Cholesky: from the factor of A to that of A + sign C C^H. All pairs of rows in a column of C must be in A's
  // pattern; C.pattern.n counts columns. False if pivots are lost; the factor is then unusable.
  bool update(const Matrix<T>& C, int sign);
  bool update_pays(const Matrix<T>& C) const;  // compared with a new factorization

  // Entry k, (i, j) in the pattern P, becomes (A^-1)_ji; `inverse` has one for each. P has entries of A and of the
  // factors only; with `again`, P must be A's pattern.
  void inverse_on_pattern(PatternView P, T* inverse, bool again) const;
  // For each entry of P: whether `inverse_on_pattern` accepts it in addition to A's entries.
  std::vector<char> has_places(PatternView P) const;

  // A[row_perm][:, col_perm] = L U, L with unit diagonal, or A[row_perm][:, row_perm] = L L^H, or L D L^H (L D L^T of
  // complex symmetric A), L with unit diagonal; no scaling in L, U and D. Compressed columns with sorted rows, without
  // exact zeros.
  Matrix<T> lower() const;
  Matrix<T> upper() const;
  std::vector<idx> row_perm() const;  // with the interchanges of the last factor()
  std::vector<idx> col_perm() const { return symbolic_->ldlt ? row_perm() : symbolic_->col_perm; }
  std::vector<T> diagonal() const;        // of U, of D or of the Cholesky L, without scaling
  std::vector<T> below_diagonal() const;  // of D, n entries without scaling: zero except for pivots of order 2

  // For LDL^T: columns, in A's numbering, with pivots that the last factor() perturbed.
  const std::vector<idx>& perturbed_columns() const { return perturbed_columns_; }
  // The number of positive and negative eigenvalues of D.
  std::pair<idx, idx> inertia_of_pivots() const;

  const Symbolic& symbolic() const { return *symbolic_; }
  off nnz_lower() const { return nnz_lower_; }  // diagonal and zeros of relaxed supernodes included
  off nnz_upper() const { return nnz_upper_; }
  off bytes() const;  // of the factor, including the plan

 private:
  struct Run;      // one factorization: front_factor.cpp
  struct Solver;   // one solve: front_solve.cpp
  struct Inverse;  // one selected inverse: front_inverse.cpp

  // Memory of a solve; right-hand sides of a row are adjacent except in scratch.
  struct Workspace {
    struct Free {
      void operator()(T* p) const { std::free(p); }
    };
    using Array = std::unique_ptr<T, Free>;  // zero pages, allocated on first use
    idx block;                               // right-hand sides
    Array solution, carry;                   // n rows; plan.carry_size rows
    std::vector<Array> sums;                 // per thread: n rows, all zero between tasks
    std::vector<Array> scratch;              // per thread: columns of the tallest front
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

  double time_of_solve() const;  // with one right-hand side and one thread, in the unit of TaskCosts
  int threads_of_solve() const;
  std::vector<idx> first_fronts(const Matrix<T>& C) const;
  idx row_in_front(idx s, idx place) const;
  bool update_along_paths(const Matrix<T>& C, const idx* which, idx count, const std::vector<idx>& first, int sign,
                          idx* at, T* vectors, T* below);
  FrontShape shape(idx s) const { return FrontShape(*symbolic_, s); }
  T* panel(idx s) { return panels_.data() + plan_.panel_ptr[s]; }
  const T* panel(idx s) const { return panels_.data() + plan_.panel_ptr[s]; }

  std::shared_ptr<const Symbolic> symbolic_;
  FrontPlan plan_;
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
  idx tallest_ = 0;  // rows of the tallest front

  mutable Reusable<Workspace> workspace_;         // of the last solve with one right-hand side, for the next one
  mutable Reusable<InverseSpace> inverse_space_;  // of the last selected inverse, for the next one
};

}  // namespace gs
