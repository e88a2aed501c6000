// A matrix whose unknowns are eliminated but for an interface, on which that leaves the Schur complement.
//
// Fronts offer pivots in their own diagonal blocks only, and no later step mends what those lose: pivots are fit where
// a system with a known answer goes through both halves of a solve with an error that needs no other pivots. Half
// solves with pivots of LU and LDL^T are then measured in the rows of the interior, and refined by the rules of the
// ladder.
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
  // By an analysis with an interface. What `A` points to must outlive the factor.
  PartialFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A, const FactorOptions& options);

  // The Schur complement by columns; nothing where fronts offer no pivots that are fit for these values, and then there
  // is nothing to solve with. Throws NotPositiveDefinite, to the same effect.
  std::optional<RawVector<T>> factor(const T* values);

  // The halves of a solve with A, as FrontFactor has them; columns of b and x are n apart. Thread-safe. False if what
  // is finite in `halfway` became an x that is not, or that is all wrong in the rows of the interior.
  void condense(idx nrhs, const T* b, T* halfway) const;
  bool expand(idx nrhs, const T* b, const T* halfway, T* x) const;

  bool abandoned() const { return use_.abandoned(); }
  idx n() const { return A_.n; }
  idx n_interface() const { return symbolic_->n_interface; }
  off bytes() const { return front_.bytes() + (off)(values_.size() * sizeof(T)); }
  FactorInfo info() const;

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
