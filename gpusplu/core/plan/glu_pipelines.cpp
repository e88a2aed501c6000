#include "plan/glu_pipelines.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace gs::gpu {

// Entry (i, k) belongs to column min(i, k), and so to its chain, if that has one: whoever updates it is below that
// column in the tree, so in the same chain or in an earlier launch.
void PipelineWriter::add_chain(const std::vector<idx>& columns) {
  const auto steps = (std::int32_t)out_.steps.size(), places = (std::int32_t)out_.places.size();
  for (const idx j : columns) owner_[j] = (idx)out_.chains.size();
  list_places(columns);
  for (const idx j : columns)
    if (work_.updates(j)) list_step(j);
  out_.chains.push_back({steps, (std::int32_t)out_.steps.size(), places, (std::int32_t)out_.places.size()});
  slots_ = std::max(slots_, (idx)out_.places.size() - places);
}

// Of every column the pivot, its column of L, its row of U.
void PipelineWriter::list_places(const std::vector<idx>& columns) {
  idx slot = 0;
  const auto add = [&](off place) { slot_[place] = slot++, out_.places.push_back((std::int32_t)place); };
  for (const idx j : columns) {
    for (off p = plan_.diag[j]; p < plan_.col_ptr[j + 1]; p++) add(p);
    for (off q = plan_.row_ptr[j + 1] - work_.right[j]; q < plan_.row_ptr[j + 1]; q++) add(plan_.place[q]);
  }
}

// visit(place of (i, k), of L(i, j), of U(j, k), whether it belongs to the chain of j)
template <class Visit> void PipelineWriter::for_updates(idx j, Visit&& visit) const {
  for (off q = plan_.row_ptr[j + 1] - work_.right[j]; q < plan_.row_ptr[j + 1]; q++) {
    const idx k = plan_.col[q];
    off target = plan_.place[q];  // rows of both columns ascend
    for (off lower = plan_.diag[j] + 1; lower < plan_.col_ptr[j + 1]; lower++) {
      do target++;
      while (plan_.row[target] != plan_.row[lower]);
      visit(target, lower, plan_.place[q], owner_[std::min(k, plan_.row[lower])] == owner_[j]);
    }
  }
}

void PipelineWriter::list_step(idx j) {
  const auto begin = (std::int32_t)out_.updates.size();
  for (const bool inside : {true, false}) {
    for_updates(j, [&](off target, off lower, off upper, bool is_inside) {
      if (is_inside == inside)
        out_.updates.push_back(
            {(std::uint16_t)slot_[lower], (std::uint16_t)slot_[upper], inside ? slot_[target] : (std::int32_t)target});
    });
    if (inside) out_.steps.push_back({slot_[plan_.diag[j]], begin, (std::int32_t)out_.updates.size(), 0});
  }
  if (out_.updates.size() > (std::size_t)std::numeric_limits<std::int32_t>::max())
    throw std::length_error("glu: more than 2147483647 updates in pipelines");
  out_.steps.back().end = (std::int32_t)out_.updates.size();
  n_steps_++, n_updates_ += out_.steps.back().end - begin;
}

void PipelineWriter::end_run(idx level_begin, idx level_end) {
  const auto end = (idx)out_.chains.size();
  if (end > first_) {
    // As many threads as a step has updates, on average weighed towards the large ones.
    const auto average = (unsigned)(2 * n_updates_ / std::max<off>(n_steps_, 1));
    const auto threads = (idx)std::clamp(std::bit_ceil(average), 64u, 1024u);
    out_.runs.push_back({(int)GluMode::pipeline, level_begin, level_end, first_, end, threads, slots_});
  }
  first_ = end, slots_ = 0, n_steps_ = n_updates_ = 0;
}

}  // namespace gs::gpu
