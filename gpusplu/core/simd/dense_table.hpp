// Defines the table of one scalar type; one file each, so that they compile side by side.
#pragma once
#include "simd/cholesky.hpp"
#include "simd/dense_kernels.hpp"
#include "simd/lu.hpp"
#include "simd/solve.hpp"

#define GS_DENSE_TABLE(name, T)                                                                                 \
  namespace gs::GS_SIMD {                                                                                       \
  extern const DenseKernels<T> name;                                                                            \
  const DenseKernels<T> name = {lu_front<T>,     cholesky_front<T>, lu_forward<T>,       lu_backward<T>,        \
                                lu_forward_t<T>, lu_backward_t<T>,  cholesky_forward<T>, cholesky_backward<T>}; \
  }
