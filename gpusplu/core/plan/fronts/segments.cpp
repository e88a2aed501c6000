// Where contribution blocks lie. If all of them fit into the arena they are contiguous. Else the fronts are cut into
// segments, ranges of the postorder that are factored one after another, and a block's memory is free again when the
// segment of its parent is done. A segment ends after a front with a large parent (or after a root), so that a front of
// phases 0-2 is in the segment of its children, and the traversal of these phases does not depend on segments.
//
// Segments are filled up to a target. Blocks of one segment with the same last use are one chunk; chunks are placed
// segment by segment, those that live longest first, where they first fit. Cost: O(fronts) a target.
#include "plan/fronts/segments.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/types.hpp"
#include "plan/fronts/time_model.hpp"
#include "plan/gaps.hpp"

namespace gs::gpu {
namespace {

// Sizes of every front, rounded up to the alignment of the arenas [scalars].
struct FrontSizes {
  std::vector<off> factor, block;
};

FrontSizes front_sizes(const Plan& plan) {
  FrontSizes out;
  out.factor.resize(plan.nf), out.block.resize(plan.nf);
  const auto aligned = [](off scalars) { return (scalars + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN; };
  for (idx f = 0; f < plan.nf; f++) {
    const bool large = plan.phase[f] == LARGE_PHASE;
    const idx W = plan.width[f], H = plan.height(f);
    out.factor[f] = plan.is_interface(f) ? 0 : aligned(factor_entries(plan, W, H, large));
    out.block[f] = aligned(block_entries(H, large));
  }
  return out;
}

struct Segments {
  std::vector<idx> ptr;           // first front of each, and nf
  std::vector<off> block_offset;  // of every front, on its device
  std::vector<off> received;      // and on that of its parent, where that is another one
  std::vector<off> block_sizes;   // of the arenas, by device
  off block_size = 0;             // of all of them
  idx count() const { return (idx)ptr.size() - 1; }
};

// Blocks from another device have memory of their own, so that their copies never wait; blocks sent to another device
// keep their memory.
void place_blocks(const Plan& plan, const std::vector<off>& size, const Turns& turns, Segments& segments) {
  const auto segment_of = [&](idx f) {
    return (idx)(std::upper_bound(segments.ptr.begin(), segments.ptr.end(), f) - segments.ptr.begin()) - 1;
  };
  std::vector<Gaps> memory(turns.devices);
  segments.received.assign(turns.devices > 1 ? plan.nf : 0, 0);
  if (turns.devices > 1)
    for (idx f = 0; f < plan.nf; f++) {
      if (plan.parent[f] < 0) continue;
      const idx above = turns.device(segment_of(plan.parent[f]));
      if (above != turns.device(segment_of(f))) segments.received[f] = memory[above].take(size[f]);
    }
  segments.block_offset.assign(plan.nf, 0);
  std::vector<std::vector<off>> dying(segments.count());  // offsets of chunks by the segment of their last use
  for (idx turn = 0; turn < segments.count(); turn++) {
    const idx s = turns.segment(turn), device = turns.device(s);
    std::map<idx, off> chunk;  // size of the blocks last used in a segment, then the place of the next such block
    const auto last_use = [&](idx f) { return plan.parent[f] >= 0 ? segment_of(plan.parent[f]) : s; };
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) chunk[last_use(f)] += size[f];
    for (auto c = chunk.rbegin(); c != chunk.rend(); ++c) {
      if (c->second == 0) continue;
      c->second = memory[device].take(c->second);
      if (turns.device(c->first) == device) dying[c->first].push_back(c->second);
    }
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) {
      off& next = chunk[last_use(f)];
      segments.block_offset[f] = next;
      next += size[f];
    }
    for (const off begin : dying[s]) memory[device].give(begin);
  }
  segments.block_sizes.clear();
  for (const Gaps& each : memory) segments.block_sizes.push_back(each.top());
  segments.block_size = std::accumulate(segments.block_sizes.begin(), segments.block_sizes.end(), off(0));
}

std::vector<idx> cut(const Plan& plan, const std::vector<off>& weight, off target) {
  std::vector<idx> ptr{0};
  off filled = 0, part = 0;  // of the segment, and after the last place where it can end
  idx part_begin = 0;
  for (idx f = 0; f < plan.nf; f++) {
    if (plan.is_interface(f) && f > 0) {
      ptr.push_back(f);
      filled = part = 0;
    }
    part += weight[f];
    const idx above = plan.parent[f];
    if (above >= 0 && plan.phase[above] != LARGE_PHASE) continue;
    if (filled > 0 && filled + part > target) {
      ptr.push_back(part_begin);
      filled = 0;
    }
    filled += part, part = 0, part_begin = f + 1;
  }
  ptr.push_back(plan.nf);
  return ptr;
}

// Segments that begin at these fronts.
Segments segments_at(const Plan& plan, const FrontSizes& sizes, std::vector<idx> ptr, const Turns& turns) {
  Segments out;
  out.ptr = std::move(ptr);
  place_blocks(plan, sizes.block, turns, out);
  return out;
}

// Segments of weight at most `target`, unless fronts that belong together weigh more; weight: of every front.
Segments cut_segments(const Plan& plan, const FrontSizes& sizes, const std::vector<off>& weight, off target) {
  return segments_at(plan, sizes, cut(plan, weight, target), {});
}

// Where factors lie. Without a memory limit they are contiguous, in the order of the fronts. Else only those of the
// last segments are, which are large and at which a solve turns from forward to backward; the segments before them
// stream: each is factored in a buffer, copied to the host while the next one is factored, and copied back for each
// direction of a solve. There are two buffers, for even and odd segments, that grow from both ends of the memory that
// the others leave, so that small segments leave space for large neighbours.
//
// The modelled time decides the size of segments: large ones need much memory twice, small ones many launches. Cost:
// O(fronts) for each of some 12 sizes.

// A segment in a buffer, and the time from which the memory may be used again.
struct Held {
  idx segment;
  double free;
};
// The time when segment s can have its buffer.
double claim(const FactorPlaces& w, std::vector<Held>& held, idx s) {
  double free = 0;
  std::erase_if(held, [&](const Held& other) {
    const idx o = other.segment;
    const bool meets = w.place[o] < w.place[s] + w.size[s] && w.place[s] < w.place[o] + w.size[o];
    if (meets) free = std::max(free, other.free);
    return meets;
  });
  return free;
}

// Gives as many of the last segments as possible places of their own in `available` scalars. overlap: two streamed
// segments that follow each other must not share memory, so that one can be copied while the other is processed.
// arena > available in the result: impossible.
FactorPlaces place_factors(const std::vector<off>& size, off available, bool overlap) {
  const idx n = (idx)size.size();
  FactorPlaces out{size, std::vector<off>(n), 0, 0};
  off resident = std::accumulate(size.begin(), size.end(), off(0)), shared = 0;
  while (out.streamed < n && resident + shared > available) {
    const idx s = out.streamed++;
    resident -= size[s];
    shared = std::max(shared, size[s] + (overlap && s > 0 ? size[s - 1] : 0));
  }
  if (out.streamed > 0) shared = std::max(shared, available - resident);
  for (idx s = 0; s < out.streamed; s++) out.place[s] = s % 2 == 0 ? 0 : shared - size[s];
  out.arena = shared;
  for (idx s = out.streamed; s < n; s++) {
    out.place[s] = out.arena;
    out.arena += size[s];
  }
  return out;
}

}  // namespace

