#include "analysis/supernodes.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "analysis/elimination_tree.hpp"

namespace gs {
namespace {

double sum_of_squares(double m) { return m * (m + 1) * (2 * m + 1) / 6; }  // 1 + 4 + .. + m^2

// A supernode while merging: its front has `width` columns and `height` rows below; `zeros` entries of its part of L
// are explicit zeros.
struct Front {
  double width, height, zeros;
  double entries() const { return width * (width + 1) / 2 + width * height; }
};

double modelled_seconds(const Front& f, bool cholesky, const Relaxation& r) {
  const double order = f.width + f.height;
  const double bytes = 8 * (order * order + f.height * f.height);
  return r.costs.fronts + r.costs.columns * f.width + front_flops(f.width, f.height, cholesky) / r.flop_rate +
         bytes / r.bandwidth;
}

double zero_limit(double width, const Relaxation& r) {
  for (int k = 0; k < 3; k++)
    if (width <= r.columns[k]) return r.zero_fraction[k];
  return r.zero_fraction[3];
}

Front merged(const Front& child, const Front& parent) {
  Front f{child.width + parent.width, parent.height, 0};
  f.zeros = f.entries() - (child.entries() - child.zeros) - (parent.entries() - parent.zeros);
  return f;
}

// Calls visit(s, children) for every node of a postordered forest after its children, which are given in ascending
// order and may be sorted; size: subtree_sizes.
template <class F> void for_nodes_upwards(const std::vector<idx>& tree, const std::vector<idx>& size, F&& visit) {
  const int threads = threads_for(8 * (off)tree.size());
  struct alignas(64) Local {
    std::vector<idx> children;
  };
  std::vector<Local> local(threads);
  up_the_forest(tree, size, threads, [&](idx s, int rank) {
    std::vector<idx>& children = local[rank].children;
    children.clear();
    for (idx child = s - 1; child > s - size[s]; child -= size[child]) children.push_back(child);
    std::reverse(children.begin(), children.end());
    visit(s, children);
  });
}

// merged_into[s]: the supernode into which s merged, -1 if it stays. Children with more rows go first: they share most
// with the parent.
std::vector<idx> merge_bottom_up(std::vector<Front>& fronts, const std::vector<idx>& super_parent, bool cholesky,
                                 const Relaxation& r) {
  std::vector<idx> merged_into(fronts.size(), -1);
  RawVector<double> seconds(fronts.size());
  for_nodes_upwards(super_parent, subtree_sizes(super_parent), [&](idx s, std::vector<idx>& children) {
    seconds[s] = modelled_seconds(fronts[s], cholesky, r);
    std::sort(children.begin(), children.end(), [&](idx a, idx b) {
      return fronts[a].height != fronts[b].height ? fronts[a].height > fronts[b].height : a > b;
    });
    for (const idx c : children) {
      const Front both = merged(fronts[c], fronts[s]);
      if (both.zeros > zero_limit(both.width, r) * both.entries()) continue;
      const double seconds_both = modelled_seconds(both, cholesky, r);
      if (seconds_both > seconds[c] + seconds[s]) continue;
      fronts[s] = both;
      seconds[s] = seconds_both;
      merged_into[c] = s;
    }
  });
  return merged_into;
}

// Places in a postorder of the tree, in itself a postorder, with siblings by decreasing (peak of the subtree's storage
// - its contribution block).
std::vector<idx> order_siblings(const std::vector<Front>& fronts, const std::vector<idx>& tree) {
  const idx nsuper = (idx)fronts.size();
  const std::vector<idx> size = subtree_sizes(tree);
  RawVector<double> peak(nsuper);
  std::vector<idx> place(nsuper);  // at first how many places before its parent a node is; roots stay in order
  for_nodes_upwards(tree, size, [&](idx s, std::vector<idx>& children) {
    const auto block = [&](idx c) { return fronts[c].height * fronts[c].height; };
    std::stable_sort(children.begin(), children.end(),
                     [&](idx a, idx b) { return peak[a] - block(a) > peak[b] - block(b); });
    double stack = 0, most = 0;
    idx before = size[s];
    for (const idx c : children) {
      most = std::max(most, stack + peak[c]);
      stack += block(c);
      place[c] = before - size[c], before -= size[c];
    }
    const double order = fronts[s].width + fronts[s].height;
    peak[s] = std::max(most, stack + order * order);
  });
  for (idx s = nsuper - 1; s >= 0; s--) place[s] = tree[s] >= 0 ? place[tree[s]] - place[s] : s;
  return place;
}

}  // namespace

double front_flops(double width, double height, bool cholesky) {
  const double order = width + height;
  if (cholesky) return sum_of_squares(order) - sum_of_squares(height);
  const double below = width * (order - 1) - width * (width - 1) / 2;  // divisions
  return below + 2 * (sum_of_squares(order - 1) - (height > 0 ? sum_of_squares(height - 1) : 0));
}

std::vector<idx> fundamental_supernodes(const std::vector<idx>& parent, const std::vector<idx>& col_count) {
  const idx n = (idx)parent.size();
  std::vector<char> has_others(n);  // children besides the column before
  over_range(n, n, [&](idx begin, idx end) {
    for (idx j = begin; j < end; j++)
      if (parent[j] > j + 1) std::atomic_ref<char>(has_others[parent[j]]).store(1, std::memory_order_relaxed);
  });
  std::vector<idx> super_ptr = indices_where(
      n, [&](idx j) { return j == 0 || parent[j - 1] != j || has_others[j] || col_count[j - 1] != col_count[j] + 1; });
  super_ptr.push_back(n);
  return super_ptr;
}

SupernodePartition relaxed_supernodes(const std::vector<idx>& parent, const std::vector<idx>& col_count, bool cholesky,
                                      const Relaxation& relaxation) {
  const idx n = (idx)parent.size();
  const std::vector<idx> first_column = fundamental_supernodes(parent, col_count);
  const idx nfundamental = (idx)first_column.size() - 1;
  RawVector<idx> super_of(n);
  std::vector<idx> super_parent(nfundamental);
  std::vector<Front> fronts(nfundamental);
  const auto for_fundamental = [&](auto&& visit) {
    over_range(nfundamental, 2 * (off)n, [&](idx first, idx last) {
      for (idx s = first; s < last; s++) visit(s, first_column[s], first_column[s + 1]);
    });
  };
  for_fundamental([&](idx s, idx begin, idx end) {
    std::fill(super_of.begin() + begin, super_of.begin() + end, s);
    fronts[s] = {(double)(end - begin), (double)(col_count[end - 1] - 1), 0};
  });
  for_fundamental([&](idx s, idx, idx end) {
    const idx above = parent[end - 1];
    super_parent[s] = above >= 0 ? super_of[above] : -1;
  });
  const std::vector<idx> merged_into = merge_bottom_up(fronts, super_parent, cholesky, relaxation);

  // Number the remaining supernodes: kept[s] is the merged supernode that s belongs to.
  std::vector<idx> kept(nfundamental);
  idx nsuper = 0;
  for (idx s = 0; s < nfundamental; s++)
    if (merged_into[s] < 0) {
      fronts[nsuper] = fronts[s];
      kept[s] = nsuper++;
    }
  for (idx s = nfundamental - 1; s >= 0; s--)
    if (merged_into[s] >= 0) kept[s] = kept[merged_into[s]];
  fronts.resize(nsuper);
  std::vector<idx> tree(nsuper);
  for (idx s = 0; s < nfundamental; s++)
    if (merged_into[s] < 0) tree[kept[s]] = super_parent[s] >= 0 ? kept[super_parent[s]] : -1;
  SupernodePartition out{std::vector<idx>(n), std::vector<idx>((std::size_t)nsuper + 1), std::vector<idx>(nsuper)};
  const std::vector<idx> place = order_siblings(fronts, tree);
  for (idx s = 0; s < nsuper; s++) {
    out.super_ptr[place[s] + 1] = (idx)fronts[s].width;
    out.super_parent[place[s]] = tree[s] >= 0 ? place[tree[s]] : -1;
  }
  std::inclusive_scan(out.super_ptr.begin(), out.super_ptr.end(), out.super_ptr.begin());
  // Columns of one merged supernode keep their order, which is topological.
  std::vector<idx> next(nsuper), target(nfundamental);
  for (idx s = 0; s < nsuper; s++) next[s] = out.super_ptr[place[s]];
  for (idx s = 0; s < nfundamental; s++)
    target[s] = std::exchange(next[kept[s]], next[kept[s]] + first_column[s + 1] - first_column[s]);
  for_fundamental([&](idx s, idx begin, idx end) {
    std::iota(out.column_order.begin() + target[s], out.column_order.begin() + target[s] + (end - begin), begin);
  });
  return out;
}

}  // namespace gs
