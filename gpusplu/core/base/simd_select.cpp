#include <atomic>

#include "simd/lockstep_kernels.hpp"
#include "simd/select.hpp"

namespace gs {

#define GS_DECLARE_KERNELS(level)                                \
  namespace level {                                              \
  extern const DenseKernels<float> dense_s;                      \
  extern const DenseKernels<double> dense_d;                     \
  extern const DenseKernels<std::complex<float>> dense_c;        \
  extern const DenseKernels<std::complex<double>> dense_z;       \
  extern const LockstepKernels<float> lockstep_s;                \
  extern const LockstepKernels<double> lockstep_d;               \
  extern const LockstepKernels<std::complex<float>> lockstep_c;  \
  extern const LockstepKernels<std::complex<double>> lockstep_z; \
  }
#ifdef GS_ONLY_LEVEL
GS_DECLARE_KERNELS(GS_ONLY_LEVEL)
#define GS_PICK(table, level) GS_ONLY_LEVEL::table
#else
GS_DECLARE_KERNELS(v2)
GS_DECLARE_KERNELS(v3)
GS_DECLARE_KERNELS(v4)
#define GS_PICK(table, level) ((level) == 4 ? v4::table : (level) == 3 ? v3::table : v2::table)
#endif

namespace {
std::atomic<int> forced{0};

#ifdef GS_ONLY_LEVEL
#define GS_TEXT(name) #name
#define GS_NAME(name) GS_TEXT(name)
constexpr const char* only = GS_NAME(GS_ONLY_LEVEL);
constexpr int lowest = only[0] == 'v' ? only[1] - '0' : 0;
#else
constexpr int lowest = 2;
#endif
}  // namespace

int simd_best_level() {
#ifndef GS_ONLY_LEVEL
  return __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 2;
#else
  return lowest;
#endif
}

int simd_level() {
  const int level = forced.load(std::memory_order_relaxed);
  return level ? level : simd_best_level();
}

void set_simd_level(int level) {
  forced.store(level >= lowest && level <= simd_best_level() ? level : 0, std::memory_order_relaxed);
}

template <> const DenseKernels<float>& kernels<float>() { return GS_PICK(dense_s, simd_level()); }
template <> const DenseKernels<double>& kernels<double>() { return GS_PICK(dense_d, simd_level()); }
template <> const DenseKernels<std::complex<float>>& kernels<std::complex<float>>() {
  return GS_PICK(dense_c, simd_level());
}
template <> const DenseKernels<std::complex<double>>& kernels<std::complex<double>>() {
  return GS_PICK(dense_z, simd_level());
}

template <> const LockstepKernels<float>& lockstep_kernels<float>() { return GS_PICK(lockstep_s, simd_level()); }
template <> const LockstepKernels<double>& lockstep_kernels<double>() { return GS_PICK(lockstep_d, simd_level()); }
template <> const LockstepKernels<std::complex<float>>& lockstep_kernels<std::complex<float>>() {
  return GS_PICK(lockstep_c, simd_level());
}
template <> const LockstepKernels<std::complex<double>>& lockstep_kernels<std::complex<double>>() {
  return GS_PICK(lockstep_z, simd_level());
}

}  // namespace gs
