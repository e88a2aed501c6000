// Start lists and launches. The start with the longest modelled way up to the end of its phase goes first, in 32 steps;
// equals stay in plan order: siblings run close together, and what they leave is read while it is in the L2 cache.
#include <algorithm>

#include "plan/plan.hpp"
#include "plan/time_model.hpp"

namespace gs::gpu {

void list_starts(Plan& plan) {
  constexpr int kSteps = 32;
  const std::vector<off> items = count_items(plan);
  std::vector<float> way(plan.nf);  // through f and its ancestors in the phase
  double longest[kPhases] = {};
  for (idx f = plan.nf; f-- > 0;) {
    const idx above = plan.parent[f];
    const int phase = plan.phase[f];
    way[f] = (float)front_time(plan, f, phase, items[f]);
    if (above >= 0 && plan.phase[above] == phase) way[f] += way[above];
    longest[phase] = std::max(longest[phase], (double)way[f]);
  }
  // Counting sort by phase and step.
  const auto bucket = [&](idx f) {
    const int phase = plan.phase[f];
    return phase * kSteps + kSteps - 1 - std::min(kSteps - 1, (int)(way[f] / longest[phase] * kSteps));
  };
  std::vector<idx> next(kPhases * kSteps + 1);
  for (idx f = 0; f < plan.nf; f++)
    if (plan.level[f] == 0) next[bucket(f) + 1]++;
  for (int k = 0; k < kPhases * kSteps; k++) next[k + 1] += next[k];
  plan.start_ptr.resize(kPhases + 1);
  for (int phase = 0; phase <= kPhases; phase++) plan.start_ptr[phase] = next[phase * kSteps];
  plan.start.resize(plan.start_ptr[kPhases]);
  for (idx f = 0; f < plan.nf; f++)
    if (plan.level[f] == 0) plan.start[next[bucket(f)]++] = f;

  plan.launches.clear();
  for (int phase = 0; phase < kPhases; phase++) {
    Launch launch{phase, plan.start_ptr[phase], plan.start_ptr[phase + 1] - plan.start_ptr[phase], 0, 0, 0};
    if (launch.count) plan.launches.push_back(launch);
  }
  for (Launch& launch : plan.launches)
    for (idx f = 0; f < plan.nf; f++) {
      if (plan.phase[f] != launch.phase) continue;
      launch.rows = std::max(launch.rows, plan.rows[f]), launch.width = std::max(launch.width, plan.width[f]);
      if (launch.phase < 3)
        launch.scalars =
            std::max(launch.scalars, front_ld(plan.rows[f]) * (plan.rows[f] + plan.fronts[f].partial_count));
    }
}

}  // namespace gs::gpu
