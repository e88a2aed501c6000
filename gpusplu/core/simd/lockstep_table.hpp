// Defines the table of one scalar type; one file each, so that they compile in parallel.
#pragma once
#include "simd/lockstep_columns.hpp"
#include "simd/lockstep_vectors.hpp"
#include "simd/select.hpp"

#define GS_LOCKSTEP_TABLE(T)                                                                                 \
  template <> const gs::LockstepKernels<T>& gs::GS_SIMD::Kernels::lockstep<T>() {                            \
    using Solve = LockstepColumnLU<T>;                                                                       \
    using Vectors = LockstepVectors<T>;                                                                      \
    static constinit const LockstepKernels<T> table = {                                                      \
        Solve::load,     Solve::factor, Solve::solve,  Solve::factor_solve, Vectors::residual, Vectors::add, \
        Vectors::choose, Vectors::take, Vectors::give, Vectors::permute,    Vectors::number};                \
    return table;                                                                                            \
  }
