// Disjoint subtrees of a postordered forest, for passes over it on several threads.
#pragma once
#include <vector>

#include "base/parallel.hpp"

namespace gs {

// Below the cut: subtrees of at most a certain size, each the nodes begin .. end-1 with root end-1. Above the cut:
// `top`, ascending.
struct SubtreeCut {
  std::vector<Slice<idx>> subtrees;  // ascending
  std::vector<idx> top;

  // Calls subtree(k) and node(j) for all of them, in the order of the forest.
  template <class Subtree, class Node> void in_order(Subtree&& subtree, Node&& node) const {
    std::size_t k = 0;
    for (const idx j : top) {
      for (; k < subtrees.size() && subtrees[k].end <= j; k++) subtree(k);
      node(j);
    }
    for (; k < subtrees.size(); k++) subtree(k);
  }
};

// Nodes of the subtree of every node, itself included, of a forest with parent[j] > j.
std::vector<idx> subtree_sizes(const std::vector<idx>& parent);

// Cuts for a team of `threads`: subtrees of at most a fraction of the nodes, so that threads share them evenly. One
// thread gets the whole forest as it is: every tree is a subtree.
SubtreeCut cut_subtrees(const std::vector<idx>& size, int threads);

}  // namespace gs
