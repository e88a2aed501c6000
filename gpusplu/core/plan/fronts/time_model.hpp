// Modelled times on the GPU, in microseconds. Constants of one H200, double precision, fitted to 22 matrices;
// other devices differ in what is counted by multiprocessors.
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

// What the merging minimizes, by class. A third of the measured fixed costs gave the best measured times: merging by
// the full ones adds more work than it saves.
struct MergeTimes {
  double fixed[PHASES] = {1.2, 2.0, 2.0, 8.0};
  double few_large = 32;  // fixed[3] where large fronts are few
  double pivot[PHASES] = {0.10, 0.11, 0.11, 0.32};
  double multiply_add[PHASES] = {5e-4, 1.25e-5, 1.25e-5, 8e-8};
  double scalar[PHASES] = {0, 8e-5, 8e-5, 5e-6};  // assembled or written back

  double operator()(int kind, double W, double R) const {
    const double H = R - W, work = (R * R * R - H * H * H) * (1.0 / 3);
    return fixed[kind] + pivot[kind] * W + work * multiply_add[kind] + (R * R + H * H) * scalar[kind];
  }
};

// What a front takes once its children are done, by phase: alone on its multiprocessor (phases 0-2) or on the device
// (phase 3), and how that adds up when the device is full.
struct FrontTimes {
  double fixed[PHASES] = {3.0, 3.5, 4.0, 5.0};  // descriptor, entries of A, publishing
  double batch[PHASES] = {0.7, 1.0, 1.0, 0};    // of item_batch() items of every group
  double pivot[2][PHASES] = {{0.02, 0.16, 0.16, 0.32}, {0.02, 0.16, 0.16, 0.21}};  // LU, Cholesky
  double scalars[PHASES] = {0, 4.5e3, 5.5e3, 3e5};                                 // of a front written per microsecond
  double flops[PHASES] = {1e3, 1e5, 1.5e5, 0};  // per microsecond, for what pivots do not hide; 3: the device's

  // Fronts on a multiprocessor, as registers allow.
  int beside[PHASES] = {WARP_FRONTS * front_blocks(0, false, 8), front_blocks(1, false, 8), front_blocks(2, false, 8),
                        0};
  double between[PHASES] = {0, 0, 2, 0};               // from the end of one to the begin of the next
  double crowding[PHASES] = {1.3, 1.2, 1.1, 1};        // of latencies, when that many are there
  double device_flops = 2.5e7, multiprocessors = 132;  // per microsecond, of so many
  double slow_flops = 6e3;                             // of a multiprocessor with little double precision
  double device_bytes = 3e6;                           // per microsecond
  double host_bytes = 5.5e4;                           // the same from or to page-locked memory of the host
  double launch[PHASES] = {3, 5, 6, 6};                // boundary of phases that do not overlap

  // One way of a solve: of a front on the path, of a pivot there, of a front when the device is full, of the call.
  double solve_fixed[PHASES] = {2.0, 2.5, 2.5, 6.0};
  double solve_pivot[PHASES] = {0, 0.04, 0.04, 0.03};
  double solve_front[PHASES] = {2e-3, 5e-3, 10e-3, 0};
  double solve_launch = 6;
};

// Time of the whole device that a front of phase 0-2 takes in a factorization and a solve when the device is full of
// fronts of its size.
class DeviceTimes {
 public:
  DeviceTimes(const PlanParameters& parameters, bool cholesky) : p_(parameters), cholesky_(cholesky) {}

  double operator()(double W, double R) const {
    const int phase = R <= p_.warp_rows ? 0 : R <= 72 ? 1 : 2;
    const double H = R - W, factor = cholesky_ ? R * W : R * W + W * H;
    const double latency = times_.fixed[phase] + times_.batch[phase] + times_.pivot[cholesky_][phase] * W +
                           (phase ? R * R / times_.scalars[phase] : 0);
    const double solve = times_.solve_front[phase] * times_.multiprocessors / p_.multiprocessors;
    const double scalars = 3 * factor + 2 * H * H * (cholesky_ ? 0.6 : 1);  // factor: written, read twice by a solve
    return times_.crowding[phase] * latency / (times_.beside[phase] * p_.multiprocessors) + solve +
           scalars * p_.scalar_bytes() / times_.device_bytes;
  }

 private:
  const PlanParameters& p_;
  bool cholesky_;
  FrontTimes times_;
};

// Items of a child with H rows below.
inline off items_of_child(idx H, bool cholesky) {
  if (!cholesky) return off(H) * ((H + ITEM_ENTRIES - 1) / ITEM_ENTRIES);
  // columns of 8 k + 1 .. 8 k + 8 entries have k + 1 items
  const idx whole = H / ITEM_ENTRIES, rest = H % ITEM_ENTRIES;
  return off(ITEM_ENTRIES) * whole * (whole + 1) / 2 + off(rest) * (whole + 1);
}
std::vector<off> count_items(const Plan& plan);  // of every front's children

// Predicted time of front f in this phase; `items` of its children.
double front_time(const Plan& plan, idx f, int phase, off items);

}  // namespace gs::gpu
