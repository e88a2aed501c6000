// Where factors lie. Without a memory limit they are contiguous, in the order of the fronts. Else only those of the
// last segments are, which are large and at which a solve turns from forward to backward; the segments before them
// stream: each is factored in a buffer, copied to the host while the next one is factored, and copied back for each
// direction of a solve. There are two buffers, for even and odd segments, that grow from both ends of the memory that
// the others leave, so that small segments leave space for large neighbours.
//
// The modelled time decides the size of segments: large ones need much memory twice, small ones many launches. Cost:
// O(fronts) for each of some 12 sizes.
#include <algorithm>
#include <array>
#include <numeric>

#include "plan/fronts/segments.hpp"
#include "plan/fronts/time_model.hpp"

namespace gs::gpu {
namespace {

constexpr int kMostHalvings = 12;

std::vector<off> segment_sizes(const FrontSizes& sizes, const Segments& segments) {
  std::vector<off> out(segments.count());
  for (idx s = 0; s < segments.count(); s++)
    out[s] =
        std::accumulate(sizes.factor.begin() + segments.ptr[s], sizes.factor.begin() + segments.ptr[s + 1], off(0));
  return out;
}

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

}  // namespace gs::gpu
