#include "plan/columns/glu_pipelines.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "plan/team.hpp"

namespace gs::gpu {

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

}  // namespace gs::gpu
