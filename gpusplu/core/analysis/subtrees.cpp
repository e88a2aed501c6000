#include "analysis/subtrees.hpp"

#include <algorithm>

namespace gs {

std::vector<idx> subtree_sizes(const std::vector<idx>& parent) {
  std::vector<idx> size(parent.size(), 1);
  for (std::size_t j = 0; j < parent.size(); j++)
    if (parent[j] >= 0) size[parent[j]] += size[j];
  return size;
}

SubtreeCut cut_subtrees(const std::vector<idx>& size, int threads) {
  const idx n = (idx)size.size(), limit = threads > 1 ? std::max<idx>(1, n / (6 * threads)) : n;
  SubtreeCut cut;
  for (idx j = n - 1; j >= 0;) {
    if (size[j] > limit) {
      cut.top.push_back(j--);
      continue;
    }
    // neighbouring small subtrees are left apart: a thread takes the next within nanoseconds
    cut.subtrees.push_back({j - size[j] + 1, j + 1});
    j -= size[j];
  }
  std::reverse(cut.top.begin(), cut.top.end());
  std::reverse(cut.subtrees.begin(), cut.subtrees.end());
  return cut;
}

}  // namespace gs
