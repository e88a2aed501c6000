// Start lists and launches. The start with the longest modelled path up to the end of its phase goes first, in 32
// steps; equals stay in plan order: siblings run close together, and their blocks are read while they are in the L2
// cache.
#include <algorithm>

#include "plan/fronts/plan.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/team.hpp"

namespace gs::gpu {

namespace {

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

}  // namespace gs::gpu
