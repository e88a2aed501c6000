#include "plan/columns/corner_terms.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace gs::gpu {
namespace {

constexpr off MOST_STEPS = 16;  // of a batch

// Calls visit(position of U(j, k), place of L(i, j), position of (i, k)) for all terms of column k, j ascending.
template <class Visit> void for_terms(const ColumnPattern& a, idx k, idx p, std::vector<idx>& position, Visit&& visit) {
  const off begin = a.col_ptr[k];
  for (off e = begin; e < a.col_ptr[k + 1]; e++) position[a.row[e]] = (idx)(e - begin);
  for (off e = begin; e < a.col_ptr[k + 1] && a.row[e] < p; e++)
    for (off q = a.diag[a.row[e]] + 1; q < a.col_ptr[a.row[e] + 1]; q++) visit((idx)(e - begin), q, position[a.row[q]]);
}

// What is known of the entries of a column before they are ranked, by position.
struct Entries {
  std::vector<idx> depth;
  std::vector<off> count;  // of terms
  idx uppers = 0;
};

// Ranks U12's entries in out.order; first[l] is the rank of the first of depth l.
std::vector<idx> rank(const Entries& e, CornerTerms& out) {
  const size_t begin = out.order.size();
  out.order.resize(begin + e.uppers);
  const auto own = out.order.begin() + begin;
  std::iota(own, out.order.end(), 0);
  std::sort(own, out.order.end(), [&](idx a, idx b) {
    return std::tuple(e.depth[a], -e.count[a], a) < std::tuple(e.depth[b], -e.count[b], b);
  });
  out.order_ptr.push_back((off)out.order.size());
  std::vector<idx> first = {0};
  for (idx r = 0; r < e.uppers; r++)
    while ((idx)first.size() <= e.depth[own[r]]) first.push_back(r);
  first.push_back(e.uppers);
  return first;
}

void cut_into_batches(const Entries& e, const std::vector<idx>& first, const CornerMemory& memory, CornerTerms& out) {
  const idx* order = out.order.data() + out.order.size() - e.uppers;
  const off room = memory.batch_bytes((off)e.count.size());
  const size_t begin = out.step.size();
  idx from = first[1];  // of the step
  out.step.push_back(from);
  off used = BYTES_BATCH, depths = 0;
  auto end_step = [&](idx r) {
    if (r > from) out.step.push_back(r);
    from = r;
  };
  auto end_batch = [&] {
    if (used > BYTES_BATCH) out.batch.push_back((std::int32_t)(out.step.size() - begin));
    used = BYTES_BATCH, depths = 0;
  };
  for (size_t l = 1; l + 1 < first.size(); l++) {
    for (idx r = first[l]; r < first[l + 1]; r++) {
      const off needed = BYTES_ENTRY + e.count[order[r]] * (memory.scalar_bytes + BYTES_TERM);
      if (used + needed > room) end_step(r), end_batch();
      used += needed;
    }
    end_step(first[l + 1]);
    if (++depths == MOST_STEPS) end_batch();
  }
  end_batch();
  out.step_ptr.push_back((off)out.step.size());
  out.batch_ptr.push_back((off)out.batch.size());
}

}  // namespace

off count_corner_terms(const ColumnPattern& a, idx p) {
  off count = 0;
  for (idx k = p; k < a.n; k++)
    for (off e = a.col_ptr[k]; e < a.col_ptr[k + 1] && a.row[e] < p; e++)
      count += a.col_ptr[a.row[e] + 1] - a.diag[a.row[e]] - 1;
  return count;
}

CornerTerms make_corner_terms(const ColumnPattern& a, idx p, const CornerMemory& memory) {
  CornerTerms out;
  const off all = count_corner_terms(a, p);
  out.term_ptr.reserve(a.col_ptr[a.n] - a.col_ptr[p] + 1);
  out.term_ptr = {0};
  out.order_ptr = out.step_ptr = out.batch_ptr = {0};
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
    cut_into_batches(entries, rank(entries, out), memory, out);
    next.resize(length);
    const idx* order = out.order.data() + out.order_ptr[k - p];
    for (idx r = 0; r < length; r++) {
      const idx t = r < entries.uppers ? order[r] : r;
      next[t] = out.term_ptr.back();
      out.term_ptr.push_back(next[t] + entries.count[t]);
    }
    for_terms(a, k, p, position, [&](idx from, off q, idx to) {
      const off term = next[to]++;
      out.place[term] = (std::int32_t)q;
      out.position[term] = from;
    });
  }
  return out;
}

}  // namespace gs::gpu
