// Defines the table of one scalar type; one file each, so that they compile in parallel.
#pragma once
#include "simd/lockstep_factor.hpp"
#include "simd/lockstep_solve.hpp"
#include "simd/lockstep_vectors.hpp"

#define GS_LOCKSTEP_TABLE(name, T)                                                                         \
  namespace gs::GS_SIMD {                                                                                  \
  extern const LockstepKernels<T> name;                                                                    \
  const LockstepKernels<T> name = {                                                                        \
      LockstepFactorization<T>::load, LockstepFactorization<T>::compare, LockstepFactorization<T>::factor, \
      LockstepSubstitution<T>::solve, LockstepBoth<T>::factor_solve,     LockstepVectors<T>::residual,     \
      LockstepVectors<T>::add,        LockstepVectors<T>::choose,        LockstepVectors<T>::take,         \
      LockstepVectors<T>::give,       LockstepVectors<T>::permute,       LockstepLanes<T>::number};        \
  }
