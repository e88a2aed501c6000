#include "plan/columns/times.hpp"

#include <algorithm>

namespace gs::gpu {

ColumnTimes column_times(const ColumnPattern& p, const ColumnCosts& costs) {
  ColumnTimes out{std::vector<double>(p.n), std::vector<double>(p.n, 0.0)};
  for (idx k = 0; k < p.n; k++) {
    double time = 0, last = out.last[k];
    for (off e = p.col_ptr[k]; e < p.diag[k]; e++) {
      const idx j = p.row[e];
      const off below = p.col_ptr[j + 1] - p.diag[j] - 1;
      time = std::max(time, out.finish[j]) + costs.update + costs.slice * (double)((below + 31) / 32);
      last = std::max(last, out.last[j]);
    }
    out.finish[k] = time + costs.column;
    out.last[k] = std::max(last, out.finish[k]);
    for (off e = p.diag[k] + 1; e < p.col_ptr[k + 1]; e++) {
      double& later = out.last[p.row[e]];
      later = std::max(later, out.last[k]);
    }
  }
  return out;
}

}  // namespace gs::gpu
