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
constexpr Line kColumnFactor{10e-6, 120e-9, 19e-9, 20e-9, 0.61e-9};
constexpr Line kColumnRefactor{1e-6, 33e-9, 0.4e-9, 5.7e-9, 0.047e-9};
constexpr Line kColumnSolve{1.5e-6, 6.5e-9, 0.5e-9, 0.75e-9, 0.0017e-9};
constexpr Line kFrontFactor{25e-6, 100e-9, 14e-9, 5.8e-9, 0.024e-9};
constexpr Line kFrontRefactor{9e-6, 20e-9, 6.3e-9, 1.3e-9, 0.033e-9};
constexpr Line kFrontSolve{3e-6, 24e-9, 0.3e-9, 0.5e-9, 0.002e-9};

}  // namespace

MethodSeconds predict_seconds(Method method, idx n, off nnz, const OrderingCost& cost, bool cholesky) {
  if (method == Method::column)
    return {kColumnFactor.at(n, nnz, cost), kColumnRefactor.at(n, nnz, cost), kColumnSolve.at(n, nnz, cost)};
  const double half = cholesky ? 0.5 : 1.0;  // one triangle of everything
  return {half * kFrontFactor.at(n, nnz, cost), half * kFrontRefactor.at(n, nnz, cost), kFrontSolve.at(n, nnz, cost)};
}

}  // namespace gs
