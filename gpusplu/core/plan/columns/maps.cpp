// Targets of all updates, so that kernels need not search. Columns in parallel; each marks its rows once.
#include "plan/columns/plan.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

constexpr off kLong = 65536;  // entries of a column that needs 32 bits a position

template <class Position> void write_maps(const ColumnPlan& plan, RawVector<Position>& map) {
  map.resize(plan.map_ptr.back());
  const int threads = threads_for((off)plan.flops / 4);
  const idx ranges = threads == 1 ? 1 : 8 * threads;
  over_tasks(threads, ranges, [&](idx part) {
    // ranges of about equal numbers of updates
    const auto cut = [&](idx which) {
      const off target = plan.map_ptr.back() / ranges * which;
      const auto u = std::lower_bound(plan.map_ptr.begin(), plan.map_ptr.end(), target) - plan.map_ptr.begin();
      return (idx)(std::lower_bound(plan.u_ptr.begin(), plan.u_ptr.end(), u) - plan.u_ptr.begin());
    };
    RawVector<Position> at(plan.n);
    const idx end = part + 1 == ranges ? plan.n : cut(part + 1);
    for (idx k = part ? cut(part) : 0; k < end; k++) {
      const off begin = plan.col_ptr[k];
      for (off p = begin; p < plan.col_ptr[k + 1]; p++) at[plan.row[p]] = (Position)(p - begin);
      Position* to = map.data() + plan.map_ptr[plan.u_ptr[k]];
      for (off p = begin; p < plan.diag[k]; p++) {
        const idx j = plan.row[p];
        for (off q = plan.diag[j] + 1; q < plan.col_ptr[j + 1]; q++) *to++ = at[plan.row[q]];
      }
    }
  });
}

}  // namespace

void map_updates(const ColumnParameters& parameters, ColumnPlan& plan) {
  plan.has_maps = plan.flops <= parameters.most_mapped;
  if (!plan.has_maps) return;
  plan.map_ptr.resize(plan.u_ptr[plan.n] + 1);
  off sum = 0, u = 0;
  for (idx k = 0; k < plan.n; k++)
    for (off p = plan.col_ptr[k]; p < plan.diag[k]; p++) {
      plan.map_ptr[u++] = sum;
      sum += plan.col_ptr[plan.row[p] + 1] - plan.diag[plan.row[p]] - 1;
    }
  plan.map_ptr[u] = sum;
  bool is_long = false;
  for (idx k = 0; k < plan.n; k++) is_long = is_long || plan.col_ptr[k + 1] - plan.col_ptr[k] >= kLong;
  if (is_long) write_maps(plan, plan.map32);
  else write_maps(plan, plan.map16);
}

}  // namespace gs::gpu
