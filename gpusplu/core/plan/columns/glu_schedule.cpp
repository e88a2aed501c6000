#include "plan/columns/glu_schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/elimination_tree.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

// Times of columns, levels and subtrees.
struct GluWork {
  std::vector<off> below;      // entries of L(:, j)
  std::vector<off> right;      // entries of U(j, :)
  std::vector<double> column;  // in a pipeline [us]
  ScheduleCosts costs;
  GluWork(const ColumnPlan& plan, const ScheduleCosts& costs_)
      : below(plan.n), right(plan.n), column(plan.n), costs(costs_) {
    for (idx j = 0; j < plan.n; j++) {
      below[j] = plan.col_ptr[j + 1] - plan.diag[j] - 1;
      const idx *begin = plan.col.data() + plan.row_ptr[j], *end = plan.col.data() + plan.row_ptr[j + 1];
      right[j] = end - std::upper_bound(begin, end, j);
      column[j] = updates(j) ? costs.column + costs.update * (double)below[j] * (double)right[j] : 0;
    }
  }
  off slots(idx j) const { return 1 + below[j] + right[j]; }
  bool updates(idx j) const { return below[j] > 0 && right[j] > 0; }
};

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

// The cheapest sequence of modes over the levels: dynamic programming over (level, mode).

constexpr int kMostLanesLog2 = std::bit_width((unsigned)GLU_THREADS) - 1;

