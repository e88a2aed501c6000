#include "analysis/time_model.hpp"

namespace gs {

MethodSeconds predict_seconds(const CpuCosts& costs, Method method, idx n, off nnz, const OrderingCost& cost,
                              Elimination elimination) {
  const double flops = 2 * cost.flops;  // those of LU
  const auto at = [&](const LinearCosts& c) {
    return c.call + c.rows * n + c.entries * (double)nnz + c.fill * (double)cost.lnz + c.flops * flops +
           (flops < SINGLE_THREAD_FLOPS ? c.alone * flops : 0);
  };
  const bool ldlt = elimination == Elimination::ldlt;
  const MethodCosts& of = method == Method::column ? costs.column : ldlt ? costs.ldlt : costs.front;
  const double half = elimination == Elimination::cholesky ? 0.5 : 1.0;  // one triangle of everything
  return {half * at(of.factor), half * at(of.refactor), at(of.solve)};
}

}  // namespace gs
