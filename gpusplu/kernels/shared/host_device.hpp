// This folder holds the single definition of all that the planner (core/plan), the kernels and Python (cuda/layout.py)
// share: structs, sizes, and values derived from them. Plain C++17 without the standard library, because NVRTC has
// none.
#pragma once

#ifdef __CUDACC__
#define GPUSPLU_HOST_DEVICE __host__ __device__
#else
#define GPUSPLU_HOST_DEVICE
#endif

namespace gs::gpu {

constexpr int WARP_SIZE = 32;
constexpr int RESERVED_SHARED_BYTES = 1024;  // of every block, by CUDA

GPUSPLU_HOST_DEVICE constexpr int scalar_bytes(char scalar) { return scalar == 'f' ? 4 : scalar == 'D' ? 16 : 8; }

}  // namespace gs::gpu
