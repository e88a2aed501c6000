#include "plan/columns/times.hpp"

#include <algorithm>

namespace gs::gpu {

ColumnTimes column_times(const ColumnPattern& p, const ColumnCosts& costs) {
  ColumnTimes out{std::vector<double>(p.n), std::vector<double>(p.n, 0.0), std::vector<idx>(p.n, 1)};
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
      const idx i = p.row[e];
      out.last[i] = std::max(out.last[i], out.last[k]);
      out.depth[i] = std::max(out.depth[i], out.depth[k] + 1);
    }
  }
  return out;
}

double longest_corner_column(const ColumnPattern& a, const off* position, idx p, double entry, double term) {
  double longest = 0;
  for (idx k = 0; k < a.n; k++) {
    if (position[k] < p) continue;
    off terms = 0;
    for (off e = a.col_ptr[k]; e < a.diag[k]; e++) {
      const idx j = a.row[e];
      if (position[j] < p) terms += a.col_ptr[j + 1] - a.diag[j] - 1;
    }
    longest = std::max(longest, entry * (double)(a.col_ptr[k + 1] - a.col_ptr[k]) + term * (double)terms);
  }
  return longest;
}

}  // namespace gs::gpu
