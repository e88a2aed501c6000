// First and last steps of fill-reducing orderings, which need no method of their own: vertices with at most two
// neighbours, which are most vertices of circuits and power grids, and dense rows.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "analysis/column_counts.hpp"

namespace gs {

// Whether a graph has dense rows, or so many vertices of low degree that a copy without them saves time.
bool has_low_degrees(PatternView graph);

// Orders the others: a graph of the vertices `vertex`, with the edges that eliminating the first ones leaves, in no
// order. Adds the size of their columns, if it knows it.
using OrderOfRest = std::function<std::vector<idx>(PatternView rest, const std::vector<idx>& vertex, FactorSize& size)>;

// When vertices with at most one neighbour are eliminated: first, again and again, as they cause no fill, or in rounds
// with those that have two, which makes shallow trees of chains.
enum class Leaves { first, in_rounds };

// Orders a graph: dense rows, which would make every degree large and every update slow (the paper on AMD, amd.cpp,
// sec. 6), last, and vertices of low degree first. No two that are eliminated in one round have a common neighbour, so
// that trees stay low. A vertex with two neighbours is replaced by an edge between them. Minimum degree would take
// these vertices in some such order too. Cost: O(nnz), and the searches for such vertices in the lists of their
// neighbours.
//
// `size` (out): of the factor; none if there are dense rows.
std::vector<idx> order_without_low_degrees(PatternView graph, Leaves leaves, const OrderOfRest& order,
                                           std::optional<FactorSize>* size = nullptr);

}  // namespace gs
