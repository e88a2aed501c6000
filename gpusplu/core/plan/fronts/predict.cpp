// Predicted times of the factorization and of a solve: for every phase the larger of its critical path and its
// throughput, summed; and which caps of the classes this makes best. Cost: O(fronts).
#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/types.hpp"
#include "plan/fronts/segments.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

double front_flops(const Plan& plan, idx f) {
  const double R = plan.rows[f], H = plan.height(f);
  return (R * R * R - H * H * H) * (plan.one_triangle() ? 1 : 2) * (plan.parameters.is_complex() ? 4 : 1) / 3;
}

// Of a multiprocessor. Double precision is slow on all but the devices for data centers.
double flop_time(const PlanParameters& p) {
  const bool slow = p.arch == 75 || p.arch == 86 || p.arch == 87 || p.arch == 89 || p.arch >= 120;
  const bool is_double = p.scalar == 'd' || p.scalar == 'D';
  return slow && is_double ? p.costs.device.slow_flop : p.costs.device.flop;
}

// Entries that front f reads and writes: its children's blocks, its factor, its block.
double front_scalars(const Plan& plan, idx f, off items) {
  const double R = plan.rows[f], share = plan.one_triangle() ? 0.6 : 1;
  return (double)ITEM_ENTRIES * items + share * R * R;
}

// Fronts of phase 0-2 that a multiprocessor works on at a time.
int concurrency(const Plan& plan, int phase, idx most_rows) {
  const PlanParameters& p = plan.parameters;
  if (phase == 0) return RESIDENT[0];
  const int bytes = (front_ld(most_rows) * most_rows + PANEL_SCALARS) * p.scalar_bytes() + RESERVED_SHARED_BYTES;
  return std::clamp(p.shared_memory_bytes / bytes, 1, RESIDENT[phase]);
}

struct PhaseTotals {
  double path = 0, latency = 0, flops = 0, scalars = 0;
  idx fronts = 0, rows = 0;
};

// Of all fronts of a phase, when the device is full of them [us].
double throughput_time(const Plan& plan, int phase, const PhaseTotals& t) {
  if (t.fronts == 0) return 0;
  const PlanParameters& p = plan.parameters;
  double throughput =
      std::max(t.flops * flop_time(p) / p.multiprocessors, t.scalars * p.scalar_bytes() * p.costs.device.byte);
  if (phase < LARGE_PHASE) {
    const int fronts = concurrency(plan, phase, t.rows);
    throughput = std::max(throughput, CONTENTION[phase] * t.latency / ((double)fronts * p.multiprocessors));
  }
  return throughput;
}

// Whether fronts of phases 0-2 wait for their own children only (programmatic dependent launch).
bool phases_overlap(const Plan& plan) { return plan.parameters.arch >= 90; }

// Fronts that are processed together.
struct Range {
  idx begin, end;
};

// Of phase 3, by its own schedule [us].
double large_time(const Plan& plan, const std::vector<idx>& phase_of, Range fronts) {
  std::vector<idx> large;
  for (idx f = fronts.begin; f < fronts.end; f++)
    if (phase_of[f] == LARGE_PHASE) large.push_back(f);
  if (large.empty()) return 0;
  return 1e6 * schedule_large(plan, large).seconds;
}

// Of all phases [us].
std::vector<double> factor_times(const Plan& plan, const std::vector<idx>& phase_of, const std::vector<off>& items,
                                 Range fronts) {
  PhaseTotals totals[PHASES];
  std::vector<float> before_of(fronts.end - fronts.begin);  // when the children are done
  float* before = before_of.data() - fronts.begin;
  for (idx f = fronts.begin; f < fronts.end; f++) {
    const int phase = phase_of[f];
    PhaseTotals& t = totals[phase];
    const double time = front_time(plan, f, phase, items[f]);
    const idx above = plan.parent[f];
    const float end = (float)(before[f] + time);
    if (above >= 0 && above < fronts.end &&
        (phase_of[above] == phase || (phases_overlap(plan) && phase_of[above] < LARGE_PHASE)))
      before[above] = std::max(before[above], end);
    t.path = std::max(t.path, (double)end);
    t.latency += time + of_phase(plan.parameters.costs.front, phase).between, t.flops += front_flops(plan, f),
        t.scalars += front_scalars(plan, f, items[f]);
    t.fronts++, t.rows = std::max(t.rows, plan.rows[f]);
  }
  std::vector<double> out(PHASES);
  double path = 0, work = 0, until = 0;  // of phases that overlap: the addition of each to the end
  for (int phase = 0; phase < PHASES; phase++) {
    const PhaseTotals& t = totals[phase];
    if (t.fronts == 0) continue;
    if (phase == LARGE_PHASE || !phases_overlap(plan)) path = work = until = 0;
    path = std::max(path, t.path), work += throughput_time(plan, phase, t);
    const double end = std::max(path, work) + (until > 0 ? 0 : of_phase(plan.parameters.costs.front, phase).launch);
    out[phase] = std::max(end - until, 0.0), until = std::max(until, end);
  }
  if (out[LARGE_PHASE] > 0)
    out[LARGE_PHASE] =
        std::max(out[LARGE_PHASE], large_time(plan, phase_of, fronts) + plan.parameters.costs.front.large.launch);
  return out;
}

