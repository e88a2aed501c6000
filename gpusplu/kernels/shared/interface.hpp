// What fronts leave on an interface that is not eliminated.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int COMPLEMENT_THREADS = 256;  // of a block

// A column of a contribution block, of what belongs to the interface.
struct ChildColumn {
  long long at;     // in the arena of contribution blocks
  long long place;  // into Plan::place: the rows of the interface that its entries are added to
  int column;       // of the interface
  int count;        // entries
};

}  // namespace gs::gpu
