// Elimination of all unknowns except those of an interface, which gives the Schur complement on it.
//
// Fronts find pivots in their own diagonal blocks only, and no later step repairs bad ones: pivots are acceptable if a
// system with a known solution passes through both halves of a solve with an error that does not require other pivots.
// Half solves with pivots of LU and LDL^T are then measured in the rows of the interior, and refined by the rules of
// the accuracy policy.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "base/fork.hpp"
#include "certify/accuracy_policy.hpp"
#include "numeric/factor.hpp"
#include "numeric/front_factor.hpp"

namespace gs {

template <class T> class PartialFactor {
 public:
  // From an analysis with an interface. The arrays of `A` must outlive the factor.
  PartialFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A, const FactorOptions& options);

  // The Schur complement by columns; nullopt if the fronts have no acceptable pivots for these values, and solves are
  // then impossible. They are also impossible after NotPositiveDefinite.
  std::optional<RawVector<T>> factor(const T* values);

  // The halves of a solve with A, as in FrontFactor; columns of b and x are n apart. Thread-safe. False if a finite
  // `halfway` gave an x that is not finite, or that is all wrong in the rows of the interior.
  void condense(idx nrhs, const T* b, T* halfway) const;
  bool expand(idx nrhs, const T* b, const T* halfway, T* x) const;

  bool abandoned() const { return use_.abandoned(); }
  idx n() const { return A_.n; }
  idx n_interface() const { return symbolic_->n_interface; }

 private:
  UseLock::Shared held() const;
  bool is_fit(const RawVector<T>& complement) const;
  SolveError error_inside(idx nrhs, const T* b, const T* x, T* r) const;
  void step_inside(idx nrhs, const T* r, T* step) const;

  std::shared_ptr<const Symbolic> symbolic_;
  PatternView A_;
  FactorOptions options_;
  AccuracyPolicy policy_;
  FrontFactor<T> front_;
  std::vector<T> values_;
  std::vector<char> on_interface_;  // of A's unknowns
  FactorInfo info_;
  double norm_ = 0;  // of A, infinity norm
  bool factored_ = false;
  mutable UseLock use_;
};

}  // namespace gs