// Of the threads of a task: up to two entries each.
int glu_lanes_log2(off count) {
  return std::min((int)std::bit_width((unsigned)((count + 1) / 2 - (count > 0))), kMostLanesLog2);
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

// Subtrees for pipelines: phases by dynamic programming over bounds of the time that a subtree takes.

constexpr double kMostUpdates = 2e7;  // stored flat, 16 bytes each
constexpr double kPipelines = 1000;   // that run at a time

// The elimination tree of the pattern of L + U and its transpose: every column that updates a column, or writes what it
// reads, is below it.
std::vector<idx> elimination_tree_of(const ColumnPlan& plan) {
  GrowingTree tree(plan.n);
  for (idx k = 0; k < plan.n; k++) {
    for (off p = plan.col_ptr[k]; p < plan.diag[k]; p++) tree.add_entry(k, plan.row[p]);
    for (off p = plan.row_ptr[k]; plan.col[p] < k; p++) tree.add_entry(k, plan.col[p]);
  }
  return std::move(tree.parent);
}

struct Tree {
  const GluWork& work;
  std::vector<idx> parent;
  std::vector<double> subtree;  // time of all columns of a subtree one after another
  std::vector<double> updates;  // and their multiply-adds

  Tree(const ColumnPlan& plan, const GluWork& work_)
      : work(work_), parent(elimination_tree_of(plan)), subtree(work.column), updates(plan.n) {
    for (idx j = 0; j < plan.n; j++) {
      updates[j] += (double)work.below[j] * (double)work.right[j];
      if (parent[j] < 0) continue;
      subtree[parent[j]] += subtree[j];
      updates[parent[j]] += updates[j];
    }
  }
  idx n() const { return (idx)parent.size(); }
  // The root of the largest subtree within `bound` that a column is in, -1: of none.
  std::vector<idx> roots(double bound) const {
    std::vector<idx> root(n(), -1);
    for (idx j = n() - 1; j >= 0; j--)
      if (subtree[j] <= bound) root[j] = parent[j] >= 0 && root[parent[j]] >= 0 ? root[parent[j]] : j;
    return root;
  }
  double updates_within(double bound) const {
    double sum = 0;
    for (idx j = 0; j < n(); j++)
      if (subtree[j] <= bound && (parent[j] < 0 || subtree[parent[j]] > bound)) sum += updates[j];
    return sum;
  }
  // Of a phase: subtrees within `bound` without those within `done`, a block each. Infinite if one needs more slots
  // than there are.
  double phase(double done, double bound, const std::vector<idx>& root, off capacity,
               std::vector<double>& times) const {
    times.assign(n(), 0);
    std::vector<off> slots(n());
    double longest = 0, sum = 0;
    off most = 0;
    for (idx j = 0; j < n(); j++)
      if (subtree[j] > done && subtree[j] <= bound) {
        sum += work.column[j];
        longest = std::max(longest, times[root[j]] += work.column[j]);
        most = std::max(most, slots[root[j]] += work.slots(j));
      }
    return most > capacity ? std::numeric_limits<double>::infinity() : work.costs.pipeline + longest + sum / kPipelines;
  }
};

// Bounds worth considering: from a few columns up to the whole, each some times the one before.
std::vector<double> bounds_of(const Tree& tree) {
  constexpr double least = 2, factor = 1.7;
  const double all = tree.n() ? *std::max_element(tree.subtree.begin(), tree.subtree.end()) : 0;
  std::vector<double> bounds = {0};
  for (double bound = least; bound < all; bound *= factor) bounds.push_back(bound);
  bounds.push_back(all);
  while (bounds.size() > 1 && tree.updates_within(bounds.back()) > kMostUpdates) bounds.pop_back();
  return bounds;
}

// Numbers the chains of the phases with these bounds, the longest of a phase first.
void number_chains(const Tree& tree, const std::vector<double>& bounds, GluForest& out) {
  std::vector<double> times;
  for (std::size_t p = 1; p < bounds.size(); p++) {
    const std::vector<idx> root = tree.roots(bounds[p]);
    tree.phase(bounds[p - 1], bounds[p], root, 0, times);
    std::vector<idx> found;
    for (idx j = 0; j < tree.n(); j++)
      if (times[j] > 0) found.push_back(j);
    std::stable_sort(found.begin(), found.end(), [&](idx a, idx b) { return times[a] > times[b]; });
    std::vector<idx> number(tree.n(), -1);
    for (std::size_t c = 0; c < found.size(); c++) number[found[c]] = out.phase_ptr.back() + (idx)c;
    for (idx j = 0; j < tree.n(); j++)
      if (tree.subtree[j] > bounds[p - 1] && tree.subtree[j] <= bounds[p]) out.chain[j] = number[root[j]];
    out.phase_ptr.push_back(out.phase_ptr.back() + (idx)found.size());
  }
}

GluForest choose_forest(const ColumnPlan& plan, const GluWork& work, off capacity, bool all) {
  GluForest out{std::vector<idx>(plan.n, -1), {0}, 0};
  if (capacity == 0) return out;
  const Tree tree(plan, work);
  const std::vector<double> bounds = bounds_of(tree);
  const std::size_t m = bounds.size();
  std::vector<double> best(m, std::numeric_limits<double>::infinity()), times;
  std::vector<std::size_t> from(m, 0);
  best[0] = 0;
  std::size_t chosen = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < m; i++) {
    const std::vector<idx> root = tree.roots(bounds[i]);
    for (std::size_t a = 0; a < i; a++) {
      const double time = best[a] + tree.phase(bounds[a], bounds[i], root, capacity, times);
      if (time < best[i]) best[i] = time, from[i] = a;
    }
    std::vector<bool> left(plan.n);
    for (idx j = 0; j < plan.n; j++) left[j] = tree.subtree[j] > bounds[i];
    const double total = best[i] + (all ? 0 : choose_levels(plan, work, left, capacity).microseconds);
    if (std::isfinite(best[i]) && (total < least || all)) least = total, chosen = i;
  }
  std::vector<double> path;
  for (std::size_t i = chosen; i > 0; i = from[i]) path.push_back(bounds[i]);
  path.push_back(0);
  number_chains(tree, {path.rbegin(), path.rend()}, out);
  out.microseconds = best[chosen];
  return out;
}

// Chains of columns, their entries and updates stored flat.
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

// Entry (i, k) belongs to column min(i, k), and so to the chain of that column, if there is one: every column that
// updates it is below that column in the tree, so in the same chain or in an earlier launch.
PipelineWriter::Sizes PipelineWriter::number_chain(const std::vector<idx>& columns, idx chain) {
  Sizes sizes;
  for (const idx j : columns) {
    owner_[j] = chain;
    sizes.places += work_.slots(j);
    if (!work_.updates(j)) continue;
    sizes.steps++;
    sizes.updates += work_.below[j] * work_.right[j];
  }
  return sizes;
}

