// The quotient graph of minimum degree.
//
// Nodes are variables (not eliminated yet) and elements (eliminated pivots). The list of a variable holds its elements
// first, then the variables that no element connects it to; the list of an element holds its variables.
// Invariant: the lists of the live nodes fit in the space of the original pattern, so nnz + n entries are enough.
//
// Hubs are variables with many neighbours, as supplies and clocks of circuits are. Searching the list of a hub whenever
// a neighbour is eliminated takes quadratic time. So the list of a hub holds its elements only; its variables are
// stored separately, not read before the hub is eliminated, and their columns are counted: a variable that leaves finds
// the hub in its own list, and bits mark the hubs that are still neighbours.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "analysis/column_counts.hpp"
#include "base/operation.hpp"

namespace gs {

// A graph by bits, and a set of its vertices.
class BitGraph {
 public:
  void resize(idx n) {
    words_ = (n + 63) / 64;
    rows_.assign((std::size_t)n * words_, 0);
    mask_.assign(words_, 0);
  }
  void add(idx i, idx j) { row(i)[j / 64] |= bit(j); }
  bool take(idx i, idx j) {
    const bool present = row(i)[j / 64] & bit(j);
    row(i)[j / 64] &= ~bit(j);
    return present;
  }
  void clear_mask() { std::fill(mask_.begin(), mask_.end(), 0); }
  void mask(idx i) { mask_[i / 64] |= bit(i); }
  // Takes the edges from i to the set, and calls taken(j) for each.
  template <class F> void take_masked(idx i, F&& taken) {
    for (idx w = 0; w < words_; ++w) {
      std::uint64_t both = row(i)[w] & mask_[w];
      row(i)[w] &= ~both;
      for (; both; both &= both - 1) taken(64 * w + (idx)std::countr_zero(both));
    }
  }

 private:
  static std::uint64_t bit(idx j) { return std::uint64_t(1) << (j % 64); }
  std::uint64_t* row(idx i) { return rows_.data() + (std::size_t)i * words_; }

  idx words_ = 0;
  std::vector<std::uint64_t> rows_, mask_;
};

// Offset is 32 bits where the workspace permits: the lists are scattered and the offsets are read with them.
// `graph`: without rows that are dense.
template <class Offset> class MinimumDegree {
 public:
  explicit MinimumDegree(PatternView graph);
  std::vector<idx> order();
  // Of the factor, once ordered.
  FactorSize size() const { return factor_; }

 private:
  // Fields that are read together are stored together: one cache line per node.
  struct Node {
    Offset start = 0;    // where its list starts
    idx length = 0;      // of the list
    idx n_elements = 0;  // variable: elements at the front of the list; element: -1
    idx degree = 0;      // variable: approximate external degree; element: columns in its list
    idx stamp = 0;       // element: 0 dead, else stamp_now_ + |Le \ Lp| once seen at this pivot
    idx parent = 0;      // the node that absorbed it; before that -1, for hub h: -2 - h
  };
  struct Hub {
    Offset start;  // variables stored separately
    idx count;
    idx left;  // columns of those that no element connects it to
    idx vertex;
  };
  struct Link {
    idx next, prev;  // variable: list of equal degree; in the current element, hash chain and hash
  };

  void load(PatternView graph, idx hub_degree);
  void load_list(idx i, PatternView graph);
  void find_hubs(idx least_degree);
  void eliminate(idx pivot);
  void form_element(idx pivot);
  Offset gather(Offset from, idx count, Offset to);
  void leave_hubs(idx pivot);
  Hub open_hub(idx pivot);
  void count_outside(idx pivot);
  void update_degrees(idx pivot);
  void update_degree(idx i, idx pivot, idx excluded);
  void part_hubs();
  void merge_indistinguishable(idx pivot);
  void merge_chain(idx i);
  void finish_element(idx pivot);
  void compress_lists();
  void raise_stamp(idx by);
  std::vector<idx> expand();

  // Lists of equal degree are rings through head n_ + degree, so that no operation needs a branch.
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

  bool is_hub(idx i) const { return node_[i].parent < -1; }
  idx hub_number(idx i) const { return -2 - node_[i].parent; }
  Hub& hub(idx i) { return hubs_[hub_number(i)]; }

  const idx n_;
  FactorSize factor_;
  RawVector<Node> node_;
  RawVector<Link> link_;
  std::vector<Hub> hubs_;
  std::vector<idx> hubs_of_element_;  // in the current element
  BitGraph adjacent_;                 // hubs
  RawVector<idx> arena_;
  idx* list_;                        // the lists; after them those of hubs, which do not move
  Offset list_size_, list_end_ = 0;  // without hubs
  idx* size_;    // columns a supervariable or pivot stands for; 0 absorbed; negative in the current element
  idx* bucket_;  // hash -> chain of variables
  idx *pivots_, n_pivots_ = 0;  // in elimination order
  idx n_eliminated_ = 0, min_degree_ = 0, stamp_now_ = 1, longest_element_ = 0;
  std::uint32_t hash_mask_;
  idx pivot_size_ = 0, element_degree_ = 0;  // of the current pivot
  Pace pace_;
};

}  // namespace gs
