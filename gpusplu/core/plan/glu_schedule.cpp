#include "plan/glu_schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>

namespace gs::gpu {
namespace {

constexpr int kModes = 4;

struct LevelWork {
  off tasks = 0;
  double pieces = 0;   // of a block
  idx chain = 0;       // most updates of one column
  idx columns = 0;     // that update others
  double updates = 0;  // multiply-adds
};

// U's part of row j that column j updates: places in row order.
struct Row {
  const off *first, *last;
  const idx* column;
};
Row row_right_of(const ColumnPlan& plan, idx j) {
  const off *begin = plan.place.data() + plan.row_ptr[j], *end = plan.place.data() + plan.row_ptr[j + 1];
  const off* first = std::upper_bound(begin, end, plan.diag[j]);
  return {first, end, plan.col.data() + (first - plan.place.data())};
}
off below(const ColumnPlan& plan, idx j) { return plan.col_ptr[j + 1] - plan.diag[j] - 1; }

int lanes_log2_for(off count) {  // up to two entries a thread
  const int log2 = std::bit_width((unsigned)((count + 1) / 2 - (count > 0)));
  return std::min(log2, 8);
}

std::vector<LevelWork> measure(const ColumnPlan& plan) {
  std::vector<LevelWork> work(plan.n_levels());
  std::vector<idx> seen(plan.n, -1), times(plan.n);
  for (idx l = 0; l < plan.n_levels(); l++)
    for (idx c = plan.level_ptr[l]; c < plan.level_ptr[l + 1]; c++) {
      const idx j = plan.level_column[c];
      const off count = below(plan, j);
      if (!count) continue;
      const Row row = row_right_of(plan, j);
      const off width = row.last - row.first;
      work[l].tasks += width;
      work[l].columns += width > 0;
      work[l].updates += (double)width * (double)count;
      work[l].pieces += (double)width / (double)(kGluThreads >> lanes_log2_for(count));
      for (off t = 0; t < width; t++) {
        const idx k = row.column[t];
        if (seen[k] != l) seen[k] = l, times[k] = 0;
        work[l].chain = std::max(work[l].chain, ++times[k]);
      }
    }
  return work;
}

// Microseconds of a level on an H200 in each mode, measured in double precision, and of a launch. A level costs a hop
// between blocks or, as a node of a graph, a little more; a piece its part of a multiprocessor, in batch mode also of
// the counter that tickets come from; updates of one column in a pipeline follow each other.
constexpr double kLaunch = 2.0;
std::array<double, kModes> level_cost(const LevelWork& work) {
  constexpr double cluster_piece = 0.0034, batch_piece = 0.0057, pipeline_task = 0.006, hop = 1.4;
  constexpr double column = 0.25, updates = 3000;
  return {kLaunch + work.pieces * cluster_piece, 1.5 + work.pieces * batch_piece,
          1.2 + hop * (work.chain - 1) + (double)work.tasks * pipeline_task,
          work.columns * column + work.updates / updates};
}

// The cheapest sequence of modes over the levels that have tasks: dynamic programming over (level, mode).
std::vector<int> choose_modes(const std::vector<LevelWork>& work, off nnz, double& seconds) {
  const std::size_t n = work.size();
  std::vector<std::array<signed char, kModes>> from(n);
  std::array<double, kModes> best{};
  for (std::size_t l = 0; l < n; l++) {
    const int cheapest = (int)(std::min_element(best.begin(), best.end()) - best.begin());
    const std::array<double, kModes> before = best;
    std::array<double, kModes> own{};
    if (work[l].tasks) own = level_cost(work[l]);
    if (nnz > std::numeric_limits<std::int32_t>::max()) own[(int)GluMode::chain] = 1e30;
    for (int m = 0; m < kModes; m++) {
      const double changed = before[cheapest] + (m == (int)GluMode::cluster || l == 0 ? 0 : kLaunch);
      from[l][m] = (signed char)(before[m] <= changed ? m : cheapest);
      best[m] = std::min(before[m], changed) + own[m];
    }
  }
  std::vector<int> modes(n);
  int mode = (int)(std::min_element(best.begin(), best.end()) - best.begin());
  seconds = 1e-6 * best[mode];
  for (std::size_t l = n; l-- > 0; mode = from[l][mode]) modes[l] = mode;
  return modes;
}

class Writer {
 public:
  Writer(const ColumnPlan& plan, GluSchedule& out) : plan_(plan), out_(out), applied_(plan.n) {}

