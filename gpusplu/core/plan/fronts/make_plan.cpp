#include "plan/fronts/plan.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/entry_places.hpp"
#include "base/background_task.hpp"
#include "base/stopwatch.hpp"
#include "plan/fronts/over_fronts.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/team.hpp"

namespace gs::gpu {

idx block_rows_for(const PlanParameters& parameters) {
  const off scalars =
      (parameters.shared_memory_bytes - FRONT_CONTROL_BYTES) / parameters.scalar_bytes() - PANEL_SCALARS;
  idx R = BYTE_ROWS;
  while (R > PANEL && (off)front_ld(R) * (R + 8) > scalars) R -= PANEL;
  return R;
}

off factor_entries(const Plan& plan, idx W, idx H, bool large) {
  if (!large) return off(W + H) * W + (plan.one_triangle() ? 0 : off(W) * H);
  const off panels = off(large_ld(W) + large_ld(H)) * W, tile = plan.parameters.large_tile;
  return (plan.cholesky ? 1 : 2) * panels + off(tile) * tile * ((W + tile - 1) / tile);
}

idx block_ld(idx H, bool large) { return large ? large_ld(H) : H; }
off block_entries(idx H, bool large) { return off(block_ld(H, large)) * H; }

std::vector<idx> phases_of(const Plan& plan, idx small_rows) {
  const ClassRows kind(plan.parameters.warp_rows, small_rows, plan.parameters.block_rows);
  std::vector<idx> phase(plan.nf);
  for (idx f = 0; f < plan.nf; f++) {
    phase[f] = std::max(phase[f], plan.is_interface(f) ? LARGE_PHASE : kind(plan.rows[f]));
    if (const idx above = plan.parent[f]; above >= 0) phase[above] = std::max(phase[above], phase[f]);
  }
  return phase;
}

namespace {

void place_rows(Plan& plan) {
  plan.place.resize(plan.below.size());
  over_fronts(plan, (off)plan.below.size(), [&](idx begin, idx end) {
    for (idx f = begin; f < end; f++) {
      const idx above = plan.parent[f];
      if (above < 0) continue;
      const idx first = plan.first[above], W = plan.width[above];
      const idx* rows = plan.below.data() + plan.below_ptr[above];
      const idx* rows_end = plan.below.data() + plan.below_ptr[above + 1];
      const idx* at = rows;
      for (off p = plan.below_ptr[f]; p < plan.below_ptr[f + 1]; p++) {
        const idx row = plan.below[p];
        if (row < first + W) {
          plan.place[p] = (std::uint16_t)(row - first);
        } else {
          at = std::lower_bound(at, rows_end, row);
          plan.place[p] = (std::uint16_t)(W + (at++ - rows));
        }
      }
    }
  });
}

void set_phases(Plan& plan) {
  if (std::any_of(plan.rows.begin(), plan.rows.end(), [](idx R) { return R > MOST_ROWS; }))
    throw std::length_error("a front has more than " + std::to_string(MOST_ROWS) + " rows: the fill is too large");
  plan.phase = phases_of(plan, plan.parameters.small_rows);
  plan.level.assign(plan.nf, 0);
  for (idx f = 0; f < plan.nf; f++)
    if (const idx above = plan.parent[f]; above >= 0 && plan.phase[above] == plan.phase[f])
      plan.level[above] = std::max(plan.level[above], plan.level[f] + 1);
}

// The front of every entry of A, and the place in it.
void place_entries(PatternView A, Plan& plan) {
  if (A.nnz() > std::numeric_limits<idx>::max()) throw std::length_error("the matrix has more than 2147483647 entries");
  EntryPlaces<std::uint16_t> places({.n = plan.n,
                                     .nf = plan.nf,
                                     .one_triangle = plan.one_triangle(),
                                     .row_perm = plan.row_perm.data(),
                                     .col_perm = plan.col_perm.data(),
                                     .first = plan.first.data(),
                                     .below_ptr = plan.below_ptr.data(),
                                     .below = plan.below.data()},
                                    A);
  plan.entry_ptr = places.count();
  const off total = plan.entry_ptr[plan.nf];
  plan.entry_source.resize(total), plan.entry_place.resize(total);
  plan.entry_scale.resize(plan.row_scale.empty() ? 0 : total);
  places.write([&](off to, idx, off k, idx j, idx row, idx column) {
    plan.entry_source[to] = (idx)k;
    plan.entry_place[to] = (std::uint32_t)row | (std::uint32_t)column << 16;
    if (!plan.entry_scale.empty()) plan.entry_scale[to] = plan.row_scale[A.ind[k]] * plan.col_scale[plan.col_perm[j]];
  });
}

// For every local row of every front, the places of the vector arena that it sums: children in plan order.
// Cost: O(structure), parallel over fronts.
void list_gathers(Plan& plan) {
  if (plan.below.size() > 0x7fffffffu) throw std::length_error("more than 2147483647 rows below the pivots");
  std::vector<off> begin(plan.nf);  // of a front's sources
  off total = 0;
  for (idx f = 0; f < plan.nf; f++) {
    begin[f] = total;
    for (idx q = plan.child_ptr[f]; q < plan.child_ptr[f + 1]; q++) total += plan.height(plan.child[q]);
  }
  plan.gather_ptr.resize((std::size_t)plan.n + plan.below.size() + 1);
  plan.gather_ptr.back() = total;
  plan.gather_source.resize(total);
  over_fronts(plan, total, [&](idx first_front, idx last_front) {
    std::vector<off> next;
    for (idx f = first_front; f < last_front; f++) {
      next.assign(plan.rows[f], 0);
      const auto for_sources = [&](auto&& visit) {
        for (idx q = plan.child_ptr[f]; q < plan.child_ptr[f + 1]; q++)
          for (off p = plan.below_ptr[plan.child[q]]; p < plan.below_ptr[plan.child[q] + 1]; p++)
            visit(plan.place[p], p);
      };
      for_sources([&](idx row, off) { next[row]++; });
      off at = begin[f];
      off* ptr = plan.gather_ptr.data() + plan.below_ptr[f] + plan.first[f];
      for (idx i = 0; i < plan.rows[f]; i++) {
        ptr[i] = at;
        at += std::exchange(next[i], at);
      }
      for_sources([&](idx row, off p) { plan.gather_source[next[row]++] = (idx)p; });
    }
  });
}

// Start lists and launches. The start with the longest modelled path up to the end of its phase goes first, in 32
// steps; equals stay in plan order: siblings run close together, and their blocks are read while they are in the L2
// cache.
constexpr int kSteps = 32;

// Modelled time from the start of every front to the end of its phase, as a step: 0 for the longest of the phase.
std::vector<std::uint8_t> steps_of(const Plan& plan) {
  const std::vector<off> items = count_items(plan);
  std::vector<float> path(plan.nf);  // time of the front itself first
  over_range(plan.nf, 4 * (off)plan.nf, [&](idx begin, idx end) {
    for (idx f = begin; f < end; f++) path[f] = (float)front_time(plan, f, plan.phase[f], items[f]);
  });
  double longest[PHASES] = {};
  for (idx f = plan.nf; f-- > 0;) {
    const idx above = plan.parent[f];
    const int phase = plan.phase[f];
    if (above >= 0 && plan.phase[above] == phase) path[f] += path[above];
    longest[phase] = std::max(longest[phase], (double)path[f]);
  }
  std::vector<std::uint8_t> step(plan.nf);
  for (idx f = 0; f < plan.nf; f++)
    step[f] = (std::uint8_t)(kSteps - 1 - std::min(kSteps - 1, (int)(path[f] / longest[plan.phase[f]] * kSteps)));
  return step;
}

// Threads and shared memory of its blocks.
void shape(const PlanParameters& parameters, Launch& launch) {
  if (launch.phase == LARGE_PHASE) {
    const LargeShape large = parameters.large_shape();
    launch.threads = large.threads, launch.shared_bytes = large.shared_bytes;
  } else {
    launch.threads = FRONT_THREADS[launch.phase];
    launch.shared_bytes = front_shared_bytes(launch.phase, launch.scalars, parameters.scalar_bytes());
  }
}

// Launches of one segment.
void list_segment(Plan& plan, const std::vector<std::uint8_t>& step, idx begin, idx end, idx& first_task) {
  Launch launches[PHASES] = {};
  std::vector<idx> next(PHASES * kSteps + 1);  // counting sort by phase and step
  const auto key = [&](idx f) { return plan.phase[f] * kSteps + step[f]; };
  for (idx f = begin; f < end; f++) {
    Launch& launch = launches[plan.phase[f]];
    launch.rows = std::max(launch.rows, plan.rows[f]), launch.width = std::max(launch.width, plan.width[f]);
    if (plan.phase[f] == LARGE_PHASE) continue;
    launch.scalars = std::max(launch.scalars, front_ld(plan.rows[f]) * (plan.rows[f] + plan.fronts[f].partial_count));
    if (plan.level[f] == 0) next[key(f) + 1]++;
  }
  next[0] = (idx)plan.start.size();
  for (int k = 0; k < PHASES * kSteps; k++) next[k + 1] += next[k];
  plan.start.resize(next.back());
  for (int phase = 0; phase < LARGE_PHASE; phase++)
    launches[phase].begin = next[phase * kSteps],
    launches[phase].count = next[(phase + 1) * kSteps] - next[phase * kSteps];
  for (idx f = begin; f < end; f++)
    if (plan.phase[f] < LARGE_PHASE && plan.level[f] == 0) plan.start[next[key(f)]++] = f;
  launches[3].begin = first_task;
  while (first_task < (idx)plan.large.tasks.size() && plan.large.tasks[first_task].front < end) first_task++;
  launches[3].count = first_task - launches[3].begin;
  launches[3].scalars = LARGE_CONTROL * plan.segment_of(begin);
  for (int phase = 0; phase < PHASES; phase++) {
    launches[phase].phase = phase;
    shape(plan.parameters, launches[phase]);
    if (launches[phase].count) plan.launches.push_back(launches[phase]);
  }
}

}  // namespace

void list_starts(Plan& plan) {
  const std::vector<std::uint8_t> step = steps_of(plan);
  idx first_task = 0;
  plan.launch_ptr = {0};
  for (std::size_t s = 0; s + 1 < plan.segment_ptr.size(); s++) {
    list_segment(plan, step, plan.segment_ptr[s], plan.segment_ptr[s + 1], first_task);
    plan.launch_ptr.push_back((idx)plan.launches.size());
  }
}

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

}  // namespace

Plan make_plan(const Symbolic& symbolic, PatternView A, const PlanParameters& parameters) {
  return make_best_plan({&symbolic}, A, parameters).plan;
}

BestPlan make_best_plan(const std::vector<const Symbolic*>& symbolics, PatternView A,
                        const PlanParameters& parameters) {
  if (symbolics.empty()) throw std::invalid_argument("no symbolic to choose from");
  for (const Symbolic* symbolic : symbolics)
    if (symbolic->n != A.n) throw std::invalid_argument("the symbolic is of another matrix: orders differ");
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
  Plan& plan = best.plan;
  plan.row_scale = symbolics[which]->row_scale, plan.col_scale = symbolics[which]->col_scale;
  place_rows(plan);
  place_arenas(plan);
  place_entries(A, plan);
  list_large(plan);
  list_items(plan);
  list_starts(plan);
  list_gathers(plan);
  predict_times(plan);
  plan.seconds = watch.seconds();
  return best;
}

Prediction predict_plan(const Symbolic& symbolic, const PlanParameters& parameters) {
  Plan plan = plan_fronts(symbolic, parameters);
  predict_times(plan);
  return {plan.factor_seconds, plan.solve_seconds};
}

}  // namespace gs::gpu
