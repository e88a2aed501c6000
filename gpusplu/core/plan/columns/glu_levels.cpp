// The cheapest sequence of modes over the levels: dynamic programming over (level, mode).
#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "plan/columns/glu_work.hpp"

namespace gs::gpu {

constexpr int kMostLanesLog2 = std::bit_width((unsigned)GLU_THREADS) - 1;

int glu_lanes_log2(off count) {
  return std::min((int)std::bit_width((unsigned)((count + 1) / 2 - (count > 0))), kMostLanesLog2);
}

GluWork::GluWork(const ColumnPlan& plan, const ScheduleCosts& costs_)
    : below(plan.n), right(plan.n), column(plan.n), costs(costs_) {
  for (idx j = 0; j < plan.n; j++) {
    below[j] = plan.col_ptr[j + 1] - plan.diag[j] - 1;
    const idx *begin = plan.col.data() + plan.row_ptr[j], *end = plan.col.data() + plan.row_ptr[j + 1];
    right[j] = end - std::upper_bound(begin, end, j);
    column[j] = updates(j) ? costs.column + costs.update * (double)below[j] * (double)right[j] : 0;
  }
}

GluLevels choose_levels(const ColumnPlan& plan, const GluWork& work, const std::vector<bool>& left, off capacity) {
  constexpr int n_modes = 3;
  constexpr double never = 1e30;
  const std::size_t n = plan.n_levels();
  std::vector<double> chunks(n), columns(n);
  std::vector<off> slots(n);
  for (idx j = 0; j < plan.n; j++)
    if (left[j]) slots[plan.level[j]] += work.slots(j);
  for (idx j = 0; j < plan.n; j++)
    if (left[j] && work.updates(j)) {
      chunks[plan.level[j]] += (double)work.right[j] / (GLU_THREADS >> glu_lanes_log2(work.below[j]));
      columns[plan.level[j]] += work.column[j];
    }
  std::vector<std::array<signed char, n_modes>> from(n);
  std::array<double, n_modes> best{};
  const ScheduleCosts& costs = work.costs;
  for (std::size_t l = 0; l < n; l++) {
    const int cheapest = (int)(std::min_element(best.begin(), best.end()) - best.begin());
    const std::array<double, n_modes> before = best;
    std::array<double, n_modes> own{};
    if (chunks[l] > 0)
      own = {costs.launch + chunks[l] * costs.cluster_piece, costs.hop + chunks[l] * costs.batch_piece,
             slots[l] <= capacity ? columns[l] : never};
    for (int m = 0; m < n_modes; m++) {
      const double begin = m == (int)GluMode::cluster || l == 0 ? 0
                           : m == (int)GluMode::pipeline        ? costs.pipeline
                                                                : costs.launch;
      const double changed = before[cheapest] + begin;
      from[l][m] = (signed char)(before[m] <= changed ? m : cheapest);
      best[m] = std::min(before[m], changed) + own[m];
    }
  }
  GluLevels out{std::vector<int>(n, -1), 0};
  int mode = (int)(std::min_element(best.begin(), best.end()) - best.begin());
  out.microseconds = best[mode];
  for (std::size_t l = n; l-- > 0; mode = from[l][mode])
    if (chunks[l] > 0) out.modes[l] = mode;
  return out;
}

}  // namespace gs::gpu
