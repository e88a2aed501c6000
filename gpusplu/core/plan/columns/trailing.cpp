#include "plan/columns/trailing.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "plan/columns/long_columns.hpp"

namespace gs::gpu {

namespace {

constexpr idx MOST_STEPS = 16;   // of a batch
constexpr off MANY = 64;         // terms of an entry of U12
constexpr off HUGE_COUNT = 512;  // of one of the trailing block

// Calls visit(position of U(j, k), place of L(i, j), position of (i, k)) for all terms of column k, j ascending.
template <class Visit> void for_terms(const ColumnPattern& a, idx k, idx p, std::vector<idx>& position, Visit&& visit) {
  const off begin = a.col_ptr[k];
  for (off e = begin; e < a.col_ptr[k + 1]; e++) position[a.row[e]] = (idx)(e - begin);
  for (off e = begin; e < a.col_ptr[k + 1] && a.row[e] < p; e++)
    for (off q = a.diag[a.row[e]] + 1; q < a.col_ptr[a.row[e] + 1]; q++) visit((idx)(e - begin), q, position[a.row[q]]);
}

// Data of the entries of a column before they are ranked, by position.
struct Entries {
  std::vector<idx> depth;
  std::vector<off> count;  // of terms
  idx uppers = 0;
};

// Positions in the order of ranks go to out.order; the ends of steps to out.step.
void rank(const Entries& e, TrailingTerms& out) {
  const idx length = (idx)e.count.size();
  const size_t begin = out.order.size();
  out.order.resize(begin + length);
  const auto own = out.order.begin() + begin, below = own + e.uppers;
  std::iota(own, out.order.end(), 0);
  std::sort(own, below, [&](idx a, idx b) {
    return std::tuple(e.depth[a], -e.count[a], a) < std::tuple(e.depth[b], -e.count[b], b);
  });
  std::sort(below, out.order.end(),
            [&](idx a, idx b) { return std::pair(-e.count[a], a) < std::pair(-e.count[b], b); });
  const auto rest = std::find_if(below, out.order.end(), [&](idx t) { return e.count[t] <= HUGE_COUNT; });
  out.huge.push_back((std::int32_t)(rest - below));
  idx r = 0;
  while (r < e.uppers && e.depth[own[r]] == 0) r++;
  out.step.push_back(r);
  for (; r < e.uppers; r++) {
    const bool last = r + 1 == e.uppers || e.depth[own[r + 1]] != e.depth[own[r]];
    if (last || (e.count[own[r]] > MANY) != (e.count[own[r + 1]] > MANY)) out.step.push_back(r + 1);
  }
}

// The column's steps, which begin at `begin`, become batches; steps that are too long are cut.
void cut_into_batches(const Entries& e, size_t begin, const TrailingMemory& memory, bool overlapped,
                      TrailingTerms& out) {
  const std::vector<std::int32_t> whole(out.step.begin() + begin, out.step.end());
  const idx* order = out.order.data() + out.order.size() - e.count.size();
  const off available = memory.available((off)e.count.size());
  out.step.resize(begin + 1);
  off entries = 0, terms = 0;  // of the batch
  idx steps = 0;
  auto end_step = [&](idx r) {
    if (r > out.step.back()) out.step.push_back(r), steps++;
  };
  auto end_batch = [&] {
    if (entries > 0) out.batch.push_back((std::int32_t)(out.step.size() - begin));
    entries = terms = 0, steps = 0;
  };
  for (size_t s = 1; s < whole.size(); s++) {
    for (idx r = whole[s - 1]; r < whole[s]; r++) {
      const off count = e.count[order[r]];
      if (batch_bytes(entries + 1, terms + count, memory.scalar_bytes) > available) end_step(r), end_batch();
      entries++, terms += count;
    }
    end_step(whole[s]);
    if (overlapped && steps >= MOST_STEPS) end_batch();
  }
  end_batch();
  out.step_ptr.push_back((off)out.step.size());
  out.batch_ptr.push_back((off)out.batch.size());
}

// Columns that each batch needs first, and those that are left. Terms are there.
void list_needs(const ColumnPattern& a, idx k, idx uppers, off first_rank, TrailingTerms& out) {
  std::vector<char> waited(uppers, 0);
  const idx* rows = a.row + a.col_ptr[k];
  auto wait = [&](idx t) {
    if (!waited[t]) out.need.push_back(rows[t]);
    waited[t] = 1;
  };
  const size_t column = out.step_ptr.size() - 2;
  const std::int32_t* step = out.step.data() + out.step_ptr[column];
  idx from = step[0];
  for (off b = out.batch_ptr[column]; b < out.batch_ptr[column + 1]; b++) {
    const idx end = step[out.batch[b] - 1];
    for (off q = out.term_ptr[first_rank + from]; q < out.term_ptr[first_rank + end]; q++) wait(out.position[q]);
    out.need_ptr.push_back((off)out.need.size());
    from = end;
  }
  for (idx t = 0; t < uppers; t++) wait(t);
  out.need_ptr.push_back((off)out.need.size());
}

}  // namespace

off count_trailing_terms(const ColumnPattern& a, idx p) {
  off count = 0;
  for (idx k = p; k < a.n; k++)
    for (off e = a.col_ptr[k]; e < a.col_ptr[k + 1] && a.row[e] < p; e++)
      count += a.col_ptr[a.row[e] + 1] - a.diag[a.row[e]] - 1;
  return count;
}

TrailingTerms make_trailing_terms(const ColumnPattern& a, idx p, const TrailingMemory& memory) {
  TrailingTerms out;
  const off all = count_trailing_terms(a, p);
  out.term_ptr.reserve(a.col_ptr[a.n] - a.col_ptr[p] + 1);
  out.term_ptr = {0};
  out.step_ptr = out.batch_ptr = out.need_ptr = {0};
  out.place.resize(all);
  out.position.resize(all);
  std::vector<idx> position(a.n);
  std::vector<off> next;
  Entries entries;
  for (idx k = p; k < a.n; k++) {
    const idx length = (idx)(a.col_ptr[k + 1] - a.col_ptr[k]);
    entries.depth.assign(length, 0);
    entries.count.assign(length, 0);
    entries.uppers = (idx)(std::lower_bound(a.row + a.col_ptr[k], a.row + a.col_ptr[k + 1], p) - a.row - a.col_ptr[k]);
    for_terms(a, k, p, position, [&](idx from, off, idx to) {
      entries.count[to]++;
      entries.depth[to] = std::max(entries.depth[to], entries.depth[from] + 1);
    });
    const size_t first_step = out.step.size();
    rank(entries, out);
    cut_into_batches(entries, first_step, memory, k - p < memory.overlapped, out);
    next.resize(length);
    const off first_rank = (off)out.term_ptr.size() - 1;
    for (idx r = 0; r < length; r++) {
      const idx t = out.order[first_rank + r];
      next[t] = out.term_ptr.back();
      out.term_ptr.push_back(next[t] + entries.count[t]);
    }
    for_terms(a, k, p, position, [&](idx from, off q, idx to) {
      const off term = next[to]++;
      out.place[term] = (std::int32_t)q;
      out.position[term] = from;
    });
    list_needs(a, k, entries.uppers, first_rank, out);
  }
  return out;
}

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
