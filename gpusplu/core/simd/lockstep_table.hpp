// Defines the table of one scalar type; one file each, so that they compile in parallel.
#pragma once
#include "simd/lockstep_factor.hpp"
#include "simd/lockstep_solve.hpp"
#include "simd/lockstep_vectors.hpp"
#include "simd/select.hpp"

#define GS_LOCKSTEP_TABLE(T)                                                                  \
  template <> const gs::LockstepKernels<T>& gs::GS_SIMD::Kernels::lockstep<T>() {             \
    static constinit const LockstepKernels<T> table = {LockstepFactorization<T>::load,        \
                                                       LockstepFactorization<T>::compare,     \
                                                       LockstepFactorization<T>::factor,      \
                                                       LockstepSubstitution<T>::solve,        \
                                                       LockstepSubstitution<T>::factor_solve, \
                                                       LockstepVectors<T>::residual,          \
                                                       LockstepVectors<T>::add,               \
                                                       LockstepVectors<T>::choose,            \
                                                       LockstepVectors<T>::take,              \
                                                       LockstepVectors<T>::give,              \
                                                       LockstepVectors<T>::permute,           \
                                                       LockstepLanes<T>::number};             \
    return table;                                                                             \
  }
