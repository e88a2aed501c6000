// The same fronts, mapped to several devices: each has an arena of factors and one of contribution blocks, which its
// segments use in turn. The mapping: engines/supernodal/front_mapping.py.
#include <algorithm>
#include <numeric>

#include "base/require.hpp"
#include "plan/fronts/segments.hpp"

namespace gs::gpu {
namespace {

void check(const Plan& plan, const std::vector<idx>& ptr, const Turns& turns) {
  const idx n = (idx)ptr.size() - 1;
  require(plan.streamed == 0, "a plan that streams has segments of its own");
  require(n > 0 && ptr.front() == 0 && ptr.back() == plan.nf, "segments have to cover all fronts");
  require((idx)turns.order.size() == n && (idx)turns.device_of.size() == n, "each segment has a turn and a device");
  std::vector<idx> turn(n, -1);
  for (idx k = 0; k < n; k++) {
    const idx s = turns.order[k];
    require(0 <= s && s < n && turn[s] < 0, "each segment has one turn");
    require(0 <= turns.device_of[k] && turns.device_of[k] < turns.devices, "there is no such device");
    turn[s] = k;
  }
  for (idx s = 0; s < n; s++) {
    require(ptr[s] < ptr[s + 1], "a segment has no fronts");
    for (idx f = ptr[s]; f < ptr[s + 1]; f++) {
      const idx above = plan.parent[f];
      if (above < ptr[s + 1]) continue;
      require(plan.phase[above] == LARGE_PHASE, "a front that is not large is in another segment than a child of it");
      const idx to = (idx)(std::upper_bound(ptr.begin(), ptr.end(), above) - ptr.begin()) - 1;
      require(turn[s] < turn[to], "a segment comes before one that it needs");
    }
  }
}

}  // namespace

Plan with_segments(Plan plan, std::vector<idx> segment_ptr, const Turns& turns) {
  check(plan, segment_ptr, turns);
  const FrontSizes sizes = front_sizes(plan);
  Segments segments = segments_at(plan, sizes, std::move(segment_ptr), turns);
  plan.segment_place.assign(segments.count(), 0), plan.segment_size = plan.segment_place;
  plan.factor_sizes.assign(turns.devices, 0);
  for (const idx s : turns.order) {
    off& next = plan.factor_sizes[turns.device(s)];
    plan.segment_place[s] = next;
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) {
      plan.factor_offset[f] = next;
      next += sizes.factor[f];
    }
    plan.segment_size[s] = next - plan.segment_place[s];
  }
  plan.factor_size = std::accumulate(plan.factor_sizes.begin(), plan.factor_sizes.end(), off(0));
  plan.segment_ptr = std::move(segments.ptr), plan.block_offset = std::move(segments.block_offset);
  plan.received = std::move(segments.received), plan.block_sizes = std::move(segments.block_sizes);
  plan.block_size = segments.block_size;
  plan.start.clear(), plan.launches.clear();
  list_large(plan);
  list_items(plan);
  list_starts(plan);
  return plan;
}

}  // namespace gs::gpu
