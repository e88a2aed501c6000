#include "plan/columns/times.hpp"

#include <algorithm>

#include "plan/columns/long_columns.hpp"

namespace gs::gpu {

namespace {

struct Clock {
  const ColumnPattern& p;
  const ColumnCosts& costs;
  const std::vector<double>& finish;

  // Time when a warp that is free at `time` has applied the update by column j.
  double update(double time, idx j) const {
    const off below = p.col_ptr[j + 1] - p.diag[j] - 1;
    return std::max(time, finish[j]) + costs.update + costs.slice * (double)((below + 31) / 32);
  }
  double column(idx k) const {
    double time = 0;
    for (off e = p.col_ptr[k]; e < p.diag[k]; e++) time = update(time, p.row[e]);
    return time + costs.column;
  }
  double long_column(idx k, const LongColumns& longs, const LongColumn& part) const {
    double time = 0;
    const idx* rows = p.row + p.col_ptr[k];
    for (idx i = 0; i < part.shallow_count; i++) time = std::max(time, finish[rows[longs.shallow[part.shallow + i]]]);
    time += costs.long_column + costs.long_depth * part.depths;
    for (idx i = 0; i < part.rest_count; i++) time = update(time, rows[longs.rest[part.rest + i]]);
    return time + costs.column;
  }
};

}  // namespace

ColumnTimes column_times(const ColumnPattern& p, const idx* level, const ColumnCosts& costs,
                         const LongColumnCosts& longest) {
  ColumnTimes out{std::vector<double>(p.n), std::vector<double>(p.n, 0.0), std::vector<idx>(p.n, 1)};
  LongColumns longs;
  if (level) longs = make_long_columns(p, choose_long_columns(p, level, longest), longest);
  const Clock clock{p, costs, out.finish};
  size_t next = 0;  // of the long columns
  for (idx k = 0; k < p.n; k++) {
    const bool is_long = next < longs.column.size() && longs.column[next] == k;
    out.finish[k] = is_long ? clock.long_column(k, longs, longs.parts[next++]) : clock.column(k);
    double& last = out.last[k];
    last = std::max(last, out.finish[k]);
    for (off e = p.col_ptr[k]; e < p.diag[k]; e++) last = std::max(last, out.last[p.row[e]]);
    for (off e = p.diag[k] + 1; e < p.col_ptr[k + 1]; e++) {
      const idx i = p.row[e];
      out.last[i] = std::max(out.last[i], last);
      out.depth[i] = std::max(out.depth[i], out.depth[k] + 1);
    }
  }
  return out;
}

double longest_trailing_column(const ColumnPattern& a, const off* position, idx p, double entry, double term) {
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
