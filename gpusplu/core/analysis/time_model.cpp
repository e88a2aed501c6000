#include "analysis/time_model.hpp"

namespace gs {

MethodSeconds predict_seconds(const CpuCosts& costs, Method method, idx n, off nnz, const OrderingCost& cost,
                              bool cholesky) {
  const double flops = 2 * cost.flops;  // those of LU
  const auto at = [&](const LinearCosts& c) {
    return c.call + c.rows * n + c.entries * (double)nnz + c.fill * (double)cost.lnz + c.flops * flops +
           (flops < ALONE_FLOPS ? c.alone * flops : 0);
  };
  const MethodCosts& of = method == Method::column ? costs.column : costs.front;
  const double half = cholesky ? 0.5 : 1.0;  // one triangle of everything
  return {half * at(of.factor), half * at(of.refactor), at(of.solve)};
}

}  // namespace gs