StreamTimes stream_times(const FactorPlaces& w, const SegmentTimes& times, const PlanParameters& parameters) {
  const idx n = (idx)w.size.size();
  const auto copy_time = [&](idx s) {
    return (double)w.size[s] * parameters.scalar_bytes() * parameters.costs.copy.byte;
  };
  double work = 0, copies = 0;  // when each of the two streams is idle
  std::vector<Held> held;
  for (idx s = 0; s < n; s++) {
    if (s < w.streamed) work = std::max(work, claim(w, held, s));
    work += times.factor[s];
    if (s >= w.streamed) continue;
    copies = std::max(copies, work) + copy_time(s);
    held.push_back({s, copies});
  }
  StreamTimes out{std::max(work, copies), 0};
  work = copies = 0;
  held.clear();
  const auto solve = [&](idx s) {
    const auto at = std::find_if(held.begin(), held.end(), [&](const Held& h) { return h.segment == s; });
    if (at == held.end()) {
      copies = std::max(copies, claim(w, held, s)) + copy_time(s);
      work = std::max(work, copies);
    } else {
      held.erase(at);
    }
    work += times.solve[s];
    held.push_back({s, work});
  };
  for (idx s = 0; s < w.streamed; s++) solve(s);
  for (idx s = w.streamed; s < n; s++) work += 2 * times.solve[s];
  for (idx s = w.streamed; s-- > 0;) solve(s);
  out.solve = work;
  return out;
}

