#include "plan/columns/long_columns.hpp"

#include <algorithm>
#include <numeric>

namespace gs::gpu {
namespace {

constexpr idx MOST_TERMS = 16;   // of a shallow entry, which one thread sums up
constexpr idx HUGE_TERMS = 512;  // from here on all warps sum up an entry
constexpr idx DEEP = -1;         // depth of entries that cannot be shallow

struct Analyzer {
  const ColumnPattern& p;
  const LongColumnCosts& costs;
  std::vector<idx> position, depth, terms;  // position: of a row in the column; others: by position
  idx k = 0, uppers = 0, length = 0;

  Analyzer(const ColumnPattern& pattern, const LongColumnCosts& costs_) : p(pattern), costs(costs_) {
    const off entries = p.n ? p.col_ptr[p.n] : 0;
    position.resize(entries ? *std::max_element(p.row, p.row + entries) + 1 : 0);
  }

  // Calls visit(position of U(j, k), place of L(i, j), position of (i, k)), j ascending.
  template <class Visit> void for_terms(Visit&& visit) const {
    for (idx t = 0; t < uppers; t++) {
      const idx j = p.row[p.col_ptr[k] + t];
      for (off q = p.diag[j] + 1; q < p.col_ptr[j + 1]; q++) visit(t, q, position[p.row[q]]);
    }
  }

  void begin(idx column) {
    k = column;
    const off first = p.col_ptr[k];
    uppers = (idx)(p.diag[k] - first);
    length = (idx)(p.col_ptr[k + 1] - first);
    for (idx t = 0; t < length; t++) position[p.row[first + t]] = t;
    depth.assign(length, 0);
    terms.assign(length, 0);
    for_terms([&](idx from, off, idx to) {
      if (++terms[to] > MOST_TERMS || depth[from] == DEEP) depth[to] = DEEP;
      if (depth[to] != DEEP) depth[to] = std::max(depth[to], depth[from] + 1);
    });
    for (idx t = uppers; t < length; t++) depth[t] = DEEP;
    cut();
  }

  // Entries stop being shallow where one depth after the other takes longer than one update after the other.
  void cut() {
    std::vector<idx> entries, most;  // by depth
    for (idx t = 0; t < uppers; t++) {
      if (depth[t] == DEEP) continue;
      if (depth[t] >= (idx)entries.size()) entries.resize(depth[t] + 1), most.resize(depth[t] + 1);
      entries[depth[t]]++;
      most[depth[t]] = std::max(most[depth[t]], terms[t]);
    }
    double gain = 0, best = 0;
    idx depths = 0;
    for (idx d = 0; d < (idx)entries.size(); d++) {
      const idx rounds = (entries[d] + COLUMN_THREADS - 1) / COLUMN_THREADS;
      gain +=
          costs.update * entries[d] - (d ? costs.depth + costs.round * rounds + costs.terms * ((most[d] + 3) / 4) : 0);
      if (gain > best) best = gain, depths = d + 1;
    }
    for (idx& d : depth)
      if (d >= depths) d = DEEP;
  }

  idx kind(idx t) const { return terms[t] > HUGE_TERMS ? 0 : 1; }  // of entries that are not shallow

  idx shallow_count() const { return uppers - (idx)std::count(depth.begin(), depth.begin() + uppers, DEEP); }
  // Terms with a shallow entry as a factor.
  off listed() const {
    off count = 0;
    for (idx t = 0; t < uppers; t++) {
      const idx j = p.row[p.col_ptr[k] + t];
      if (depth[t] != DEEP) count += p.col_ptr[j + 1] - p.diag[j] - 1;
    }
    return count;
  }

  void append(LongColumns& out) {
    std::fill(terms.begin(), terms.end(), 0);
    for_terms([&](idx from, off, idx to) { terms[to] += depth[from] != DEEP; });
    LongColumn part{};
    part.target = (std::int32_t)out.target.size(), part.level = (std::int32_t)out.level.size();
    part.rest = (std::int32_t)out.rest.size(), part.shallow = (std::int32_t)out.shallow.size();
    idx depths = 0;
    for (idx t = 0; t < uppers; t++) {
      (depth[t] == DEEP ? out.rest : out.shallow).push_back(t);
      depths = std::max(depths, depth[t] + 1);
    }
    std::vector<idx> order(length);
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](idx t) { return !terms[t]; });  // depth 0 too
    auto rank = [&](idx t) { return depth[t] != DEEP ? depth[t] : depths + kind(t); };
    std::stable_sort(order.begin(), order.end(), [&](idx a, idx b) { return rank(a) < rank(b); });
    std::vector<std::int32_t> ends(depths + 2, part.target);
    for (idx t : order) ends[rank(t)]++;
    for (size_t e = 1; e < ends.size(); e++) ends[e] += ends[e - 1] - part.target;
    out.level.insert(out.level.end(), ends.begin() + std::min(depths, 1), ends.begin() + depths);
    part.depths = std::max(depths - 1, 0), part.huge_end = ends[depths], part.deep_end = ends[depths + 1];
    part.rest_count = (std::int32_t)out.rest.size() - part.rest,
    part.shallow_count = (std::int32_t)out.shallow.size() - part.shallow;
    out.column.push_back(k);
    out.parts.push_back(part);
    append_terms(order, out);
  }

  void append_terms(const std::vector<idx>& order, LongColumns& out) {
    std::vector<idx> next(length);
    for (idx t : order) {
      next[t] = out.term_ptr.back();
      out.target.push_back(t);
      out.term_ptr.push_back(next[t] + terms[t]);
    }
    out.term.resize(out.term_ptr.back());
    for_terms([&](idx from, off q, idx to) {
      if (depth[from] != DEEP) out.term[next[to]++] = {(std::int32_t)q, from};
    });
  }
};

}  // namespace

std::vector<idx> choose_long_columns(const ColumnPattern& p, const idx* level, const LongColumnCosts& costs,
                                     off most_listed) {
  std::vector<idx> out;
  Analyzer analyzer(p, costs);
  off listed = 0;
  for (idx k = 0; k < p.n; k++) {
    if (costs.update * (double)(p.diag[k] - p.col_ptr[k]) < costs.level * level[k] + costs.block) continue;
    analyzer.begin(k);
    if (costs.update * analyzer.shallow_count() <= costs.block || listed + analyzer.listed() > most_listed) continue;
    listed += analyzer.listed();
    out.push_back(k);
  }
  return out;
}

LongColumns make_long_columns(const ColumnPattern& p, const std::vector<idx>& columns, const LongColumnCosts& costs) {
  LongColumns out;
  out.term_ptr = {0};
  Analyzer analyzer(p, costs);
  for (idx k : columns) {
    analyzer.begin(k);
    analyzer.append(out);
  }
  return out;
}

}  // namespace gs::gpu
