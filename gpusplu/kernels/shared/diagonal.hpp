// Inverted diagonal blocks of a factor of fronts.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

// Where one is in the factor, and its order.
struct DiagonalBlock {
  long long at;
  int ld, order;
};

constexpr int DIAGONAL_THREADS = 32;  // a warp a block

}  // namespace gs::gpu
