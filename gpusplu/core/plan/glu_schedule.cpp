#include "plan/glu_schedule.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "plan/glu_work.hpp"

namespace gs::gpu {
namespace {

class Writer {
 public:
  Writer(const ColumnPlan& plan, const GluWork& work, const std::vector<idx>& chain, GluSchedule& out)
      : plan_(plan), work_(work), chain_(chain), out_(out) {}

  void write_forest(const std::vector<idx>& phase_ptr) {
    const idx n_chains = phase_ptr.back();
    std::vector<idx> ptr((std::size_t)n_chains + 1), columns;
    for (idx j = 0; j < plan_.n; j++)
      if (chain_[j] >= 0) ptr[chain_[j] + 1]++;
    for (idx c = 0; c < n_chains; c++) ptr[c + 1] += ptr[c];
    columns.resize(ptr[n_chains]);
    std::vector<idx> next(ptr.begin(), ptr.end());
    for (idx j = 0; j < plan_.n; j++)
      if (chain_[j] >= 0) columns[next[chain_[j]]++] = j;
    for (std::size_t p = 0; p + 1 < phase_ptr.size(); p++) {
      const idx begin = (idx)out_.chains.size();
      begin_threads();
      for (idx c = phase_ptr[p]; c < phase_ptr[p + 1]; c++) {
        const idx first = (idx)out_.steps.size();
        for (idx q = ptr[c]; q < ptr[c + 1]; q++) list_step(columns[q]);
        out_.chains.push_back({first, (idx)out_.steps.size()});
      }
      if (begin < (idx)out_.chains.size())
        out_.runs.push_back({(int)GluMode::pipeline, -1, -1, begin, (idx)out_.chains.size(), threads()});
    }
  }

  void write_levels(const std::vector<int>& modes) {
    off total = 0;
    for (idx j = 0; j < plan_.n; j++)
      if (is_left(j) && modes[plan_.level[j]] != (int)GluMode::pipeline) total += work_.right[j];
    if (total > std::numeric_limits<std::int32_t>::max()) throw std::length_error("glu: more than 2147483647 updates");
    out_.tasks.resize(total);
    for (idx l = 0; l < (idx)modes.size(); l++) {
      out_.level_piece.push_back((idx)out_.pieces.size());
      if (modes[l] < 0) continue;
      const bool pipeline = modes[l] == (int)GluMode::pipeline;
      if (out_.runs.empty() || out_.runs.back().level_begin < 0 || out_.runs.back().mode != modes[l]) {
        const idx begin = (idx)(pipeline ? out_.chains.size() : out_.pieces.size());
        out_.runs.push_back({modes[l], l, l, begin, begin, 0});
        last_ = -1;
        begin_threads();
        if (pipeline) out_.chains.push_back({(idx)out_.steps.size(), (idx)out_.steps.size()});
      }
      GluRun& run = out_.runs.back();
      run.level_end = l + 1;
      if (pipeline) {
        for_columns(l, [&](idx j) { list_step(j); });
        out_.chains.back().end = (idx)out_.steps.size();
        run.end = (idx)out_.chains.size(), run.widest = threads();
      } else {
        const idx begin = next_, first_piece = (idx)out_.pieces.size();
        list_tasks(l);
        cut(begin, l, modes[l] == (int)GluMode::batch);
        run.end = (idx)out_.pieces.size();
        run.widest = std::max(run.widest, run.end - first_piece);
      }
    }
    out_.level_piece.push_back((idx)out_.pieces.size());
  }

 private:
  bool is_left(idx j) const { return chain_[j] < 0 && work_.updates(j); }

  template <class Visit> void for_columns(idx level, Visit&& visit) const {
    for (idx c = plan_.level_ptr[level]; c < plan_.level_ptr[level + 1]; c++)
      if (is_left(plan_.level_column[c])) visit(plan_.level_column[c]);
  }
  // Columns and places of row j of U, without the diagonal.
  template <class Visit> void for_uppers(idx j, Visit&& visit) const {
    for (off q = plan_.row_ptr[j + 1] - work_.right[j]; q < plan_.row_ptr[j + 1]; q++)
      visit(plan_.col[q], plan_.place[q]);
  }

