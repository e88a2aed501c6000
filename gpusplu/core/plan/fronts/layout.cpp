// Places of rows and factors, and the phase of each front. Cost: O(structure).
#include <algorithm>
#include <stdexcept>
#include <string>

#include "plan/fronts/over_fronts.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/fronts/time_model.hpp"

namespace gs::gpu {

idx block_rows_for(const PlanParameters& parameters) {
  const off scalars =
      (parameters.shared_memory_bytes - FRONT_CONTROL_BYTES) / parameters.scalar_bytes() - PANEL_SCALARS;
  idx R = BYTE_ROWS;
  while (R > PANEL && (off)front_ld(R) * (R + 8) > scalars) R -= PANEL;
  return R;
}

off factor_entries(const Plan& plan, idx W, idx H, bool large) {
  if (!large) return off(W + H) * W + (plan.one_triangle() ? 0 : off(W) * H);
  const off panels = off(large_ld(W) + large_ld(H)) * W, tile = plan.parameters.large_tile;
  return (plan.cholesky ? 1 : 2) * panels + off(tile) * tile * ((W + tile - 1) / tile);
}

idx block_ld(idx H, bool large) { return large ? large_ld(H) : H; }
off block_entries(idx H, bool large) { return off(block_ld(H, large)) * H; }

void place_rows(Plan& plan) {
  plan.place.resize(plan.below.size());
  over_fronts(plan, (off)plan.below.size(), [&](idx begin, idx end) {
    for (idx f = begin; f < end; f++) {
      const idx above = plan.parent[f];
      if (above < 0) continue;
      const idx first = plan.first[above], W = plan.width[above];
      const idx* rows = plan.below.data() + plan.below_ptr[above];
      const idx* rows_end = plan.below.data() + plan.below_ptr[above + 1];
      const idx* at = rows;
      for (off p = plan.below_ptr[f]; p < plan.below_ptr[f + 1]; p++) {
        const idx row = plan.below[p];
        if (row < first + W) {
          plan.place[p] = (std::uint16_t)(row - first);
        } else {
          at = std::lower_bound(at, rows_end, row);
          plan.place[p] = (std::uint16_t)(W + (at++ - rows));
        }
      }
    }
  });
}

std::vector<idx> phases_of(const Plan& plan, idx small_rows) {
  const ClassRows kind(plan.parameters.warp_rows, small_rows, plan.parameters.block_rows);
  std::vector<idx> phase(plan.nf);
  for (idx f = 0; f < plan.nf; f++) {
    phase[f] = std::max(phase[f], plan.is_interface(f) ? LARGE_PHASE : kind(plan.rows[f]));
    if (const idx above = plan.parent[f]; above >= 0) phase[above] = std::max(phase[above], phase[f]);
  }
  return phase;
}

void set_phases(Plan& plan) {
  if (std::any_of(plan.rows.begin(), plan.rows.end(), [](idx R) { return R > MOST_ROWS; }))
    throw std::length_error("a front has more than " + std::to_string(MOST_ROWS) + " rows: the fill is too large");
  plan.phase = phases_of(plan, plan.parameters.small_rows);
  plan.level.assign(plan.nf, 0);
  for (idx f = 0; f < plan.nf; f++)
    if (const idx above = plan.parent[f]; above >= 0 && plan.phase[above] == plan.phase[f])
      plan.level[above] = std::max(plan.level[above], plan.level[f] + 1);
}

}  // namespace gs::gpu
