#include "analysis/time_model.hpp"

namespace gs {
namespace {

struct Line {
  double base, per_row, per_entry, per_fill, per_flop;
  double at(idx n, off nnz, const OrderingCost& cost) const {
    return base + per_row * n + per_entry * (double)nnz + per_fill * (double)cost.lnz + per_flop * 2 * cost.flops;
  }
};

// Two threads of a Zen 4 server at 2.6 GHz [s]; flops are those of LU.
constexpr Line kColumnFactor{2e-6, 21e-9, 9e-9, 8e-9, 0.42e-9};
constexpr Line kColumnRefactor{0.5e-6, 23e-9, 0, 3.3e-9, 0.016e-9};
constexpr Line kColumnSolve{1e-6, 5.5e-9, 0, 0.7e-9, 0.0004e-9};
constexpr Line kFrontFactor{12e-6, 70e-9, 9e-9, 2.6e-9, 0.027e-9};
constexpr Line kFrontRefactor{5e-6, 19e-9, 3.6e-9, 0.13e-9, 0.028e-9};
constexpr Line kFrontSolve{2e-6, 20e-9, 0, 0.1e-9, 0.0015e-9};

}  // namespace

MethodSeconds predict_seconds(Method method, idx n, off nnz, const OrderingCost& cost, bool cholesky) {
  if (method == Method::column)
    return {kColumnFactor.at(n, nnz, cost), kColumnRefactor.at(n, nnz, cost), kColumnSolve.at(n, nnz, cost)};
  const double half = cholesky ? 0.5 : 1.0;  // one triangle of everything
  return {half * kFrontFactor.at(n, nnz, cost), half * kFrontRefactor.at(n, nnz, cost), kFrontSolve.at(n, nnz, cost)};
}

}  // namespace gs
