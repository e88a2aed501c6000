// Pipelines of the glu engine: chains of columns, their entries and updates laid out flat (glu_schedule.hpp).
#pragma once
#include <vector>

#include "plan/glu_work.hpp"

namespace gs::gpu {

class PipelineWriter {
 public:
  PipelineWriter(const ColumnPlan& plan, const GluWork& work, GluSchedule& out)
      : plan_(plan), work_(work), out_(out), owner_(plan.n, -1), slot_(plan.nnz()) {}

  // A block of the launch to come; columns in an order in which they can be worked off.
  void add_chain(const std::vector<idx>& columns);
  // The launch of the chains since the last one, if there are any.
  void end_run(idx level_begin = -1, idx level_end = -1);

 private:
  void list_places(const std::vector<idx>& columns);
  void list_step(idx j);
  template <class Visit> void for_updates(idx j, Visit&& visit) const;

  const ColumnPlan& plan_;
  const GluWork& work_;
  GluSchedule& out_;
  std::vector<idx> owner_;  // chain of a column, -1: none yet
  RawVector<idx> slot_;     // of an entry among those of the chain that owns it
  idx first_ = 0;           // chain of the run
  idx slots_ = 0;           // most of a chain of the run
  off n_steps_ = 0, n_updates_ = 0;
};

}  // namespace gs::gpu
