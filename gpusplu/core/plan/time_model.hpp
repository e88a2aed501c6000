// Times of fronts on the GPU, in microseconds. Constants of one H200, double precision, from the prototypes.
#pragma once
#include "base/types.hpp"
#include "plan/plan.hpp"

namespace gs::gpu {

struct FrontTimes {
  // What the merging minimizes. A third of the measured fixed costs gave the best measured times: merging by the full
  // ones adds more work than it saves.
  double fixed[kPhases] = {1.2, 2.0, 2.0, 8.0};
  double pivot[kPhases] = {0.10, 0.11, 0.11, 0.32};
  double multiply_adds[kPhases] = {2e3, 8e4, 8e4, 1.2e7};  // per microsecond
  double scalars[kPhases] = {0, 1.2e4, 1.2e4, 2e5};        // assembled and written back per microsecond; 0: not counted
};

// Time of one front on the critical path; `kind` is its class.
inline double front_time(const FrontTimes& t, int kind, double W, double R) {
  const double H = R - W, multiply_adds = (R * R * R - H * H * H) / 3;
  const double moved = t.scalars[kind] > 0 ? (R * R + H * H) / t.scalars[kind] : 0;
  return t.fixed[kind] + t.pivot[kind] * W + multiply_adds / t.multiply_adds[kind] + moved;
}

// Class of a front.
struct ClassRows {
  idx warp, small, block;
  explicit ClassRows(const PlanParameters& p) : warp(p.warp_rows), small(p.small_rows), block(p.block_rows) {}
  int operator()(idx R) const { return R <= warp ? 0 : R <= small ? 1 : R <= block ? 2 : 3; }
};

}  // namespace gs::gpu
