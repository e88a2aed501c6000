#include <atomic>
#include <levels.hpp>

#include "base/processors.hpp"
#include "simd/lockstep_kernels.hpp"
#include "simd/select.hpp"

namespace gs {

#define GS_DECLARE_KERNELS(number, level)                        \
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
GS_LEVELS(GS_DECLARE_KERNELS)

namespace {
std::atomic<int> forced{0};

template <class T> struct Tables {
  const DenseKernels<T>* dense;
  const LockstepKernels<T>* lockstep;
};
struct Level {
  int number;
  Tables<float> s;
  Tables<double> d;
  Tables<std::complex<float>> c;
  Tables<std::complex<double>> z;
};
#define GS_LEVEL(number, level)           \
  {number,                                \
   {&level::dense_s, &level::lockstep_s}, \
   {&level::dense_d, &level::lockstep_d}, \
   {&level::dense_c, &level::lockstep_c}, \
   {&level::dense_z, &level::lockstep_z}},
constinit const Level levels[] = {GS_LEVELS(GS_LEVEL)};  // ascending; an import requires the lowest

bool can_run(const Level& level) {
#if defined(__x86_64__)
  if (level.number == 4) return __builtin_cpu_supports("x86-64-v4");
  if (level.number == 3) return __builtin_cpu_supports("x86-64-v3");
#endif
  return true;
}

const Level& best() {
  const Level* found = levels;
  for (const Level& level : levels)
    if (can_run(level)) found = &level;
  return *found;
}

const Level& in_use() {
  const int number = forced.load(std::memory_order_relaxed);
  for (const Level& level : levels)
    if (number && level.number == number) return level;
  return best();
}
}  // namespace

bool simd_is_available() { return can_run(levels[0]); }
int simd_best_level() { return best().number; }
int simd_level() { return in_use().number; }

void set_simd_level(int number) {
  bool usable = false;
  for (const Level& level : levels) usable = usable || (level.number == number && can_run(level));
  forced.store(usable ? number : 0, std::memory_order_relaxed);
}

template <> const DenseKernels<float>& kernels<float>() { return *in_use().s.dense; }
template <> const DenseKernels<double>& kernels<double>() { return *in_use().d.dense; }
template <> const DenseKernels<std::complex<float>>& kernels<std::complex<float>>() { return *in_use().c.dense; }
template <> const DenseKernels<std::complex<double>>& kernels<std::complex<double>>() { return *in_use().z.dense; }

template <> const LockstepKernels<float>& lockstep_kernels<float>() { return *in_use().s.lockstep; }
template <> const LockstepKernels<double>& lockstep_kernels<double>() { return *in_use().d.lockstep; }
template <> const LockstepKernels<std::complex<float>>& lockstep_kernels<std::complex<float>>() {
  return *in_use().c.lockstep;
}
template <> const LockstepKernels<std::complex<double>>& lockstep_kernels<std::complex<double>>() {
  return *in_use().z.lockstep;
}

}  // namespace gs
