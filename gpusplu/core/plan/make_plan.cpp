#include <chrono>
#include <stdexcept>

#include "plan/plan.hpp"
#include "plan/time_model.hpp"

namespace gs::gpu {

namespace {

// The fronts and their phases.
Plan plan_fronts(const Symbolic& symbolic, const PlanParameters& parameters) {
  if (symbolic.method != Method::front) throw std::invalid_argument("a plan needs a symbolic of method 'front'");
  if (symbolic.structural_rank < symbolic.n) throw std::invalid_argument("a structurally singular matrix has no plan");
  Plan plan;
  plan.cholesky = symbolic.cholesky;
  plan.parameters = parameters;
  if (parameters.block_rows == 0) plan.parameters.block_rows = block_rows_for(parameters);
  if (parameters.large_tile == 0) plan.parameters.large_tile = large_tile(parameters.scalar);
  merge_fronts(symbolic, plan);
  if (parameters.small_rows < 0) choose_small_rows(plan);
  set_phases(plan);
  return plan;
}

}  // namespace

Plan make_plan(const Symbolic& symbolic, PatternView A, const PlanParameters& parameters) {
  if (symbolic.n != A.n) throw std::invalid_argument("the symbolic is of another matrix: orders differ");
  const auto begin = std::chrono::steady_clock::now();
  Plan plan = plan_fronts(symbolic, parameters);
  plan.row_scale = symbolic.row_scale, plan.col_scale = symbolic.col_scale;
  place_rows(plan);
  place_factors(plan);
  place_blocks(plan);
  place_entries(A, plan);
  list_large(plan);
  list_items(plan);
  list_starts(plan);
  list_gathers(plan);
  predict_times(plan);
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return plan;
}

Prediction predict_plan(const Symbolic& symbolic, const PlanParameters& parameters) {
  Plan plan = plan_fronts(symbolic, parameters);
  predict_times(plan);
  return {plan.factor_seconds, plan.solve_seconds};
}

}  // namespace gs::gpu
