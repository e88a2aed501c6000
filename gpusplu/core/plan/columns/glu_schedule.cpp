#include "plan/columns/glu_schedule.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "plan/columns/glu_pipelines.hpp"

namespace gs::gpu {
namespace {

class LevelWriter {
 public:
  LevelWriter(const ColumnPlan& plan, const GluWork& work, const std::vector<idx>& chain, off capacity,
              PipelineWriter& pipelines, GluSchedule& out)
      : plan_(plan), work_(work), chain_(chain), capacity_(capacity), pipelines_(pipelines), out_(out) {}

  void write(const std::vector<int>& modes) {
    off total = 0;
    for (idx j = 0; j < plan_.n; j++)
      if (is_left(j) && modes[plan_.level[j]] != (int)GluMode::pipeline) total += work_.right[j];
    if (total > std::numeric_limits<std::int32_t>::max()) throw std::length_error("glu: more than 2147483647 updates");
    out_.tasks.resize(total);
    for (idx l = 0; l < (idx)modes.size(); l++) {
      out_.level_chunk.push_back((idx)out_.chunks.size());
      if (modes[l] == (int)GluMode::pipeline) {
        take_level(l);
        continue;
      }
      if (modes[l] < 0) continue;
      end_pipeline(l);
      list_chunks(l, modes[l]);
    }
    end_pipeline((idx)modes.size());
    out_.level_chunk.push_back((idx)out_.chunks.size());
  }

 private:
  bool is_left(idx j) const { return chain_[j] < 0 && work_.updates(j); }

  // One more level for the pipeline to come; a new one where it would not fit into shared memory.
  void take_level(idx level) {
    const auto begin = plan_.level_column.begin() + plan_.level_ptr[level],
               end = plan_.level_column.begin() + plan_.level_ptr[level + 1];
    off slots = 0;
    for (auto c = begin; c < end; c++)
      if (chain_[*c] < 0) slots += work_.slots(*c);
    if (slots_ + slots > capacity_) end_pipeline(level);
    if (pipeline_.empty()) pipeline_begin_ = level;
    for (auto c = begin; c < end; c++)
      if (chain_[*c] < 0) pipeline_.push_back(*c);
    slots_ += slots;
  }
  void end_pipeline(idx level) {
    if (pipeline_.empty()) return;
    pipelines_.add_chain(pipeline_);
    pipelines_.end_run(pipeline_begin_, level);
    pipeline_.clear(), slots_ = 0;
  }

  void list_chunks(idx level, int mode) {
    const auto begin = (std::int32_t)out_.chunks.size();
    if (out_.runs.empty() || out_.runs.back().mode != mode) {
      out_.runs.push_back({mode, level, level, begin, begin, 0, 0});
      last_ = -1;
    }
    const idx first_task = next_;
    list_tasks(level);
    cut(first_task, level, mode == (int)GluMode::batch);
    GluRun& run = out_.runs.back();
    run.level_end = level + 1, run.end = (std::int32_t)out_.chunks.size();
    run.widest = std::max(run.widest, run.end - begin);
  }

  // The longest L first, so that neighbouring tasks take about as many threads.
  void list_tasks(idx level) {
    columns_.clear();
    for (idx c = plan_.level_ptr[level]; c < plan_.level_ptr[level + 1]; c++)
      if (is_left(plan_.level_column[c])) columns_.push_back(plan_.level_column[c]);
    std::stable_sort(columns_.begin(), columns_.end(), [&](idx a, idx b) { return work_.below[a] > work_.below[b]; });
    for (const idx j : columns_)
      for (off q = plan_.row_ptr[j + 1] - work_.right[j]; q < plan_.row_ptr[j + 1]; q++) {
        const idx k = plan_.col[q];
        const off upper = plan_.place[q], offset = upper - plan_.col_ptr[k];
        const off map = plan_.has_maps ? plan_.map_ptr[plan_.u_ptr[k] + offset] : plan_.col_ptr[k + 1];
        out_.tasks[next_++] = {upper, plan_.diag[j], map, (idx)work_.below[j], (idx)offset};
      }
  }

  void cut(idx begin, idx level, bool waits) {
    const idx first_chunk = (idx)out_.chunks.size();
    const idx wait_chunks = last_ < 0 ? 0 : first_chunk - out_.level_chunk[last_];
    const idx wait_level = waits ? last_ : -1;
    for (idx t = begin; t < next_;) {
      const int lanes_log2 = glu_lanes_log2(out_.tasks[t].count);
      const idx end = std::min(next_, t + (GLU_THREADS >> lanes_log2));
      out_.chunks.push_back({t, end, lanes_log2, level, wait_level, wait_chunks, {0, 0}});
      t = end;
    }
    last_ = level;
  }

  const ColumnPlan& plan_;
  const GluWork& work_;
  const std::vector<idx>& chain_;  // of the forest
  off capacity_;
  PipelineWriter& pipelines_;
  GluSchedule& out_;
  std::vector<idx> columns_, pipeline_;
  off slots_ = 0;             // of the pipeline to come
  idx pipeline_begin_ = 0;    // its first level
  idx next_ = 0, last_ = -1;  // task to be written; last level with chunks in this run
};

void write_forest(const GluForest& forest, PipelineWriter& pipelines) {
  std::vector<std::vector<idx>> columns(forest.phase_ptr.back());
  for (std::size_t j = 0; j < forest.chain.size(); j++)
    if (forest.chain[j] >= 0) columns[forest.chain[j]].push_back((idx)j);
  for (std::size_t p = 0; p + 1 < forest.phase_ptr.size(); p++) {
    for (idx c = forest.phase_ptr[p]; c < forest.phase_ptr[p + 1]; c++) pipelines.add_chain(std::move(columns[c]));
    pipelines.end_run();
  }
}

}  // namespace

GluSchedule make_glu_schedule(const ColumnPlan& plan, const GluParameters& parameters) {
  GluSchedule out;
  const GluWork work(plan, parameters.costs);
  const bool may_pipeline = plan.nnz() <= std::numeric_limits<idx>::max();  // places of updates are 32 bits wide
  const off capacity = may_pipeline ? std::min<off>(parameters.capacity, 65536) : 0;
  GluForest forest{std::vector<idx>(plan.n, -1), {0}, 0};
  if (parameters.forced < 0 || parameters.forced == (int)GluMode::pipeline)
    forest = choose_forest(plan, work, capacity, parameters.forced >= 0);
  std::vector<bool> left(plan.n);
  for (idx j = 0; j < plan.n; j++) left[j] = forest.chain[j] < 0;
  GluLevels levels = choose_levels(plan, work, left, capacity);
  if (parameters.forced >= 0 && parameters.forced != (int)GluMode::pipeline)
    for (int& mode : levels.modes)
      if (mode >= 0) mode = parameters.forced;
  out.predicted_seconds = 1e-6 * (forest.microseconds + levels.microseconds);
  PipelineWriter pipelines(plan, work, out);
  write_forest(forest, pipelines);
  LevelWriter(plan, work, forest.chain, capacity, pipelines, out).write(levels.modes);
  return out;
}

}  // namespace gs::gpu
