#include "analysis/delays.hpp"

#include <algorithm>
#include <utility>

#include "analysis/graph.hpp"
#include "analysis/structure.hpp"

namespace gs {
namespace {

// A graph of columns as they are numbered in the analysis: the first column of every front that stays there is a
// neighbour of all the rest of the front. Its elimination couples these, as the entries of A and fill do. Where none
// stays, all of them are, because others may be eliminated before the first.
Pattern graph_of_fronts(const Symbolic& symbolic, const std::vector<char>& is_delayed) {
  std::vector<std::pair<idx, idx>> edges;
  for (idx s = 0; s < symbolic.nsuper(); s++) {
    const idx begin = symbolic.super_ptr[s], end = symbolic.super_ptr[s + 1];
    const auto make_centre = [&](idx centre) {
      const auto couple = [&](idx i) {
        if (i != centre) edges.emplace_back(centre, i), edges.emplace_back(i, centre);
      };
      for (idx i = begin; i < end; i++) couple(i);
      for (off p = symbolic.row_ptr[s]; p < symbolic.row_ptr[s + 1]; p++) couple(symbolic.row_ind[p]);
    };
    idx stays = begin;
    while (stays < end && is_delayed[stays]) stays++;
    if (stays < end) make_centre(stays);
    else
      for (idx i = begin; i < end; i++) make_centre(i);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  Pattern graph;
  graph.n = symbolic.n;
  graph.ptr.assign(symbolic.n + 1, 0);
  for (const auto& [i, j] : edges) graph.ptr[i + 1]++, graph.ind.push_back(j);
  for (idx i = 0; i < symbolic.n; i++) graph.ptr[i + 1] += graph.ptr[i];
  return graph;
}

std::vector<idx> delayed_order(const Symbolic& symbolic, const std::vector<char>& is_delayed) {
  std::vector<std::vector<idx>> from_children(symbolic.nsuper());
  std::vector<idx> order;
  order.reserve(symbolic.n);
  for (idx s = 0; s < symbolic.nsuper(); s++) {
    const idx parent = symbolic.super_parent[s];
    for (idx j = symbolic.super_ptr[s]; j < symbolic.super_ptr[s + 1]; j++) {
      if (is_delayed[j] && parent >= 0) from_children[parent].push_back(j);
      else order.push_back(j);
    }
    order.insert(order.end(), from_children[s].begin(), from_children[s].end());
  }
  return order;
}

}  // namespace

Symbolic delay_columns(const Symbolic& symbolic, const std::vector<idx>& columns) {
  const std::vector<idx> inverse = inverse_permutation(symbolic.col_perm.data(), symbolic.n);
  std::vector<char> is_delayed(symbolic.n, 0);
  for (const idx j : columns) is_delayed[inverse[j]] = 1;
  Symbolic out(symbolic);
  const Pattern graph = graph_of_fronts(symbolic, is_delayed);
  const std::vector<idx> perm = supernodal_structure(graph.view(), delayed_order(symbolic, is_delayed),
                                                     Relaxation{symbolic.costs.supernodes}, out);
  out.col_perm = gather(symbolic.col_perm, perm);
  out.row_perm = out.col_perm;
  return out;
}

}  // namespace gs