  void write(const std::vector<LevelWork>& work, const std::vector<int>& modes) {
    off total = 0;
    double flat = 0;
    for (std::size_t l = 0; l < work.size(); l++)
      if (modes[l] == (int)GluMode::chain) flat += work[l].updates;
      else total += work[l].tasks;
    if (total > std::numeric_limits<std::int32_t>::max()) throw std::length_error("glu: more than 2147483647 updates");
    out_.tasks.resize(total);
    out_.updates.reserve((std::size_t)flat);
    for (idx l = 0; l < (idx)work.size(); l++) {
      out_.level_piece.push_back((idx)out_.pieces.size());
      if (!work[l].tasks) continue;
      const bool starts = out_.runs.empty() || out_.runs.back().mode != modes[l];
      if (starts) out_.runs.push_back({modes[l], l, l, position(modes[l]), position(modes[l]), 0}), last_ = -1;
      const idx before = position(modes[l]);
      if (modes[l] == (int)GluMode::chain) {
        list_steps(l);
      } else {
        const idx begin = next_;
        list_tasks(l, modes[l] == (int)GluMode::pipeline);
        if (modes[l] != (int)GluMode::pipeline) cut(begin, l, modes[l] == (int)GluMode::batch);
      }
      GluRun& run = out_.runs.back();
      run.level_end = l + 1, run.end = position(modes[l]);
      run.widest = std::max(run.widest, run.end - before);
    }
    out_.level_piece.push_back((idx)out_.pieces.size());
  }

 private:
  std::int32_t position(int mode) const {
    if (mode == (int)GluMode::chain) return (std::int32_t)out_.steps.size();
    return mode == (int)GluMode::pipeline ? next_ : (std::int32_t)out_.pieces.size();
  }

  void list_tasks(idx level, bool pipeline) {
    const idx begin = next_;
    columns_.assign(plan_.level_column.begin() + plan_.level_ptr[level],
                    plan_.level_column.begin() + plan_.level_ptr[level + 1]);
    std::stable_sort(columns_.begin(), columns_.end(), [&](idx a, idx b) { return below(plan_, a) > below(plan_, b); });
    for (const idx j : columns_) {
      const off count = below(plan_, j);
      if (!count) break;
      const Row row = row_right_of(plan_, j);
      for (off t = 0; t < row.last - row.first; t++) {
        const idx k = row.column[t];
        const off upper = row.first[t], offset = upper - plan_.col_ptr[k];
        const off map = plan_.has_maps ? plan_.map_ptr[plan_.u_ptr[k] + offset] : plan_.col_ptr[k + 1];
        out_.tasks[next_++] = {upper, plan_.diag[j], map, (idx)count, k, j, 0, 0, (idx)offset};
      }
    }
    if (!pipeline) return;
    std::stable_sort(out_.tasks.begin() + begin, out_.tasks.begin() + next_,
                     [&](const GluTask& a, const GluTask& b) { return plan_.level[a.column] < plan_.level[b.column]; });
    for (idx t = begin; t < next_; t++) {
      GluTask& task = out_.tasks[t];
      task.before = applied_[task.column]++, task.needed = applied_[task.source];
    }
  }

  void list_steps(idx level) {
    for (idx c = plan_.level_ptr[level]; c < plan_.level_ptr[level + 1]; c++) {
      const idx j = plan_.level_column[c];
      const Row row = row_right_of(plan_, j);
      if (!below(plan_, j) || row.first == row.last) continue;
      const auto begin = (std::int32_t)out_.updates.size();
      for (const off* upper = row.first; upper < row.last; upper++) {
        off target = *upper;  // both columns ascend
        for (off lower = plan_.diag[j] + 1; lower < plan_.col_ptr[j + 1]; lower++) {
          do target++;
          while (plan_.row[target] != plan_.row[lower]);
          out_.updates.push_back({(std::int32_t)target, (std::int32_t)lower, (std::int32_t)*upper, 0});
        }
      }
      out_.steps.push_back({(std::int32_t)plan_.diag[j], begin, (std::int32_t)out_.updates.size(), 0});
    }
  }

  // Tasks of about equal length, as many as a block's threads take at a time.
  void cut(idx begin, idx level, bool waits) {
    const idx first_piece = (idx)out_.pieces.size();
    const idx wait_pieces = last_ < 0 ? 0 : first_piece - out_.level_piece[last_];
    const idx wait_level = waits ? last_ : -1;
    for (idx t = begin; t < next_;) {
      const int lanes_log2 = lanes_log2_for(out_.tasks[t].count);
      const idx end = std::min(next_, t + (kGluThreads >> lanes_log2));
      out_.pieces.push_back({t, end, lanes_log2, level, wait_level, wait_pieces, {0, 0}});
      t = end;
    }
    last_ = level;
  }

  const ColumnPlan& plan_;
  GluSchedule& out_;
  std::vector<idx> applied_;  // updates by pipelines, by column
  std::vector<idx> columns_;  // of a level, longest L first
  idx next_ = 0, last_ = -1;  // task to be written; last level with pieces in this run
};

}  // namespace

GluSchedule make_glu_schedule(const ColumnPlan& plan, int forced) {
  GluSchedule out;
  const std::vector<LevelWork> work = measure(plan);
  std::vector<int> modes = choose_modes(work, plan.nnz(), out.predicted_seconds);
  if (forced >= 0) std::fill(modes.begin(), modes.end(), forced);
  Writer(plan, out).write(work, modes);
  return out;
}

}  // namespace gs::gpu
