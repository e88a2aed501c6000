// The quotient graph that minimum degree begins with.
#include <algorithm>
#include <bit>

#include "analysis/minimum_degree.hpp"

namespace gs {
namespace {

// Number of neighbours from which on a vertex is a hub: so large that few vertices are hubs.
constexpr idx many_neighbours = 24, many_hubs = 1024;

struct Hubs {
  idx least;    // neighbours
  off entries;  // of all hubs
};

Hubs find_degree_of_hubs(PatternView graph) {
  for (idx least = many_neighbours;; least *= 2) {
    idx count = 0;
    off entries = 0;
    for (idx i = 0; i < graph.n && count <= many_hubs; ++i)
      if (const off degree = graph.ptr[i + 1] - graph.ptr[i]; degree >= least) ++count, entries += degree;
    if (count <= many_hubs) return {least, entries};
  }
}

}  // namespace

template <class Offset> MinimumDegree<Offset>::MinimumDegree(PatternView graph)
    : n_(graph.n), list_size_((Offset)(graph.nnz() + graph.n)), hash_mask_(std::bit_floor((std::uint32_t)graph.n) - 1) {
  const std::size_t n = n_;
  const Hubs hubs = find_degree_of_hubs(graph);
  node_.resize(n), link_.resize(2 * n), arena_.resize(3 * n + list_size_ + 2 * hubs.entries);
  idx* next_free = arena_.data();
  for (idx** array : {&size_, &bucket_, &pivots_, &list_}) {
    *array = next_free;
    next_free += n;
  }
  load(graph, hubs.least);
}

// The lists of hubs get space for all their neighbours, as elements, and as much for the variables stored separately.
template <class Offset> void MinimumDegree<Offset>::find_hubs(idx least_degree) {
  Offset end = list_size_;
  for (idx i = 0; i < n_; ++i) {
    Node& node = node_[i];
    if (node.degree < least_degree) continue;
    node.start = end;
    node.parent = -2 - (idx)hubs_.size();
    hubs_.push_back({end + node.degree, 0, 0, i});
    end += 2 * node.degree;
  }
  adjacent_.resize((idx)hubs_.size());
}

template <class Offset> void MinimumDegree<Offset>::load(PatternView graph, idx hub_degree) {
  for (idx i = 0; i < n_; ++i) {
    node_[i] = {.degree = (idx)(graph.ptr[i + 1] - graph.ptr[i]), .stamp = 1, .parent = -1};
    size_[i] = 1;
  }
  find_hubs(hub_degree);
  for (idx head = n_; head < 2 * n_; ++head) link_[head] = {head, head};
  std::fill_n(bucket_, n_, -1);
  stamp_now_ = 2;
  longest_element_ = 2;
  for (idx i = 0; i < n_; ++i) load_list(i, graph);
}

template <class Offset> void MinimumDegree<Offset>::load_list(idx i, PatternView graph) {
  Node& node = node_[i];
  Hub* const own = is_hub(i) ? &hub(i) : nullptr;
  if (!own) node.start = list_end_;
  idx* const list = list_ + node.start;
  idx length = 0;
  for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
    const idx j = graph.ind[p];
    if (j == i) continue;
    if (own) list_[own->start + own->count++] = j;
    else list[length++] = j;
    if (own && is_hub(j)) adjacent_.add(hub_number(i), hub_number(j));
  }
  if (own) own->left = own->count;
  else list_end_ += length;
  node.length = length;
  node.degree = own ? own->count : length;
  push(i, node.degree);
}

template MinimumDegree<std::int32_t>::MinimumDegree(PatternView);
template MinimumDegree<off>::MinimumDegree(PatternView);

}  // namespace gs
