// The factor that users hold: an engine, the matrix it came from, and the ladder that keeps answers right.
//
// Column LU pivots by threshold partial pivoting, fronts only inside their diagonal blocks, refactorizations not at
// all, and all work on a matrix that the matching has scaled. So answers are certified by the rules of
// certify/accuracy_policy.hpp: solves are measured and refined, and where that is not enough pivots are chosen anew,
// the matrix is analysed again with the values at hand and, at last, factored by column LU with partial pivoting.
// Measuring stops where element growth and scaling bound the backward error well and the first solve in its direction,
// with A or its transpose, was accurate before any refinement; it goes on with the first factorization whose bound is
// worse. Where they bound it fairly, samples are measured, once a system with a known answer was accurate in that
// direction. What happened is counted in FactorStats.
#pragma once
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/symbolic.hpp"
#include "base/fork.hpp"
#include "certify/accuracy_policy.hpp"
#include "certify/range.hpp"
#include "matrix/symmetric_pairs.hpp"
#include "matrix/symmetry.hpp"
#include "numeric/column_lu.hpp"
#include "numeric/factor_info.hpp"
#include "numeric/front_factor.hpp"

namespace gs {

struct FactorOptions {
  double pivot_threshold = 0.1;
  Pivoting pivoting = Pivoting::automatic;
  Refine refine = Refine::automatic;
  bool hermitian = true;  // of LDL^T: A equals its conjugate transpose, else its transpose
  // LU is what is asked for: LDL^T is for values that are symmetric, either way, and as long as it is accurate.
  bool any_values = false;
  // Of factorizations that read one triangle: the pattern, which outlives the factor, that new values are compared on.
  const Canonical* compared = nullptr;
  // A caller's order of the columns, gather: L, U and their permutations are of it (numeric/factor_triangles.cpp).
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
  idx n_updated = 0;     // updates and downdates, those by a new factorization too
  idx n_delayed = 0;     // columns that LDL^T moved to the fronts of parents, over all factorizations
  idx n_reanalyzed = 0;  // times the ladder matched and ordered again with newer values
  idx n_repivoted = 0;   // times pivots were chosen anew by threshold partial pivoting
  off n_refinement = 0;  // refinement steps over all solves
  double factor_seconds = 0, refactor_seconds = 0, solve_seconds = 0;  // of the last of each [s]
  double backward_error = -1;  // normwise, infinity norm, of the last solve that measured it; -1: none did
};

// The factorization that is held.
struct FactorSummary {
  FactorInfo info;
  std::shared_ptr<const Symbolic> symbolic;
  Method method = Method::front;
  bool hermitian = true;   // of LDL^T
  off nnz = 0;             // entries of L and U that are stored
  off bytes = 0;           // held by the factor besides its matrix [bytes]
  double error_bound = 0;  // of the backward error, modelled; Cholesky: eps
};

// How many eigenvalues are positive and negative, if that is certain.
struct Inertia {
  bool held = false;  // as LDL^T; else pivots were chosen anew by LU
  bool certain = false;
  idx positive = 0, negative = 0;  // by D
  double distance = 0;             // estimate of ||I - A (L D L^H)^-1||, scaled; far below 1 where certain
};

template <class T> class Factor {
 public:
  // What `A` points to must outlive the factor; `values` is copied. Throws SingularError or NotPositiveDefinite.
  Factor(std::shared_ptr<const Symbolic> symbolic, PatternView A, const T* values, const FactorOptions& options);

  // Canonical entry k is values[source[k]]; a null source is the identity. Returns the canonical position of a NaN or
  // Inf, having changed nothing, or -1. Where it throws, the factor of the values before is restored, at once or when
  // somebody asks for it. Unless the caller has `checked` that they are symmetric, it throws NotSymmetric of others.
  off refactor(const T* values, const off* source, bool checked = false);

  // From the Cholesky factor of A to that of A + C C^H, or A - C C^H for sign -1: by the columns that change, or where
  // that takes longer or loses digits by a new factorization. C.pattern.n counts its columns. True if A's pattern has
  // places for all of C C^H; else nothing has changed. Where it throws, NotPositiveDefinite or std::overflow_error of
  // finite values, the factor is the one before.
  bool update(const Matrix<T>& C, int sign);

  // Solves op(A) X = B in the caller's numbering; columns of B and X are n apart. Thread-safe. False if B is finite and
  // X is not, or is all wrong: numbers left the range of the type, whatever was tried.
  bool solve(Trans trans, idx nrhs, const T* b, T* x);

  // Entries of A^-1, transposed: where `pattern` has (i, j), the value is (A^-1)_ji.
  struct InverseEntries {
    Pattern pattern;  // empty: A's
    std::vector<T> values;
    double error = std::numeric_limits<double>::infinity();  // factor_inverse.cpp says of what
    bool accurate = false;
    PatternView on(PatternView A) const { return pattern.ptr.empty() ? A : pattern.view(); }
  };
  // Whose entries are asked for: A's and, if more are of use, those of the factors they come from, or as many of `more`
  // as these have. Where only solves were of use they are A's.
  struct InverseOf {
    bool factors = false;
    PatternView more;
  };
  // Thread-safe. Nothing, and accurate, where neither A nor its factors have an entry of `more`.
  InverseEntries inverse(const InverseOf& of);

  // A forked child has it half changed, because another thread was refactoring: all of the above and below throws, and
  // it must not even be destroyed.
  bool abandoned() const { return use_.abandoned(); }

  // What follows may be asked for while another thread refactors; each answer is of one factorization.
  FactorSummary summary() const;
  FactorStats stats() const;
  idx n() const { return A_.n; }
  std::vector<T> values() const;  // canonical, those factored last
  double reciprocal_condition() const;
  // Of LDL^T, of which D tells it if the factors are close enough to A.
  Inertia inertia() const;
  // Pr A Pc = L U, or A[perm][:, perm] = L L^H or L D L^H; gather permutations. Those of LU may be of other pivots than
  // those held (factor_triangles.cpp).
  bool has_accurate_triangles() const;  // L U, L D L^H is A to half of the digits, where looked into
  std::vector<idx> row_perm() const;
  std::vector<idx> col_perm() const;
  Matrix<T> lower() const;
  Matrix<T> upper() const;
  // Of the factor held, gather permutations too.
  std::vector<idx> pivot_rows() const;
  std::vector<idx> pivot_columns() const;
  int sign_of_permutations() const;
  std::vector<T> diagonal() const;        // of U (Cholesky: of L; LDL^T: of D)
  std::vector<T> below_diagonal() const;  // of D
  // The diagonal of D and what is below, as `lower` goes with it.
  std::pair<std::vector<T>, std::vector<T>> pivots() const;

 private:
  struct Factored {  // by one of the engines
    std::shared_ptr<const Symbolic> symbolic;
    std::shared_ptr<ColumnLU<T>> column;
    std::shared_ptr<FrontFactor<T>> front;
    FactorInfo info;
  };
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
  Symbolic analysis_by_columns(bool matching) const;
  Symbolic unscaled_analysis() const;
  bool zeros_are_harmless() const;
  bool certified();
  double distance_of_factors() const;
  double error_bound() const;
  bool scales_mislead() const;
  PivotReport report() const;
  void decide_checks(bool fresh);
  void lose(std::shared_ptr<const Symbolic> symbolic, bool replace);
  bool has_pivots() const;
  void restore();
  void recover();
  UseLock::Shared held() const;  // to share what is factored
  template <class Query> auto held_by(Query&& query) const;
  template <class Query> auto taken_by(Query&& query) const;
  void fit_triangles();
  void fit_own_order();
  template <class Each> std::vector<Each> taken_out(const std::vector<Each>& each) const;
  void fit_columns(double most_error);
  void engine_solve(Trans trans, idx nrhs, const T* b, T* x) const;
  bool in_range(Trans trans, const T* b, const T* x) const;
  void solve_in_range(Trans trans, idx nrhs, const T* b, T* x) const;
  const std::vector<double>& scale_of_rows(Trans trans) const;  // of op(A)
  SolveError measure(Trans trans, idx nrhs, const T* b, const T* x, bool by_rows, T* r);
  Refined checked_solve(Trans trans, idx nrhs, const T* b, T* x);
  Refined solve_known_system(Trans trans);
  void count_solve(Trans trans, bool accurate);
  void try_known_system(Trans trans);
  double solve_by_policy(Trans trans, idx nrhs, const T* b, T* x);
  bool can_repivot(idx nrhs, const T* b) const;
  bool has_any(PatternView more) const;
  template <class Engine> void try_inverse(const Engine& engine, const InverseOf& of, InverseEntries& best) const;
  void try_inverse_by_partial_pivoting(const InverseOf& of, InverseEntries& best) const;
  InverseEntries inverse_by_solves();
  double norm(Trans trans);
  bool must_measure(Trans trans);

  std::shared_ptr<const Symbolic> symbolic_;
  std::shared_ptr<const Symbolic> ldlt_;  // the last analysis for LDL^T, if that is wanted: LU is for single values
  PatternView A_;
  bool triangular_ = false;  // A is, in some order: pivots are what they are
  RawVector<T> values_, backup_;
  FactorOptions options_;
  AccuracyPolicy policy_;
  std::shared_ptr<ColumnLU<T>> column_;
  std::shared_ptr<FrontFactor<T>> front_;
  FactorInfo info_;
  bool triangles_fit_ = false;  // L and U without scales have been looked into since the last factorization
  double triangles_error_ = 0;
  std::shared_ptr<const ColumnLU<T>> triangles_;  // that L and U are taken from instead of those held
  std::vector<idx> own_order_;                    // that pivots of the fronts held are taken out in; empty: their own
  bool updated_ = false;                          // since the last factorization
  double largest_ = 0;                            // largest entry of A
  double norms_[2] = {-1, -1};                    // of A and its transpose in the infinity norm, -1 until asked for
  // Nothing is factored: memory was too short, or the call was asked to stop, before the factor of the values held was
  // restored.
  bool lost_ = false;
  typename ColumnLU<T>::Origin origin_;          // of the numbers that are to be restored
  Trust trust_ = Trust::none;                    // in solves
  ScaleRange scales_[2];                         // of rows, of columns
  std::unique_ptr<const SymmetricPairs> pairs_;  // once values had to be compared
  std::unique_ptr<const Mirror> mirror_;         // once LDL^T has to ask whether values are symmetric
  int n_fallbacks_ = 0;                          // steps of use_partial_pivoting that were taken for these values
  Factored wide_;                                // what the last of them found, put aside for solves that need it
  SolveHistory seen_[2];                         // of solves with A, with its transpose
  mutable UseLock use_;                          // solves share it; refactor and the ladder own it
  FactorStats stats_;                            // concurrent solves write it, norms_ and seen_ under use_.counts
};

}  // namespace gs
