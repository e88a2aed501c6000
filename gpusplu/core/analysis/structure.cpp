#include "analysis/structure.hpp"

#include <algorithm>
#include <utility>

#include "analysis/elimination_tree.hpp"
#include "analysis/graph.hpp"

namespace gs {
namespace {

// The rows of a supernode below its columns are those of the columns' entries and of its children.
void find_rows(PatternView graph, const std::vector<idx>& perm, Symbolic& out) {
  const idx nsuper = out.nsuper();
  out.row_ptr.assign((std::size_t)nsuper + 1, 0);
  for (idx s = 0; s < nsuper; s++) out.row_ptr[s + 1] = out.row_ptr[s] + out.col_count[out.super_ptr[s + 1] - 1] - 1;
  out.row_ind.resize(out.row_ptr[nsuper]);
  const std::vector<idx> inverse = inverse_permutation(perm.data(), graph.n), size = subtree_sizes(out.super_parent);
  const int threads = threads_for_random(graph.nnz());
  struct alignas(64) Local {
    std::vector<idx> seen;  // of each row, the last supernode that has it
    Pace pace;
  };
  std::vector<Local> local(threads);
  const auto find = [&](idx s, std::vector<idx>& seen) {
    const idx end = out.super_ptr[s + 1];
    idx *const rows = out.row_ind.data() + out.row_ptr[s], *next = rows;
    const auto add = [&](idx i) {
      if (i >= end && std::exchange(seen[i], s) != s) *next++ = i;
    };
    for (idx child = s - 1; child > s - size[s]; child -= size[child]) {
      idx* const before = next;
      std::for_each(out.row_ind.data() + out.row_ptr[child], out.row_ind.data() + out.row_ptr[child + 1], add);
      std::inplace_merge(rows, before, next);
    }
    idx* const before = next;
    for (idx j = out.super_ptr[s]; j < end; j++)
      for (off p = graph.ptr[perm[j]]; p < graph.ptr[perm[j] + 1]; p++) add(inverse[graph.ind[p]]);
    std::sort(before, next);
    std::inplace_merge(rows, before, next);
  };
  up_the_forest(out.super_parent, size, threads, [&](idx s, int rank) {
    auto& [seen, pace] = local[rank];
    if (seen.empty()) seen.resize(graph.n, -1);
    find(s, seen);
    pace.go_on(16 + out.row_ptr[s + 1] - out.row_ptr[s]);
  });
}

// Where the rows [first, last) of a supernode are in the front of its parent.
void locate_in_parent(const Symbolic& sym, idx parent, off first, off last, idx* rel_ind) {
  const idx begin = sym.super_ptr[parent], end = sym.super_ptr[parent + 1], width = end - begin;
  const idx *rows = sym.row_ind.data() + sym.row_ptr[parent], *rows_end = sym.row_ind.data() + sym.row_ptr[parent + 1];
  const idx* found = rows;
  const bool sparse = (rows_end - rows) > 16 * (last - first);
  for (off k = first; k < last; k++) {
    const idx row = sym.row_ind[k];
    if (row < end) {
      rel_ind[k] = row - begin;
      continue;
    }
    if (sparse) found = std::lower_bound(found, rows_end, row);
    else
      while (*found != row) found++;
    rel_ind[k] = width + (idx)(found - rows);
  }
}

}  // namespace

void find_relative_indices(Symbolic& out) {
  const idx nsuper = out.nsuper();
  out.rel_ind.resize(out.row_ind.size());
  over_range(nsuper, (off)out.row_ind.size(), [&](idx begin, idx end) {
    for (idx s = begin; s < end; s++)
      if (out.super_parent[s] >= 0)
        locate_in_parent(out, out.super_parent[s], out.row_ptr[s], out.row_ptr[s + 1], out.rel_ind.data());
  });
}

void measure_structure(Symbolic& out) {
  out.lnz = 0;
  out.flops = 0;
  for (idx j = 0; j < out.n - out.n_interface; j++) {
    const idx count = out.col_count[j];
    out.lnz += count;
    const double below = count - 1;
    out.flops += out.one_triangle() ? (double)count * count : below + 2 * below * below;
  }
  out.column_levels = tree_height(out.parent);
  out.super_levels = tree_height(out.super_parent);
  out.critical_path = 0;
  std::vector<double> path(out.nsuper());  // flops from s up to its root
  for (idx s = out.nsuper() - 1; s >= 0; s--) {
    const double width = out.super_ptr[s + 1] - out.super_ptr[s],
                 height = (double)(out.row_ptr[s + 1] - out.row_ptr[s]);
    const idx above = out.super_parent[s];
    path[s] =
        (out.is_interface(s) ? 0 : front_flops(width, height, out.one_triangle())) + (above >= 0 ? path[above] : 0);
    out.critical_path = std::max(out.critical_path, path[s]);
  }
}

std::vector<idx> supernodal_structure(PatternView graph, OrderedTree tree, const Relaxation& relaxation,
                                      Symbolic& out) {
  begin_phase("symbolic");
  count_columns(graph, tree);
  SupernodePartition partition = relaxed_supernodes(tree.parent, tree.col_count, out.one_triangle(), relaxation);
  out.parent = renumber_tree(tree.parent, partition.column_order);
  out.col_count = gather(tree.col_count, partition.column_order);
  out.super_ptr = std::move(partition.super_ptr);
  out.super_parent = std::move(partition.super_parent);
  std::vector<idx> perm = gather(tree.perm, partition.column_order);
  find_rows(graph, perm, out);
  find_relative_indices(out);
  measure_structure(out);
  return perm;
}

std::vector<idx> supernodal_structure(PatternView graph, std::vector<idx> perm, const Relaxation& relaxation,
                                      Symbolic& out) {
  return supernodal_structure(graph, ordered_tree(graph, std::move(perm)), relaxation, out);
}

Symbolic one_supernode(idx n) {
  Symbolic out;
  out.n = out.structural_rank = n;
  out.ordering = "natural";
  out.block_ptr = {0, n};
  for (idx j = 0; j < n; j++) {
    out.row_perm.push_back(j);
    out.parent.push_back(j + 1 < n ? j + 1 : -1);
    out.col_count.push_back(n - j);
  }
  out.col_perm = out.row_perm;
  out.super_ptr = {0, n};
  out.super_parent = {-1};
  out.row_ptr = {0, 0};
  measure_structure(out);
  return out;
}

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
