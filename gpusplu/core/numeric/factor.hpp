// The core's factor, which factors in Python hold: a Numeric, the matrix it came from, and the accuracy policy that
// keeps solutions right.
//
// Column LU pivots by threshold partial pivoting, fronts pivot only inside their diagonal blocks, refactorizations do
// not pivot, and all work on a matrix scaled by the matching. Factor therefore certifies solutions by the rules of
// certify/accuracy_policy.hpp: it measures and refines solves; where that is not enough, it chooses new pivots,
// analyses the matrix again with the current values and, as the last fallback, factors it by column LU with partial
// pivoting. Measuring stops where element growth and scaling bound the backward error well and the first solve in its
// direction, with A or its transpose, was accurate before any refinement; it resumes with the first factorization with
// a worse bound. Where the bound is moderate, Factor measures samples, once a system with a known solution was accurate
// in that direction. FactorStats counts these events.
#pragma once
#include <complex>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/analyze.hpp"
#include "analysis/symbolic.hpp"
#include "base/fork.hpp"
#include "certify/accuracy_policy.hpp"
#include "certify/range.hpp"
#include "matrix/symmetry.hpp"
#include "numeric/numeric.hpp"

namespace gs {

struct FactorOptions {
  double pivot_threshold = 0.1;
  Pivoting pivoting = Pivoting::automatic;
  Refine refine = Refine::automatic;
  bool hermitian = true;  // LDL^T: A equals its conjugate transpose, else its transpose
  // The caller wants LU, by any method: LDL^T is used for values with either symmetry as long as it is accurate.
  bool symmetric = false;
  // For factorizations that read one triangle: the pattern, which outlives the factor, on which new values are
  // compared.
  const Canonical* compared = nullptr;
  // The caller's order of the columns, gather: L, U and their permutations use it (numeric/factor_triangles.cpp).
  std::vector<idx> own_order = {};
};

struct SingularError : std::runtime_error {
  idx column;  // in A's numbering, -1 when unknown
  explicit SingularError(idx j) : std::runtime_error("Factor is exactly singular"), column(j) {}
};

struct NotSymmetric : std::runtime_error {
  NotSymmetric() : std::runtime_error("values are not those of a Hermitian or symmetric matrix") {}
};

struct NotPositiveDefinite : std::runtime_error {
  idx column;  // in A's numbering
  double pivot;
  NotPositiveDefinite(idx j, double p) : std::runtime_error("matrix is not positive definite"), column(j), pivot(p) {}
};

struct FactorStats {
  idx n_refactor = 0;    // refactorizations that succeeded
  idx n_updated = 0;     // updates and downdates, including those by a new factorization
  idx n_delayed = 0;     // columns that LDL^T moved to the fronts of parents, over all factorizations
  idx n_reanalyzed = 0;  // times the accuracy policy matched and ordered again with newer values
  idx n_repivoted = 0;   // times pivots were chosen again by threshold partial pivoting
  off n_refinement = 0;  // refinement steps over all solves
  double factor_seconds = 0, refactor_seconds = 0, solve_seconds = 0;  // of the last of each [s]
  double backward_error = -1;  // normwise, infinity norm, of the last solve that measured it; -1: none did
};

// Properties of the current factorization.
struct FactorSummary {
  FactorInfo info;
  std::shared_ptr<const Symbolic> symbolic;
  Method method = Method::front;
  bool hermitian = true;   // LDL^T
  off nnz = 0;             // entries of L and U that are stored
  off bytes = 0;           // of the factor without its matrix [bytes]
  double error_bound = 0;  // of the backward error, modelled; Cholesky: eps
};

// The number of positive and negative eigenvalues, if that is certain.
struct Inertia {
  bool held = false;  // as LDL^T; else LU chose other pivots
  bool certain = false;
  idx positive = 0, negative = 0;  // from D
  double distance = 0;             // estimate of ||I - A (L D L^H)^-1||, scaled; far below 1 if certain
};

class Factor {
 public:
  // All `void*` are arrays of numbers of this type. The arrays of `A` must outlive the factor; `values` is copied.
  // Throws SingularError or NotPositiveDefinite.
  Factor(Dtype dtype, std::shared_ptr<const Symbolic> symbolic, PatternView A, const void* values,
         const FactorOptions& options);
  ~Factor();  // optimized with the numerics: at the level of the bindings it visits every byte of the values