void PipelineWriter::end_run(idx level_begin, idx level_end) {
  if (columns_.empty()) return;
  const auto first = (idx)out_.chains.size(), count = (idx)columns_.size();
  std::vector<off> update((std::size_t)count + 1, (off)out_.updates.size());
  Sizes total = {(off)out_.steps.size(), (off)out_.places.size(), (off)out_.updates.size()};
  off slots = 0;
  for (idx c = 0; c < count; c++) {
    const Sizes sizes = number_chain(columns_[c], first + c);
    out_.chains.push_back({(std::int32_t)total.steps, (std::int32_t)(total.steps + sizes.steps),
                           (std::int32_t)total.places, (std::int32_t)(total.places + sizes.places)});
    total.steps += sizes.steps, total.places += sizes.places, total.updates += sizes.updates;
    update[c + 1] = total.updates, slots = std::max(slots, sizes.places);
  }
  if (std::max(total.updates, total.places) > std::numeric_limits<std::int32_t>::max())
    throw std::length_error("glu: more than 2147483647 updates in pipelines");
  // As many threads as a step has updates, on average weighed towards the large ones.
  const off average = 2 * (total.updates - update[0]) / std::max<off>(total.steps - (off)out_.steps.size(), 1);
  const auto threads = (std::int32_t)std::clamp<unsigned>(std::bit_ceil((unsigned)average), LEAST_PIPELINE_THREADS,
                                                          MOST_PIPELINE_THREADS);
  out_.runs.push_back(
      {(int)GluMode::pipeline, level_begin, level_end, first, first + count, threads, (std::int32_t)slots});
  out_.steps.resize(total.steps), out_.places.resize(total.places), out_.updates.resize(total.updates);
  const idx together = std::max<idx>(1, count / 256);  // chains of a task
  const int workers = threads_for((total.updates - update[0]) / 4);
  over_tasks(workers, (count + together - 1) / together, [&](idx task) {
    for (idx c = task * together; c < std::min(count, (task + 1) * together); c++)
      fill_chain(columns_[c], out_.chains[first + c], update[c]);
  });
  columns_.clear();
}

// Slots: of every column the pivot, its column of L, its row of U.
void PipelineWriter::fill_chain(const std::vector<idx>& columns, const GluChain& chain, off update) {
  idx slot = 0;
  const auto add = [&](off place) {
    out_.places[chain.places_begin + slot] = (std::int32_t)place;
    slot_[place] = slot++;
  };
  for (const idx j : columns) {
    for (off p = plan_.diag[j]; p < plan_.col_ptr[j + 1]; p++) add(p);
    for (off q = plan_.row_ptr[j + 1] - work_.right[j]; q < plan_.row_ptr[j + 1]; q++) add(plan_.place[q]);
  }
  off step = chain.begin;
  for (const idx j : columns)
    if (work_.updates(j)) {
      fill_step(j, out_.steps[step++], update);
      update += work_.below[j] * work_.right[j];
    }
}

// Updates of the chain's entries go from the beginning on, all others from the end.
void PipelineWriter::fill_step(idx j, GluStep& step, off update) {
  const off end = update + work_.below[j] * work_.right[j];
  off front = update, back = end;
  for (off q = plan_.row_ptr[j + 1] - work_.right[j]; q < plan_.row_ptr[j + 1]; q++) {
    const idx k = plan_.col[q];
    const auto upper = (std::uint16_t)slot_[plan_.place[q]];
    off target = plan_.place[q];  // rows of both columns ascend
    for (off lower = plan_.diag[j] + 1; lower < plan_.col_ptr[j + 1]; lower++) {
      const idx i = plan_.row[lower];
      do target++;
      while (plan_.row[target] != i);
      const bool own = owner_[std::min(i, k)] == owner_[j];
      out_.updates[own ? front++ : --back] = {(std::uint16_t)slot_[lower], upper,
                                              own ? slot_[target] : (std::int32_t)target};
    }
  }
  step = {slot_[plan_.diag[j]], (std::int32_t)update, (std::int32_t)front, (std::int32_t)end};
}

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
