// Lists of children of a forest.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

// Children of node s: list[ptr[s]] .. list[ptr[s+1]-1], ascending; the roots are those of one node more.
struct Children {
  std::vector<idx> ptr, list;

  explicit Children(const std::vector<idx>& parent) : ptr(parent.size() + 2), list(parent.size()) {
    const idx n = (idx)parent.size();
    const auto above = [&](idx s) { return parent[s] < 0 ? n : parent[s]; };
    for (idx s = 0; s < n; s++) ptr[above(s)]++;
    idx end = 0;
    for (idx& p : ptr) p = end += p;
    for (idx s = n; s-- > 0;) list[--ptr[above(s)]] = s;
  }
  void drop_roots() {
    ptr.pop_back();
    list.resize(ptr.back());
  }
  idx* begin(idx s) { return list.data() + ptr[s]; }
  idx* end(idx s) { return list.data() + ptr[s + 1]; }
};

}  // namespace gs
