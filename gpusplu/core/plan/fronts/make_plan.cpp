#include <algorithm>
#include <deque>
#include <stdexcept>

#include "base/background_task.hpp"
#include "base/stopwatch.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/fronts/time_model.hpp"

namespace gs::gpu {

namespace {

// The fronts and their phases, merged by these costs.
Plan merged_fronts(const Symbolic& symbolic, const PlanParameters& parameters, const MergePhases& costs) {
  if (symbolic.method != Method::front) throw std::invalid_argument("a plan needs a symbolic of method 'front'");
  if (symbolic.structural_rank < symbolic.n) throw std::invalid_argument("a structurally singular matrix has no plan");
  Plan plan;
  plan.cholesky = symbolic.cholesky, plan.ldlt = symbolic.ldlt, plan.n_interface = symbolic.n_interface;
  plan.parameters = parameters;
  if (parameters.block_rows == 0) plan.parameters.block_rows = block_rows_for(parameters);
  if (parameters.large_tile == 0) plan.parameters.large_tile = large_tile(parameters.scalar_bytes());
  merge_fronts(symbolic, costs, plan);
  if (parameters.small_rows < 0) choose_small_rows(plan);
  set_phases(plan);
  plan.segment_ptr = {0, plan.nf};
  return plan;
}

double seconds(const Plan& plan) { return plan.factor_seconds + plan.solve_seconds; }

// A large front costs more if there are few, because they begin a phase of their own. Then the tree is also made for
// this case, and used if its predicted time is clearly less.
Plan plan_fronts(const Symbolic& symbolic, const PlanParameters& parameters) {
  constexpr idx kFew = 64;
  constexpr double kClearly = 0.95;
  MergePhases costs = parameters.costs.merge;
  if (parameters.large_cost > 0) costs.large.front = parameters.large_cost;
  Plan plan = merged_fronts(symbolic, parameters, costs);
  const auto large = std::count(plan.phase.begin(), plan.phase.end(), LARGE_PHASE);
  if (parameters.large_cost > 0 || large == 0 || large > kFew) return plan;
  costs.large.front = costs.large.few;
  Plan other = merged_fronts(symbolic, parameters, costs);
  predict_times(plan), predict_times(other);
  return seconds(other) < kClearly * seconds(plan) ? other : plan;
}

// All other stages.
void complete(const Symbolic& symbolic, PatternView A, const Stopwatch& watch, Plan& plan) {
  plan.row_scale = symbolic.row_scale, plan.col_scale = symbolic.col_scale;
  place_rows(plan);
  place_arenas(plan);
  place_entries(A, plan);
  list_large(plan);
  list_items(plan);
  list_starts(plan);
  list_gathers(plan);
  predict_times(plan);
  plan.seconds = watch.seconds();
}

}  // namespace

Plan make_plan(const Symbolic& symbolic, PatternView A, const PlanParameters& parameters) {
  if (symbolic.n != A.n) throw std::invalid_argument("the symbolic is of another matrix: orders differ");
  begin_phase("plan");
  const Stopwatch watch;
  Plan plan = plan_fronts(symbolic, parameters);
  complete(symbolic, A, watch, plan);
  return plan;
}

BestPlan make_best_plan(const std::vector<const Symbolic*>& symbolics, PatternView A,
                        const PlanParameters& parameters) {
  if (symbolics.empty()) throw std::invalid_argument("no symbolic to choose from");
  for (const Symbolic* symbolic : symbolics)
    if (symbolic->n != A.n) throw std::invalid_argument("a symbolic is of another matrix: orders differ");
  begin_phase("plan");
  const Stopwatch watch;
  std::vector<Plan> plans(symbolics.size());
  std::vector<double> predicted(symbolics.size());
  const auto begin = [&](std::size_t k) {
    plans[k] = plan_fronts(*symbolics[k], parameters);
    if (symbolics.size() > 1) predict_times(plans[k]);
    predicted[k] = seconds(plans[k]);
  };
  const auto begin_one = [&begin](std::size_t k) { return [&begin, k] { begin(k); }; };
  std::deque<BackgroundTask<decltype(begin_one(0))>> others;
  for (std::size_t k = 1; k < symbolics.size(); k++) others.emplace_back(begin_one(k));
  begin(0);
  for (auto& other : others) other.join();
  const std::size_t which = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
  BestPlan best{which, std::move(plans[which]), std::move(predicted)};
  complete(*symbolics[best.which], A, watch, best.plan);
  return best;
}

Prediction predict_plan(const Symbolic& symbolic, const PlanParameters& parameters) {
  Plan plan = plan_fronts(symbolic, parameters);
  predict_times(plan);
  return {plan.factor_seconds, plan.solve_seconds};
}

}  // namespace gs::gpu