namespace {

constexpr int kMostHalvings = 12;

std::vector<off> segment_sizes(const FrontSizes& sizes, const Segments& segments) {
  std::vector<off> out(segments.count());
  for (idx s = 0; s < segments.count(); s++)
    out[s] =
        std::accumulate(sizes.factor.begin() + segments.ptr[s], sizes.factor.begin() + segments.ptr[s + 1], off(0));
  return out;
}

struct Arrangement {
  Segments segments;
  FactorPlaces places;
  double time = 0;  // of a factorization and a solve [us]
  off scalars() const { return segments.block_size + places.arena; }
};

// The faster of two arrangements: buffers that alternate between segments, and buffers that segments wait for.
Arrangement arrange(const Plan& plan, const FrontSizes& sizes, Segments segments, off available,
                    const std::vector<off>& items) {
  const std::vector<off> size = segment_sizes(sizes, segments);
  const SegmentTimes times = segment_times(plan, items, segments.ptr);
  Arrangement best{std::move(segments), {}};
  for (const bool overlap : {true, false}) {
    FactorPlaces places = place_factors(size, available - best.segments.block_size, overlap);
    const StreamTimes t = stream_times(places, times, plan.parameters);
    const bool fits = best.segments.block_size + places.arena <= available;
    if (overlap || (fits && (best.scalars() > available || t.factor + t.solve < best.time)) ||
        (!fits && places.arena < best.places.arena)) {
      best.places = std::move(places);
      best.time = t.factor + t.solve;
    }
  }
  return best;
}

Segments segments_for_blocks(const Plan& plan, const FrontSizes& sizes, off limit) {
  const off total = std::accumulate(sizes.block.begin(), sizes.block.end(), off(0));
  Segments best = cut_segments(plan, sizes, sizes.block, total + 1);
  constexpr int kHalvings = 8;
  if (limit > 0)
    for (int halvings = 0; best.block_size > limit && halvings < kHalvings; halvings++) {
      Segments next = cut_segments(plan, sizes, sizes.block, limit >> halvings);
      if (next.block_size < 0.95 * best.block_size) best = std::move(next);
    }
  return best;
}

// The fastest arrangement in `available` scalars; the smallest if there is none.
Arrangement fastest(const Plan& plan, const FrontSizes& sizes, off available) {
  std::vector<off> weight(plan.nf);
  for (idx f = 0; f < plan.nf; f++) weight[f] = sizes.factor[f] + sizes.block[f];
  const off total = std::accumulate(weight.begin(), weight.end(), off(0));
  const std::vector<off> items = count_items(plan);
  Arrangement best;
  for (int halvings = 0; halvings <= kMostHalvings; halvings++) {
    Segments segments = cut_segments(plan, sizes, weight, halvings < kMostHalvings ? total >> halvings : 1);
    Arrangement next = arrange(plan, sizes, std::move(segments), available, items);
    const bool fits = next.scalars() <= available, best_fits = best.scalars() <= available;
    if (halvings == 0 || (fits ? !best_fits || next.time < best.time : !best_fits && next.scalars() < best.scalars()))
      best = std::move(next);
  }
  return best;
}

}  // namespace

void place_arenas(Plan& plan) {
  const FrontSizes sizes = front_sizes(plan);
  const off bytes = plan.parameters.scalar_bytes();
  const auto scalars = [&](off limit) { return (limit + bytes - 1) / bytes; };
  Arrangement a;
  if (plan.parameters.memory_bytes > 0) {
    a = fastest(plan, sizes, plan.parameters.memory_bytes / bytes / ARENA_ALIGN * ARENA_ALIGN);
  } else {
    a.segments = segments_for_blocks(plan, sizes, scalars(plan.parameters.block_bytes));
    const std::vector<off> size = segment_sizes(sizes, a.segments);
    a.places = place_factors(size, std::accumulate(size.begin(), size.end(), off(0)), true);
  }
  plan.factor_offset.resize(plan.nf);
  for (idx s = 0; s < a.segments.count(); s++) {
    off next = a.places.place[s];
    for (idx f = a.segments.ptr[s]; f < a.segments.ptr[s + 1]; f++) {
      plan.factor_offset[f] = next;
      next += sizes.factor[f];
    }
    plan.host_size += s < a.places.streamed ? a.places.size[s] : 0;
  }
  plan.segment_ptr = std::move(a.segments.ptr), plan.block_offset = std::move(a.segments.block_offset);
  plan.segment_place = std::move(a.places.place), plan.segment_size = std::move(a.places.size);
  plan.streamed = a.places.streamed;
  plan.factor_size = a.places.arena, plan.block_size = a.segments.block_size;
}

namespace {

// The same fronts, mapped to several devices: each has an arena of factors and one of contribution blocks, which its
// segments use in turn. The mapping: engines/supernodal/front_mapping.py.
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
