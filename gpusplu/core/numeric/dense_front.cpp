#include "numeric/dense_front.hpp"

#include <vector>

namespace gs {

template <class T> void lu_front(const Team& team, idx W, idx H, T* L, off ldl, T* Ut, off ldu, T* C, off ldc,
                                 idx* pivots, const PivotRule& rule, PivotStats& stats) {
  if (team.rank == 0) kernels<T>().lu_front(W, H, L, ldl, Ut, ldu, C, ldc, pivots, &rule, &stats);
  team.sync();
}

template <class T> idx cholesky_front(const Team& team, idx W, idx H, T* L, off ldl, T* C, off ldc) {
  if (team.size == 1) return kernels<T>().cholesky_front(W, H, L, ldl, C, ldc);
  static std::atomic<idx> failed;
  if (team.rank == 0) failed = kernels<T>().cholesky_front(W, H, L, ldl, C, ldc);
  team.sync();
  const idx column = failed;
  team.sync();
  return column;
}

#define GS_INSTANTIATE(T)                                                                                        \
  template void lu_front(const Team&, idx, idx, T*, off, T*, off, T*, off, idx*, const PivotRule&, PivotStats&); \
  template idx cholesky_front(const Team&, idx, idx, T*, off, T*, off);
GS_INSTANTIATE(float)
GS_INSTANTIATE(double)
GS_INSTANTIATE(std::complex<float>)
GS_INSTANTIATE(std::complex<double>)

}  // namespace gs
