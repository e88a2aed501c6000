// Inertia of inverted diagonal blocks of LDL^T.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int INERTIA_THREADS = 32;  // a warp a block
constexpr int INERTIA_COUNTS = 3;    // eigenvalues that are positive, negative, and too small to tell

// Where one is in the factor, and its order.
struct InertiaBlock {
  long long at;
  int ld, order;
};

}  // namespace gs::gpu
