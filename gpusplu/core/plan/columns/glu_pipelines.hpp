// Pipelines of the glu engine: chains of columns, their entries and updates stored flat (glu_schedule.hpp).
#pragma once
#include <vector>

#include "plan/columns/glu_work.hpp"

namespace gs::gpu {

class PipelineWriter {
 public:
  PipelineWriter(const ColumnPlan& plan, const GluWork& work, GluSchedule& out)
      : plan_(plan), work_(work), out_(out), owner_(plan.n, -1), slot_(plan.nnz()) {}

  // A block of the launch to come; columns in an order in which they can be processed.
  void add_chain(std::vector<idx> columns) { columns_.push_back(std::move(columns)); }
  // The launch of the chains since the last one, if there are any. Time: linear in their updates, shared by the
  // threads.
  void end_run(idx level_begin = -1, idx level_end = -1);

 private:
  struct Sizes {
    off steps = 0, places = 0, updates = 0;
  };
  Sizes number_chain(const std::vector<idx>& columns, idx chain);
  void fill_chain(const std::vector<idx>& columns, const GluChain& chain, off update);
  void fill_step(idx j, GluStep& step, off update);

  const ColumnPlan& plan_;
  const GluWork& work_;
  GluSchedule& out_;
  std::vector<idx> owner_;                 // chain of a column, -1: none yet
  RawVector<idx> slot_;                    // of an entry among those of the chain that owns it
  std::vector<std::vector<idx>> columns_;  // of the chains of the launch to come
};

}  // namespace gs::gpu
