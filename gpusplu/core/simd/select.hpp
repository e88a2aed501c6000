// Selects the instruction set of the arithmetic kernels: the best that the processor supports.
#pragma once
#include <levels.hpp>

#include "simd/column_kernels.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/lockstep_kernels.hpp"

namespace gs {

int simd_level();                // 2, 3, 4: x86-64-v2, v3 (AVX2, FMA), v4 (AVX-512); 0: not an x86-64
int simd_best_level();           // best level of the processor
void set_simd_level(int level);  // for tests: use a lower level than the processor supports; 0 restores the best

// The kernels of one instruction set, each in a namespace of its own. The bool says whether solves divide by pivots:
// simd/column_solve.hpp.
#define GS_KERNELS(number, level)                                                                                   \
  namespace level {                                                                                                 \
  struct Kernels {                                                                                                  \
    template <class T> static const DenseKernels<T>& dense();                                                       \
    template <class T> static const LockstepKernels<T>& lockstep();                                                 \
    template <class T> static void refactor_columns(const ColumnProgram<real_t<T>>&, const ColumnTask<real_t<T>>&,  \
                                                    ColumnMonitor<real_t<T>>&);                                     \
    template <class T> static void refactor_entries(const ColumnProgram<real_t<T>>&, const ColumnSteps<real_t<T>>&, \
                                                    const ColumnTask<real_t<T>>&, ColumnMonitor<real_t<T>>&);       \
    template <class T, bool divide>                                                                                 \
    static void solve_columns(const ColumnProgram<real_t<T>>&, const ColumnSolve<real_t<T>>&);                      \
  };                                                                                                                \
  }
GS_LEVELS(GS_KERNELS)
#undef GS_KERNELS

// f(kernels) for the instruction set in use.
template <class F> decltype(auto) with_kernels(F&& f) {
#define GS_CASE(number, level) \
  case number:                 \
    return f(level::Kernels());
  switch (simd_level()) {
    GS_LEVELS(GS_CASE)
    default:
      __builtin_unreachable();
  }
#undef GS_CASE
}

template <class T> const DenseKernels<T>& kernels() {
  return with_kernels([](auto level) -> auto& { return level.template dense<T>(); });
}
template <class T> const LockstepKernels<T>& lockstep_kernels() {
  return with_kernels([](auto level) -> auto& { return level.template lockstep<T>(); });
}

}  // namespace gs