  // The longest L first, so that neighbouring tasks take about as many threads.
  void list_tasks(idx level) {
    columns_.clear();
    for_columns(level, [&](idx j) { columns_.push_back(j); });
    std::stable_sort(columns_.begin(), columns_.end(), [&](idx a, idx b) { return work_.below[a] > work_.below[b]; });
    for (const idx j : columns_)
      for_uppers(j, [&](idx k, off upper) {
        const off offset = upper - plan_.col_ptr[k];
        const off map = plan_.has_maps ? plan_.map_ptr[plan_.u_ptr[k] + offset] : plan_.col_ptr[k + 1];
        out_.tasks[next_++] = {upper, plan_.diag[j], map, (idx)work_.below[j], (idx)offset};
      });
  }

  void cut(idx begin, idx level, bool waits) {
    const idx first_piece = (idx)out_.pieces.size();
    const idx wait_pieces = last_ < 0 ? 0 : first_piece - out_.level_piece[last_];
    const idx wait_level = waits ? last_ : -1;
    for (idx t = begin; t < next_;) {
      const int lanes_log2 = glu_lanes_log2(out_.tasks[t].count);
      const idx end = std::min(next_, t + (kGluThreads >> lanes_log2));
      out_.pieces.push_back({t, end, lanes_log2, level, wait_level, wait_pieces, {0, 0}});
      t = end;
    }
    last_ = level;
  }

  // Updates of columns and rows of the same chain first: nobody else touches those meanwhile, as whoever writes there
  // is below them in the tree. Without a chain nobody does at all.
  void list_step(idx j) {
    if (!work_.updates(j)) return;
    const auto begin = (std::int32_t)out_.updates.size();
    const auto list = [&](bool inside) {
      for_uppers(j, [&](idx k, off upper) { list_updates(j, k, upper, inside); });
      return (std::int32_t)out_.updates.size();
    };
    const std::int32_t middle = list(true), end = list(false);
    out_.steps.push_back({(std::int32_t)plan_.diag[j], begin, middle, end});
    n_steps_++, n_updates_ += end - begin;
  }

  void list_updates(idx j, idx k, off upper, bool inside) {
    const idx own = chain_[j];
    if (!inside && (own < 0 || chain_[k] == own)) return;
    off target = upper;  // rows of both columns ascend
    for (off lower = plan_.diag[j] + 1; lower < plan_.col_ptr[j + 1]; lower++) {
      do target++;
      while (plan_.row[target] != plan_.row[lower]);
      const bool is_inside = own < 0 || chain_[k] == own || chain_[plan_.row[lower]] == own;
      if (is_inside == inside)
        out_.updates.push_back({(std::int32_t)target, (std::int32_t)lower, (std::int32_t)upper, 0});
    }
  }

  // Threads of a block: as many as a step has updates, on average weighed towards the large ones.
  void begin_threads() { n_steps_ = n_updates_ = 0; }
  idx threads() const {
    const auto average = (unsigned)(2 * n_updates_ / std::max<off>(n_steps_, 1));
    return (idx)std::clamp(std::bit_ceil(average), 64u, 1024u);
  }

  const ColumnPlan& plan_;
  const GluWork& work_;
  const std::vector<idx>& chain_;
  GluSchedule& out_;
  std::vector<idx> columns_;
  off n_steps_ = 0, n_updates_ = 0;
  idx next_ = 0, last_ = -1;  // task to be written; last level with pieces in this run
};

}  // namespace

GluSchedule make_glu_schedule(const ColumnPlan& plan, int forced) {
  GluSchedule out;
  const GluWork work(plan);
  GluForest forest{std::vector<idx>(plan.n, -1), {0}, 0};
  if (forced < 0 || forced == (int)GluMode::pipeline) forest = choose_forest(plan, work, forced >= 0);
  std::vector<bool> left(plan.n);
  for (idx j = 0; j < plan.n; j++) left[j] = forest.chain[j] < 0;
  GluLevels levels = choose_levels(plan, work, left, plan.nnz() <= std::numeric_limits<idx>::max());
  if (forced >= 0)
    for (int& mode : levels.modes)
      if (mode >= 0) mode = forced;
  out.predicted_seconds = 1e-6 * (forest.microseconds + levels.microseconds);
  Writer writer(plan, work, forest.chain, out);
  writer.write_forest(forest.phase_ptr);
  writer.write_levels(levels.modes);
  return out;
}

}  // namespace gs::gpu
