// The quotient graph of minimum degree.
//
// Nodes are variables (not eliminated yet) and elements (eliminated pivots). The list of a variable holds its elements
// first, then the variables that no element connects it to; the list of an element holds its variables.
// Invariant: the lists of the live nodes fit in the space of the original pattern, so nnz + n entries are enough.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace gs {

// Offset is 32 bits wherever the workspace allows: the lists are scattered and the offsets are read with them.
template <class Offset> class MinimumDegree {
 public:
  explicit MinimumDegree(PatternView graph);
  std::vector<idx> order();

 private:
  void load(PatternView graph);
  void remove_dense(PatternView graph);
  void strip_leaves(PatternView graph);
  void eliminate_independent(PatternView graph);
  void eliminate(idx pivot);
  void form_element(idx pivot);
  Offset gather(Offset from, idx count, Offset to);
  void count_outside(idx pivot);
  void update_degrees(idx pivot);
  void merge_indistinguishable(idx pivot);
  void merge_chain(idx i);
  void finish_element(idx pivot);
  void compress_lists();
  void raise_stamp(idx by);
  std::vector<idx> expand();

  // Lists of equal degree are rings through head n_ + degree, so that nothing needs to be asked.
  void push(idx i, idx degree) {
    const idx head = n_ + degree, first = link_[head].next;
    link_[i] = {first, head};
    link_[first].prev = i;
    link_[head].next = i;
  }
  void unlink(idx i) {
    const auto [next, prev] = link_[i];
    link_[prev].next = next;
    link_[next].prev = prev;
  }

  // What is read together lies together: one cache line a node.
  struct Node {
    Offset start = 0;    // where its list starts
    idx length = 0;      // of the list
    idx n_elements = 0;  // variable: elements at the front of the list; -1: a pivot of eliminate_independent
    idx degree = 0;      // variable: approximate external degree; element: columns in its list
    idx stamp = 0;       // element: 0 dead, else stamp_now_ + |Le \ Lp| once seen at this pivot
    idx parent = 0;      // what absorbed it
  };
  struct Link {
    idx next, prev;  // variable: list of equal degree; in the current element, hash chain and hash
  };

  const idx n_;
  std::vector<Node> node_;
  RawVector<Link> link_;
  RawVector<idx> arena_;
  idx* list_;  // the lists
  Offset list_size_, list_end_ = 0;
  idx* size_;    // columns a supervariable or pivot stands for; 0 absorbed; negative in the current element
  idx* bucket_;  // hash -> chain of variables
  idx *pivots_, n_pivots_ = 0;  // in elimination order; the first n_stripped_ cause no fill
  idx *dense_, n_dense_ = 0, n_stripped_ = 0;
  idx n_eliminated_ = 0, min_degree_ = 0, stamp_now_ = 1, longest_element_ = 0;
  std::uint32_t hash_mask_;
  idx pivot_size_ = 0, element_degree_ = 0;  // of the current pivot
};

}  // namespace gs
