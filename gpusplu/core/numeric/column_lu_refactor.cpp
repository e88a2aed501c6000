#include <algorithm>
#include <limits>
#include <numeric>

#include "numeric/column_lu.hpp"
#include "numeric/column_nodes.hpp"
#include "simd/column_kernels.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

template <class Real>
void refactor_columns(const ColumnProgram<Real>& program, const ColumnTask<Real>& task, bool is_complex,
                      ColumnMonitor<Real>& monitor) {
#if defined(__x86_64__)
  switch (simd_level()) {
    case 4: return v4::refactor_columns(program, task, is_complex, monitor);
    case 3: return v3::refactor_columns(program, task, is_complex, monitor);
    default: return v2::refactor_columns(program, task, is_complex, monitor);
  }
#else
  base::refactor_columns(program, task, is_complex, monitor);
#endif
}

}  // namespace

template <class T> FactorInfo ColumnLU<T>::refactor(const T* values, const off* source) {
  using Real = real_t<T>;
  ColumnNodes<T>& f = *nodes_;
  const ColumnProgram<Real> program = f.program(pattern_, scale_row_.empty() ? nullptr : scale_row_.data(),
                                                scale_col_.empty() ? nullptr : scale_col_.data());
  if (f.work.empty()) f.work.emplace_back((off)n_ * f.widest);
  std::vector<idx> all(f.n_nodes());
  std::iota(all.begin(), all.end(), 0);
  ColumnMonitor<Real> monitor;
  monitor.min_pivot = std::numeric_limits<Real>::max();
  const ColumnTask<Real> task{reinterpret_cast<const Real*>(values), source, reinterpret_cast<Real*>(f.work[0].data()), all.data(),
                              f.n_nodes(), (Real)std::min<double>(bound_, std::numeric_limits<Real>::max())};
  refactor_columns(program, task, is_complex<T>, monitor);

  FactorInfo info;
  info.status = (FactorInfo::Status)monitor.status;
  info.column = monitor.column < 0 ? -1 : col_perm_[monitor.column];
  info.min_pivot = n_ ? monitor.min_pivot : 0;
  info.max_pivot = monitor.max_pivot;
  info.max_multiplier = monitor.max_multiplier;
  info.max_entry = monitor.max_entry;
  info.pivot_growth = monitor.max_entry > 0 ? std::max(monitor.max_upper, monitor.max_pivot) / monitor.max_entry : 0;
  info.n_off_diagonal = n_off_diagonal_;
  info.flops = flops_;
  if (info.status != FactorInfo::ok) f.work.clear();  // the failed node's column is still in it
  return info;
}

template FactorInfo ColumnLU<float>::refactor(const float*, const off*);
template FactorInfo ColumnLU<double>::refactor(const double*, const off*);
template FactorInfo ColumnLU<std::complex<float>>::refactor(const std::complex<float>*, const off*);
template FactorInfo ColumnLU<std::complex<double>>::refactor(const std::complex<double>*, const off*);

}  // namespace gs