  // Canonical entry k is values[source[k]]; a null source is the identity. Returns the canonical position of a NaN or
  // Inf without any change, or -1. If it throws, the factor of the previous values is restored, at once or on its next
  // use. Unless the caller has `checked` symmetry, values that are not symmetric throw NotSymmetric.
  off refactor(const void* values, const off* source, bool checked = false);

  // From the Cholesky factor of A to that of A + C C^H, or A - C C^H for sign -1: by the columns that change, or by a
  // new factorization where the update takes longer or loses digits. C.pattern.n counts its columns. Returns true if
  // A's pattern has places for all of C C^H; else nothing has changed. If it throws NotPositiveDefinite, or
  // std::overflow_error for finite values, the factor is the previous one.
  bool update(const AnyMatrix& C, int sign);

  // Solves op(A) X = B in the caller's numbering; columns of B and X are n apart. Thread-safe. False if B is finite and
  // X is not, or its backward error is above sqrt(eps) with every method: the caller warns.
  bool solve(Trans trans, idx nrhs, const void* b, void* x);

  // Entries of A^-1, transposed: where `pattern` has (i, j), the value is (A^-1)_ji.
  struct InverseEntries {
    Pattern pattern = {};  // empty: A's
    Values values = {};
    double error = std::numeric_limits<double>::infinity();  // defined in factor_inverse.cpp
    bool accurate = false;
    bool empty() const {
      return std::visit([](const auto& v) { return v.empty(); }, values);
    }
    PatternView on(PatternView A) const { return pattern.ptr.empty() ? A : pattern.view(); }
  };
  // The requested entries: A's and, if the caller can use more, those of the factors that produce them, or those of
  // `more` that these factors have. Where only solves could be used, A's.
  struct InverseOf {
    bool factors = false;
    PatternView more = {};
  };
  // Thread-safe. Returns no entries, marked accurate, where neither A nor its factors have an entry of `more`.
  InverseEntries inverse(const InverseOf& of);

  // True in a forked child if another thread was refactoring during the fork: the factor is half changed, all functions
  // above and below throw, and it must not be destroyed.
  bool abandoned() const { return use_.abandoned(); }

  // Safe while another thread refactors; each result belongs to one factorization.
  FactorSummary summary() const;
  FactorStats stats() const;
  Dtype dtype() const { return dtype_; }
  idx n() const { return A_.n; }
  Values values() const;  // canonical, of the last factorization
  double reciprocal_condition() const;
  // Sign, or phase, and the logarithm of the modulus of det A. The determinant of a Hermitian matrix is real.
  std::pair<std::complex<double>, double> slogdet() const;
  // For LDL^T; D determines the inertia if the factors are close enough to A.
  Inertia inertia() const;
  // Pr A Pc = L U, or A[perm][:, perm] = L L^H or L D L^H; gather permutations. Those of LU may have other pivots than
  // the current factor (factor_triangles.cpp).
  bool has_accurate_triangles() const;  // L U or L D L^H is A to half of the digits, where checked
  std::vector<idx> row_perm() const;
  std::vector<idx> col_perm() const;
  AnyMatrix lower() const;
  AnyMatrix upper() const;
  // Of the current factor, gather permutations too.
  std::vector<idx> pivot_rows() const;
  std::vector<idx> pivot_columns() const;
  // The diagonal of D and the entries below it, matching `lower`.
  std::pair<Values, Values> pivots() const;

