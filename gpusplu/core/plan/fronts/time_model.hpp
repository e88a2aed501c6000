// Modelled times on the GPU, in microseconds.
#pragma once
#include <vector>

#include "plan/fronts/plan.hpp"

namespace gs::gpu {

// Class of a front.
struct ClassRows {
  idx warp, small, block;
  ClassRows(idx warp, idx small, idx block) : warp(warp), small(small), block(block) {}
  explicit ClassRows(const PlanParameters& p) : ClassRows(p.warp_rows, p.small_rows, p.block_rows) {}
  int operator()(idx R) const { return R <= warp ? 0 : R <= small ? 1 : R <= block ? 2 : 3; }
};

// Of a phase.
template <class Phases> const auto& of_phase(const Phases& phases, int phase) {
  return phase == 0 ? phases.warp : phase == 1 ? phases.small : phase == 2 ? phases.block : phases.large;
}

// The objective of merging, by class.
inline double merge_time(const MergePhases& phases, int kind, double W, double R) {
  const MergeCosts& costs = of_phase(phases, kind);
  const double H = R - W, work = (R * R * R - H * H * H) * (1.0 / 3);
  return costs.front + costs.pivot * W + work * costs.flop + (R * R + H * H) * costs.scalar;
}

// Fronts of a phase that a multiprocessor works on, as registers allow, and how much longer latencies are when that
// many are there.
constexpr int RESIDENT[PHASES] = {WARP_FRONTS * front_blocks(0, false, 8), front_blocks(1, false, 8),
                                  front_blocks(2, false, 8), 0};
constexpr double CONTENTION[PHASES] = {1.3, 1.2, 1.1, 1};

inline double pivot_time(const FrontCosts& costs, bool cholesky) {
  return cholesky ? costs.pivot_cholesky : costs.pivot;
}

// Time of the whole device that a front of phase 0-2 takes in a factorization and a solve when the device is full of
// fronts of its size.
class DeviceTimes {
 public:
  DeviceTimes(const PlanParameters& parameters, bool cholesky, bool one_triangle)
      : p_(parameters), cholesky_(cholesky), one_triangle_(one_triangle) {}

  double operator()(double W, double R) const {
    constexpr idx usual_small_rows = 72;  // which fronts are of class `small` is chosen when all are merged
    const int phase = R <= p_.warp_rows ? 0 : R <= usual_small_rows ? 1 : 2;
    const FrontCosts& costs = of_phase(p_.costs.front, phase);
    const double H = R - W, factor = one_triangle_ ? R * W : R * W + W * H;
    const double latency = costs.front + costs.batch + pivot_time(costs, cholesky_) * W + R * R * costs.scalar;
    const double scalars =
        3 * factor + 2 * H * H * (one_triangle_ ? 0.6 : 1);  // factor: written, read twice by a solve
    return CONTENTION[phase] * latency / (RESIDENT[phase] * p_.multiprocessors) +
           of_phase(p_.costs.way, phase).full / p_.multiprocessors + scalars * p_.scalar_bytes() * p_.costs.device.byte;
  }

 private:
  const PlanParameters& p_;
  bool cholesky_, one_triangle_;
};

// Items of a child with H rows below.
inline off items_of_child(idx H, bool one_triangle) {
  if (!one_triangle) return off(H) * ((H + ITEM_ENTRIES - 1) / ITEM_ENTRIES);
  // columns of 8 k + 1 .. 8 k + 8 entries have k + 1 items
  const idx whole = H / ITEM_ENTRIES, rest = H % ITEM_ENTRIES;
  return off(ITEM_ENTRIES) * whole * (whole + 1) / 2 + off(rest) * (whole + 1);
}
std::vector<off> count_items(const Plan& plan);  // of every front's children

// Predicted time of front f in this phase; `items` of its children.
double front_time(const Plan& plan, idx f, int phase, off items);

}  // namespace gs::gpu
