// Contributions of fronts to an interface that is not eliminated.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int COMPLEMENT_THREADS = 256;  // of a block

// The part of a column of a contribution block that belongs to the interface.
struct ChildColumn {
  long long at;     // in the arena of contribution blocks
  long long place;  // into Plan::place: the rows of the interface that its entries are added to
  int column;       // of the interface
  int count;        // entries
};

}  // namespace gs::gpu
