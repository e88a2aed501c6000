// How fronts are cut into segments, where the contribution blocks lie then, and which segments' factors stay on the
// device. Segments are defined in plan.hpp.
#pragma once
#include <vector>

#include "plan/fronts/plan.hpp"

namespace gs::gpu {

// The order in which segments run and the device of each; empty: as numbered, on one device.
struct Turns {
  idx devices = 1;
  std::vector<idx> order, device_of;
  idx segment(idx turn) const { return order.empty() ? turn : order[turn]; }
  idx device(idx segment) const { return device_of.empty() ? 0 : device_of[segment]; }
};

// Where the factors of segments lie in an arena that need not hold all of them.
struct FactorPlaces {
  std::vector<off> size, place;  // of every segment
  idx streamed = 0;              // segments 0 .. streamed - 1 share the arena's first part, the others have their own
  off arena = 0;                 // scalars
};

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
