// How fronts are cut into segments, where the contribution blocks lie then, and which segments' factors stay on the
// device. Segments are defined in plan.hpp.
#pragma once
#include <vector>

#include "plan/fronts/plan.hpp"

namespace gs::gpu {

// Sizes of every front, rounded up to the alignment of the arenas [scalars].
struct FrontSizes {
  std::vector<off> factor, block;
};
FrontSizes front_sizes(const Plan& plan);

// The order in which segments run and the device of each; empty: as numbered, on one device.
struct Turns {
  idx devices = 1;
  std::vector<idx> order, device_of;
  idx segment(idx turn) const { return order.empty() ? turn : order[turn]; }
  idx device(idx segment) const { return device_of.empty() ? 0 : device_of[segment]; }
};

struct Segments {
  std::vector<idx> ptr;           // first front of each, and nf
  std::vector<off> block_offset;  // of every front, on its device
  std::vector<off> received;      // and on that of its parent, where that is another one
  std::vector<off> block_sizes;   // of the arenas, by device
  off block_size = 0;             // of all of them
  idx count() const { return (idx)ptr.size() - 1; }
};
// Segments of weight at most `target`, unless fronts that belong together weigh more; weight: of every front.
Segments cut_segments(const Plan& plan, const FrontSizes& sizes, const std::vector<off>& weight, off target);

// Segments that begin at these fronts.
Segments segments_at(const Plan& plan, const FrontSizes& sizes, std::vector<idx> ptr, const Turns& turns);

// Where the factors of segments lie in an arena that need not hold all of them.
struct FactorPlaces {
  std::vector<off> size, place;  // of every segment
  idx streamed = 0;              // segments 0 .. streamed - 1 share the arena's first part, the others have their own
  off arena = 0;                 // scalars
};
// Gives as many of the last segments as possible places of their own in `available` scalars. overlap: two streamed
// segments that follow each other must not share memory, so that one can be copied while the other is processed.
// arena > available in the result: impossible.
FactorPlaces place_factors(const std::vector<off>& size, off available, bool overlap);

// Timeline of the engine: kernels in order and, concurrently, copies in order, each waiting for its dependencies [us].
struct StreamTimes {
  double factor, solve;
};
struct SegmentTimes {
  std::vector<double> factor, solve;  // of the kernels; solve: one direction
};
SegmentTimes segment_times(const Plan& plan, const std::vector<off>& items, const std::vector<idx>& segment_ptr);
// Of ranges of fronts begin[k] .. end[k] - 1, which may overlap.
SegmentTimes range_times(const Plan& plan, const std::vector<idx>& begin, const std::vector<idx>& end);
StreamTimes stream_times(const FactorPlaces& places, const SegmentTimes& times, const PlanParameters& parameters);

}  // namespace gs::gpu
