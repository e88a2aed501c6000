// Times of columns, levels and subtrees of the glu engine, and their division among its modes (glu_schedule.hpp).
#pragma once
#include <vector>

#include "plan/columns/glu_schedule.hpp"

namespace gs::gpu {

struct GluWork {
  std::vector<off> below;      // entries of L(:, j)
  std::vector<off> right;      // entries of U(j, :)
  std::vector<double> column;  // in a pipeline [us]
  ScheduleCosts costs;
  GluWork(const ColumnPlan& plan, const ScheduleCosts& costs);
  off slots(idx j) const { return 1 + below[j] + right[j]; }
  bool updates(idx j) const { return below[j] > 0 && right[j] > 0; }
};

int glu_lanes_log2(off count);  // threads of a task: up to two entries each

// Subtrees that pipelines process before the levels.
struct GluForest {
  std::vector<idx> chain;      // of every column, in the order of the launches; -1: left to the levels
  std::vector<idx> phase_ptr;  // first chain of every phase
  double microseconds = 0;
};
// The remaining columns, level by level.
struct GluLevels {
  std::vector<int> modes;  // GluMode of a level; -1: no column of it is left
  double microseconds = 0;
};

GluLevels choose_levels(const ColumnPlan& plan, const GluWork& work, const std::vector<bool>& left, off capacity);
GluForest choose_forest(const ColumnPlan& plan, const GluWork& work, off capacity, bool all);

}  // namespace gs::gpu
