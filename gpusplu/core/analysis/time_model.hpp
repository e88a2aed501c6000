// Predicted seconds of the CPU engine's two methods, from the cost of an ordering.
#pragma once
#include "analysis/column_counts.hpp"
#include "analysis/symbolic.hpp"

namespace gs {

// Of one first factorization, refactorization and solve with one right-hand side [s].
struct MethodSeconds {
  double factor = 0, refactor = 0, solve = 0;
  // Time to factor, then to refactor and solve that many times.
  double total(double refactorizations) const { return factor + refactorizations * (refactor + solve); }
};

enum class Elimination { lu, cholesky, ldlt };

// For a matrix of order n with nnz entries; by columns LU only.
MethodSeconds predict_seconds(const CpuCosts& costs, Method method, idx n, off nnz, const OrderingCost& cost,
                              Elimination elimination);

}  // namespace gs