// One direction through phases 0-2, where the path or the number of fronts counts, and through phase 3 [us].
double solve_time(const Plan& plan, Range fronts) {
  const PlanParameters& p = plan.parameters;
  double longest[2] = {}, throughput = 0, large_scalars = 0;
  std::vector<float> path_of(fronts.end - fronts.begin);
  float* path = path_of.data() - fronts.begin;
  for (idx f = fronts.end; f-- > fronts.begin;) {
    const int phase = plan.phase[f];
    const bool large = phase == LARGE_PHASE;
    const idx above = plan.parent[f];
    const PathCosts& costs = of_phase(p.costs.way, phase);
    path[f] = (float)(costs.front + costs.pivot * plan.width[f]);
    if (above >= 0 && above < fronts.end && (plan.phase[above] == LARGE_PHASE) == large) path[f] += path[above];
    longest[large] = std::max(longest[large], (double)path[f]);
    throughput += costs.full / p.multiprocessors;
    if (large) large_scalars += factor_entries(plan, plan.width[f], plan.height(f), true);
  }
  const double large_bytes = large_scalars * p.scalar_bytes() * (plan.cholesky ? 1 : 0.5);
  return std::max(longest[0], throughput) + longest[1] + large_bytes * p.costs.device.byte + p.costs.device.solve;
}

double sum(const std::vector<double>& v) {
  double total = 0;
  for (const double x : v) total += x;
  return total;
}

SegmentTimes times_of(const Plan& plan, const std::vector<off>& items, const std::vector<idx>& begin,
                      const std::vector<idx>& end) {
  const idx n = (idx)begin.size();
  SegmentTimes out{std::vector<double>(n), std::vector<double>(n)};
  over_tasks(threads_for(plan.nf), n, [&](idx k) {
    const Range fronts{begin[k], end[k]};
    out.factor[k] = sum(factor_times(plan, plan.phase, items, fronts));
    out.solve[k] = solve_time(plan, fronts);
  });
  return out;
}

}  // namespace

std::vector<off> count_items(const Plan& plan) {
  std::vector<off> items(plan.nf);
  for (idx f = 0; f < plan.nf; f++)
    if (plan.parent[f] >= 0) items[plan.parent[f]] += items_of_child(plan.height(f), plan.one_triangle());
  return items;
}

double front_time(const Plan& plan, idx f, int phase, off items) {
  const double R = plan.rows[f], W = plan.width[f];
  const PlanParameters& p = plan.parameters;
  const FrontCosts& costs = of_phase(p.costs.front, phase);
  const double flop = phase < LARGE_PHASE ? std::max(costs.flop, flop_time(p)) : flop_time(p) / p.multiprocessors;
  double time = costs.front + pivot_time(costs, plan.cholesky) * W + front_flops(plan, f) * flop + R * R * costs.scalar;
  if (phase < LARGE_PHASE) time += costs.batch * std::ceil((double)items / (GROUPS[phase] * item_batch(phase, 8)));
  return time;
}

void choose_small_rows(Plan& plan) {
  constexpr idx candidates[] = {0, 32, 48, 72, 96};
  constexpr int n_candidates = std::size(candidates);
  const std::vector<off> items = count_items(plan);
  double seconds[n_candidates];
  over_tasks(plan.nf < 1000 ? 1 : n_candidates, n_candidates, [&](idx k) {
    seconds[k] = sum(factor_times(plan, phases_of(plan, candidates[k]), items, {0, plan.nf}));
  });
  int best = 0;
  for (int k = 1; k < n_candidates; k++)
    if (candidates[k] <= plan.parameters.block_rows && seconds[k] < 0.98 * seconds[best]) best = k;
  plan.parameters.small_rows = candidates[best];
}

SegmentTimes segment_times(const Plan& plan, const std::vector<off>& items, const std::vector<idx>& segment_ptr) {
  return times_of(plan, items, {segment_ptr.begin(), segment_ptr.end() - 1},
                  {segment_ptr.begin() + 1, segment_ptr.end()});
}

SegmentTimes range_times(const Plan& plan, const std::vector<idx>& begin, const std::vector<idx>& end) {
  require(begin.size() == end.size(), "as many begins as ends are needed");
  for (std::size_t k = 0; k < begin.size(); k++)
    require(0 <= begin[k] && begin[k] <= end[k] && end[k] <= plan.nf, "a range is not one of fronts of the plan");
  return times_of(plan, count_items(plan), begin, end);
}

void predict_times(Plan& plan) {
  const std::vector<off> items = count_items(plan);
  plan.phase_seconds.assign(PHASES, 0);
  for (std::size_t s = 0; s + 1 < plan.segment_ptr.size(); s++) {
    const std::vector<double> times =
        factor_times(plan, plan.phase, items, {plan.segment_ptr[s], plan.segment_ptr[s + 1]});
    for (int phase = 0; phase < PHASES; phase++) plan.phase_seconds[phase] += 1e-6 * times[phase];
  }
  plan.factor_seconds = sum(plan.phase_seconds);
  plan.solve_seconds = 2e-6 * solve_time(plan, {0, plan.nf});
  if (plan.streamed > 0) {
    const FactorPlaces places{plan.segment_size, plan.segment_place, plan.streamed, plan.factor_size};
    const StreamTimes times = stream_times(places, segment_times(plan, items, plan.segment_ptr), plan.parameters);
    plan.factor_seconds = 1e-6 * times.factor, plan.solve_seconds = 1e-6 * times.solve;
  }
  plan.flops = 0;
  for (idx f = 0; f < plan.nf; f++) plan.flops += front_flops(plan, f);
}

}  // namespace gs::gpu
