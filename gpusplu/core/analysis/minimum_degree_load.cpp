// What minimum degree begins with: rows that are dense, vertices that cause no fill, an independent set of degree 2,
// and the lists of all that is left.
#include <algorithm>
#include <bit>
#include <cmath>

#include "analysis/minimum_degree.hpp"

namespace gs {

template <class Offset> MinimumDegree<Offset>::MinimumDegree(PatternView graph)
    : n_(graph.n), list_size_((Offset)(graph.nnz() + graph.n)), hash_mask_(std::bit_floor((std::uint32_t)graph.n) - 1) {
  const std::size_t n = n_;
  node_.resize(n), link_.resize(2 * n), arena_.resize(4 * n + list_size_);
  idx* next_free = arena_.data();
  for (idx** array : {&size_, &bucket_, &pivots_, &dense_, &list_}) {
    *array = next_free;
    next_free += n;
  }
  load(graph);
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
    ++n_eliminated_;
  }
}

// Copies the lists of what is left.
template <class Offset> void MinimumDegree<Offset>::load(PatternView graph) {
  remove_dense(graph);
  strip_leaves(graph);
  eliminate_independent(graph);
  for (idx head = n_; head < 2 * n_; ++head) link_[head] = {head, head};
  std::fill_n(bucket_, n_, -1);
  stamp_now_ = 2;
  longest_element_ = 2;
  for (idx i = 0; i < n_; ++i) {
    if (!size_[i]) continue;
    Node& node = node_[i];
    node.start = list_end_;
    idx* const list = list_ + list_end_;
    idx length = 0, elements = 0;
    off degree = 0;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
      const idx j = graph.ind[p];
      if (j == i || !size_[j]) continue;
      if (node_[j].n_elements < 0) {
        list[length++] = list[elements];
        list[elements++] = j;
        degree += node_[j].degree - 1;
      } else {
        list[length++] = j;
        ++degree;
      }
    }
    list_end_ += length;
    node.length = length;
    if (node.n_elements < 0) continue;
    node.n_elements = elements;
    node.degree = (idx)std::min<off>(degree, n_ - n_eliminated_ - 1);
    push(i, node.degree);
  }
  for (idx k = n_stripped_; k < n_pivots_; ++k) node_[pivots_[k]].n_elements = 0;
}

template MinimumDegree<std::int32_t>::MinimumDegree(PatternView);
template MinimumDegree<off>::MinimumDegree(PatternView);

}  // namespace gs
