// Selects the instruction set of the arithmetic kernels: the best that the processor supports, determined once.
#pragma once
#include "simd/dense_kernels.hpp"
#include "simd/lockstep_kernels.hpp"

namespace gs {

int simd_level();                // 2, 3, 4: x86-64-v2, v3 (AVX2, FMA), v4 (AVX-512); 0: not an x86-64
int simd_best_level();           // best level of the processor
void set_simd_level(int level);  // for tests: use a lower level than the processor supports; 0 restores the best

template <class T> const DenseKernels<T>& kernels();
template <class T> const LockstepKernels<T>& lockstep_kernels();

}  // namespace gs