 private:
  struct Factored {  // by one of the methods
    std::shared_ptr<const Symbolic> symbolic;
    std::shared_ptr<ColumnNumeric> column;
    std::shared_ptr<FrontNumeric> front;
    FactorInfo info;
  };
  // f(T()) for the type of the numbers.
  template <class F> decltype(auto) typed(F&& f) const { return with_scalar(dtype_, std::forward<F>(f)); }
  template <class T> const T* values_as() const { return (const T*)values_.data(); }
  const Numeric& numeric() const {
    if (front_) return *front_;
    return *column_;
  }
  bool is_wide() const { return !front_ && column_->is_wide(); }
  Factored factored() const { return {symbolic_, column_, front_, info_}; }
  void hold(Factored other);
  void take(std::shared_ptr<const Symbolic> symbolic);
  void factor(bool fresh);
  bool is_compatible_with_ldlt();
  void leave_ldlt();
  void factor_by_method(bool fresh);
  void factor_front(bool fresh, bool reanalyzed = false);
  void factor_backup(double largest);
  void require_symmetric(double largest);
  bool refactor_updated();
  bool factor_first();
  void delay_perturbed_pivots(const PivotRule& rule);
  bool factor_column(double threshold);
  void use_partial_pivoting();
  void choose_pivots_again();
  Symbolic analyzed(const AnalyzeOptions& options) const;  // with the current values
  Symbolic analysis_by_columns(bool matching) const;
  Symbolic unscaled_analysis() const;
  bool zeros_are_harmless() const;
  bool certified();
  double distance_of_factors() const;
  double error_bound() const;
  bool scales_mislead() const;
  double spread() const;
  PivotReport report() const;
  void decide_checks(bool fresh);
  void lose(std::shared_ptr<const Symbolic> symbolic, bool replace);
  bool has_pivots() const;
  void restore();
  void recover();
  UseLock::Shared held() const;  // shared access to the factor
  template <class Query> auto taken_by(Query&& query) const;
  void fit_triangles();
  void fit_own_order();
  template <class Each> std::vector<Each> taken_out(const std::vector<Each>& each) const;
  Values taken_out(const Values& values) const;
  double error_of_lu(const Numeric& numeric) const;
  double error_of_ldlt() const;
  void fit_columns(double most_error);
  void unchecked_solve(Trans trans, idx nrhs, const void* b, void* x) const;
  bool in_range(Trans trans, idx nrhs, const void* b, const void* x) const;
  void solve_in_range(Trans trans, idx nrhs, const void* b, void* x) const;
  bool all_are_finite(idx nrhs, const void* x) const;
  const std::vector<double>& scale_of_rows(Trans trans) const;  // of op(A)
  SolveError measure(Trans trans, idx nrhs, const void* b, const void* x, bool by_rows, void* r);
  Refined checked_solve(Trans trans, idx nrhs, const void* b, void* x);
  Refined solve_known_system(Trans trans);
  void count_solve(Trans trans, bool accurate);
  void try_known_system(Trans trans);
  double solve_by_policy(Trans trans, idx nrhs, const void* b, void* x);
  bool can_repivot(idx nrhs, const void* b) const;
  bool has_any(PatternView more) const;
  double error_of_inverse(PatternView P, const Values& inverse) const;
  void try_inverse(const Numeric& numeric, const InverseOf& of, InverseEntries& best) const;
  void try_inverse_by_partial_pivoting(const InverseOf& of, InverseEntries& best) const;
  InverseEntries inverse_by_solves();
  double norm(Trans trans);
  bool must_measure(Trans trans);

  const Dtype dtype_;
  const Precision precision_;
  std::shared_ptr<const Symbolic> symbolic_;
  std::shared_ptr<const Symbolic> ldlt_;  // the last analysis for LDL^T, if wanted: LU serves one set of values
  PatternView A_;
  bool triangular_ = false;  // A is triangular in some order: no choice of pivots
  RawVector<std::byte> values_, backup_;
  FactorOptions options_;
  AccuracyPolicy policy_;
  std::shared_ptr<ColumnNumeric> column_;
  std::shared_ptr<FrontNumeric> front_;
  FactorInfo info_;
  bool triangles_fit_ = false;  // L and U without scales were checked since the last factorization
  double triangles_error_ = 0;
  std::shared_ptr<const ColumnNumeric> triangles_;  // if present, L and U are taken from it
  std::vector<idx> own_order_;                      // order in which the fronts' pivots are extracted; empty: their own
  bool updated_ = false;                            // since the last factorization
  double largest_ = 0;                              // largest entry of A
  double norms_[2] = {-1, -1};                      // of A and its transpose in the infinity norm, -1: not computed
  // There is no factor: memory ran out, or the call was interrupted, before the factor of the current values was
  // restored.
  bool lost_ = false;
  ColumnNumeric::Origin origin_;                  // of the numbers to restore
  Trust trust_ = Trust::none;                     // in solves
  ScaleRange scales_[2];                          // of rows, of columns
  std::unique_ptr<const SymmetricPairs> pairs_;   // created when values are first compared
  std::unique_ptr<const SymmetricPairs> mirror_;  // created when LDL^T first checks symmetry
  int n_fallbacks_ = 0;                           // steps of use_partial_pivoting taken for these values
  Factored wide_;                                 // result of the last of them, kept for solves that need it
  SolveHistory seen_[2];                          // of solves with A, with its transpose
  mutable UseLock use_;                           // shared by solves; exclusive for refactor and the accuracy policy
  FactorStats stats_;                             // concurrent solves write it, norms_ and seen_ under use_.counts
};

}  // namespace gs
