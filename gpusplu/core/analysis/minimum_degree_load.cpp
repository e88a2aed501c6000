// What minimum degree begins with: rows that are dense, vertices that cause no fill, an independent set of degree 2,
// and the lists of all that is left.
#include <algorithm>
#include <bit>
#include <cmath>

#include "analysis/minimum_degree.hpp"

namespace gs {
namespace {

// Neighbours from which on a vertex is a hub: so many that few are.
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
  node_.resize(n), link_.resize(2 * n), arena_.resize(4 * n + list_size_ + 2 * hubs.entries);
  idx* next_free = arena_.data();
  for (idx** array : {&size_, &bucket_, &pivots_, &dense_, &list_}) {
    *array = next_free;
    next_free += n;
  }
  load(graph, hubs.least);
}

// Degrees, and the rows that are dense: these are ordered last, they would make every degree large and every update
// slow (the paper's sec. 6, 10 sqrt(n)). A graph dense throughout keeps them.
template <class Offset> void MinimumDegree<Offset>::remove_dense(PatternView graph) {
  const double limit = std::max(16.0, 10 * std::sqrt((double)n_));
  for (idx i = 0; i < n_; ++i) {
    const idx* const begin = graph.ind + graph.ptr[i];
    const idx* const end = graph.ind + graph.ptr[i + 1];
    const idx degree = (idx)(end - begin) - (idx)std::count(begin, end, i);
    node_[i] = {.degree = degree, .stamp = 1, .parent = -1};
    size_[i] = 1;
    if (degree > limit) dense_[n_dense_++] = i;
  }
  if (n_dense_ > n_ / 4) n_dense_ = 0;
  for (idx k = 0; k < n_dense_; ++k) {
    const idx i = dense_[k];
    size_[i] = 0;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) --node_[graph.ind[p]].degree;
  }
  n_eliminated_ = n_dense_;
}

// Eliminates vertices of degree 0 and 1, again and again: they cause no fill, and minimum degree would take them first.
template <class Offset> void MinimumDegree<Offset>::strip_leaves(PatternView graph) {
  for (idx i = 0; i < n_; ++i)
    if (size_[i] && node_[i].degree <= 1) pivots_[n_pivots_++] = i;
  for (idx k = 0; k < n_pivots_; ++k) {
    const idx i = pivots_[k];
    size_[i] = 0;
    factor_.add(node_[i].degree + 1, 1);
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
      const idx j = graph.ind[p];
      if (size_[j] && --node_[j].degree == 1) pivots_[n_pivots_++] = j;
    }
  }
  n_stripped_ = n_pivots_;
  n_eliminated_ += n_stripped_;
}

// Eliminates an independent set of vertices of degree 2 at once, the next that minimum degree would take (multiple
// elimination: Liu, "Modification of the minimum-degree algorithm by multiple elimination", ACM TOMS 11(2), 1985):
// their neighbours are spared an update for each. Circuits and power grids have many.
template <class Offset> void MinimumDegree<Offset>::eliminate_independent(PatternView graph) {
  char* const blocked = reinterpret_cast<char*>(bucket_);
  std::fill_n(blocked, n_, 0);
  for (idx i = n_; i-- > 0;) {
    if (node_[i].degree != 2 || blocked[i] || !size_[i]) continue;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) blocked[graph.ind[p]] = 1;
    node_[i].n_elements = -1;
    pivots_[n_pivots_++] = i;
    factor_.add(3, 1);
    ++n_eliminated_;
  }
}

// The lists of hubs get room for all their neighbours, as elements, and as much for those that are put aside.
template <class Offset> void MinimumDegree<Offset>::find_hubs(idx least_degree) {
  Offset end = list_size_;
  for (idx i = 0; i < n_; ++i) {
    Node& node = node_[i];
    if (!size_[i] || node.degree < least_degree) continue;
    node.start = end;
    node.parent = -2 - (idx)hubs_.size();
    hubs_.push_back({end + node.degree, 0, 0, i});
    end += 2 * node.degree;
  }
  adjacent_.resize((idx)hubs_.size());
}

// Copies the lists of what is left.
template <class Offset> void MinimumDegree<Offset>::load(PatternView graph, idx hub_degree) {
  remove_dense(graph);
  strip_leaves(graph);
  eliminate_independent(graph);
  find_hubs(hub_degree);
  for (idx head = n_; head < 2 * n_; ++head) link_[head] = {head, head};
  std::fill_n(bucket_, n_, -1);
  stamp_now_ = 2;
  longest_element_ = 2;
  for (idx i = 0; i < n_; ++i)
    if (size_[i]) load_list(i, graph);
}

template <class Offset> void MinimumDegree<Offset>::load_list(idx i, PatternView graph) {
  Node& node = node_[i];
  Hub* const own = is_hub(i) ? &hub(i) : nullptr;
  if (!own) node.start = list_end_;
  idx* const list = list_ + node.start;
  idx length = 0, elements = 0;
  off degree = 0;
  for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
    const idx j = graph.ind[p];
    if (j == i || !size_[j]) continue;
    if (node_[j].n_elements < 0) {
      list[length++] = list[elements];
      list[elements++] = j;
      degree += node_[j].degree - 1;
      continue;
    }
    ++degree;
    if (own) list_[own->start + own->count++] = j;
    else list[length++] = j;
    if (own && is_hub(j)) adjacent_.add(hub_number(i), hub_number(j));
  }
  if (own) own->left = own->count;
  else list_end_ += length;
  node.length = length;
  if (node.n_elements < 0) return;
  node.n_elements = elements;
  node.degree = (idx)std::min<off>(degree, n_ - n_eliminated_ - 1);
  push(i, node.degree);
}

template MinimumDegree<std::int32_t>::MinimumDegree(PatternView);
template MinimumDegree<off>::MinimumDegree(PatternView);

}  // namespace gs
