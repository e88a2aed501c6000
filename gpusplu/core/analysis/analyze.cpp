#include "analysis/analyze.hpp"

#include <algorithm>
#include <complex>
#include <numeric>
#include <optional>

#include "analysis/amd.hpp"
#include "analysis/block_triangular.hpp"
#include "analysis/column_counts.hpp"
#include "analysis/dissection/nested_dissection.hpp"
#include "analysis/graph.hpp"
#include "analysis/matching.hpp"
#include "analysis/structure.hpp"
#include "analysis/time_model.hpp"
#include "base/beside.hpp"
#include "base/scalars.hpp"
#include "base/threads.hpp"

namespace gs {
namespace {

struct Ordered {
  OrderedTree tree;  // of orderings by blocks only the permutation and the cost
  const char* name = "amd";
};

std::vector<idx> identity(idx n) {
  std::vector<idx> p(n);
  std::iota(p.begin(), p.end(), 0);
  return p;
}

Ordered order_amd(PatternView graph) { return {ordered_tree(graph, amd(graph)), "amd"}; }

Ordered order_dissection(PatternView graph) { return {ordered_tree(graph, nested_dissection(graph)), "nd"}; }

// Whether minimum degree is not even tried: large graphs, and middling ones with the many neighbours of finite elements
// in space, where it takes longer than dissection by several threads and causes a multiple of the flops.
bool only_dissection(PatternView graph, idx middling = 50000) {
  constexpr idx large = 400000;
  constexpr double many_neighbours = 24;
  return graph.n >= large || (graph.n >= middling && (double)graph.nnz() > many_neighbours * graph.n);
}

// Of a refactorization by columns on a GPU: a hop from block to block for every level, and the updates.
double level_seconds(const OrderingCost& cost) {
  constexpr double per_level = 2.5e-6, per_update = 2e-11;
  return per_level * cost.levels + per_update * cost.flops;
}

double front_total(PatternView A, const OrderingCost& cost, const AnalyzeOptions& options) {
  return predict_seconds(Method::front, A.n, A.nnz(), cost, options.cholesky).total(options.refactorizations);
}

// Which fill-reducing ordering serves the fronts best. Minimum degree is cheap and wins on small and very sparse
// graphs, dissection on large ones. Dissection costs microseconds a vertex, so on small and middling graphs it is tried
// where the factorizations that it may shorten take longer than it does itself, and on large ones beside minimum
// degree.
Ordered order_automatic(PatternView graph, PatternView A, const AnalyzeOptions& options) {
  const idx n = graph.n;
  constexpr idx never_dissect = 3000, both_at_once = 100000;
  if (only_dissection(graph)) return order_dissection(graph);
  Ordered by_degree, by_dissection;
  if (n >= both_at_once) {
    Beside other([&] { by_degree = order_amd(graph); });
    by_dissection = order_dissection(graph);
    other.join();
  } else {
    by_degree = order_amd(graph);
    const double dissection_seconds = 0.8e-6 * n + 0.06e-6 * (double)graph.nnz();
    // a quarter of the factorizations is what dissection may be expected to save
    if (n < never_dissect || 0.25 * front_total(A, by_degree.tree.cost, options) < dissection_seconds) return by_degree;
    by_dissection = order_dissection(graph);
  }
  const bool dissect = front_total(A, by_dissection.tree.cost, options) < front_total(A, by_degree.tree.cost, options);
  return dissect ? std::move(by_dissection) : std::move(by_degree);
}

// Minimum degree inside every diagonal block of the block triangular form.
Ordered order_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks) {
  Ordered o;
  o.tree.perm = blocks.perm;
  o.tree.cost = {};
  std::vector<idx> inverse_row_perm(A.n);
  for (idx i = 0; i < A.n; i++) inverse_row_perm[row_of_col ? row_of_col[blocks.perm[i]] : blocks.perm[i]] = i;
  const idx nblocks = (idx)blocks.block_ptr.size() - 1;
  for (idx k = 0; k < nblocks; k++) {
    const idx begin = blocks.block_ptr[k], end = blocks.block_ptr[k + 1];
    if (end - begin < 3) {
      o.tree.cost.lnz += end - begin;
      continue;
    }
    const Pattern graph = symmetrize_block(A, inverse_row_perm.data(), blocks.perm.data(), begin, end);
    const Ordered block = order_amd(graph.view());
    for (idx i = begin; i < end; i++) o.tree.perm[i] = blocks.perm[begin + block.tree.perm[i - begin]];
    o.tree.cost.lnz += block.tree.cost.lnz;
    o.tree.cost.flops += block.tree.cost.flops;
    o.tree.cost.levels = std::max(o.tree.cost.levels, block.tree.cost.levels);
  }
  return o;
}

Ordered order_graph(PatternView graph, PatternView A, const AnalyzeOptions& options) {
  switch (options.ordering) {
    case Ordering::amd:
      return order_amd(graph);
    case Ordering::nested_dissection:
      return order_dissection(graph);
    case Ordering::natural:
      return {ordered_tree(graph, identity(graph.n)), "natural"};
    case Ordering::user:
      return {ordered_tree(graph, {options.user_perm, options.user_perm + graph.n}), "user"};
    default:
      return order_automatic(graph, A, options);
  }
}

void set_rows(Symbolic& s, const idx* row_of_col) {
  s.row_perm.resize(s.n);
  for (idx i = 0; i < s.n; i++) s.row_perm[i] = row_of_col ? row_of_col[s.col_perm[i]] : s.col_perm[i];
}

void finish_column(Symbolic& s, Ordered&& order, std::vector<idx>&& block_ptr, const idx* row_of_col) {
  s.method = Method::column;
  s.col_perm = std::move(order.tree.perm);
  s.block_ptr = std::move(block_ptr);
  s.ordering = order.name;
  s.lnz = order.tree.cost.lnz;
  s.flops = 2 * order.tree.cost.flops;
  s.column_levels = order.tree.cost.levels;
  set_rows(s, row_of_col);
}

void finish_front(Symbolic& s, PatternView graph, Ordered&& order, const idx* row_of_col) {
  s.method = Method::front;
  s.ordering = order.name;
  s.block_ptr = {0, s.n};
  s.col_perm =
      timed(s, "structure", [&] { return supernodal_structure(graph, std::move(order.tree), Relaxation{}, s); });
  set_rows(s, row_of_col);
}

void analyze_cholesky(PatternView A, const AnalyzeOptions& options, Symbolic& s) {
  s.structural_rank = s.n;
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, nullptr); });
  Ordered order = timed(s, "order", [&] { return order_graph(graph.view(), A, options); });
  finish_front(s, graph.view(), std::move(order), nullptr);
}

// Scaling over many orders of magnitude is the mark of matrices whose fixed pivots often fail to be accurate.
bool is_badly_scaled(const Symbolic& s) {
  if (s.row_scale.empty() || s.n == 0) return false;
  const auto [row_min, row_max] = std::minmax_element(s.row_scale.begin(), s.row_scale.end());
  const auto [col_min, col_max] = std::minmax_element(s.col_scale.begin(), s.col_scale.end());
  return *row_max / *row_min > 1e9 && *col_max / *col_min > 1e9;
}

bool column_is_faster(const Symbolic& s, const OrderingCost& by_columns, const OrderingCost& by_fronts,
                      const AnalyzeOptions& options) {
  if (options.method != MethodChoice::automatic) return options.method == MethodChoice::column;
  const double doubt = is_badly_scaled(s) ? 4 : 1;
  const auto total = [&](Method method, const OrderingCost& cost) {
    return predict_seconds(method, s.n, s.nnz, cost, false).total(options.refactorizations);
  };
  return total(Method::column, by_columns) <= doubt * total(Method::front, by_fronts);
}

std::vector<idx> block_of_columns(const BlockTriangular& blocks) {
  std::vector<idx> block_of(blocks.perm.size());
  for (size_t k = 0; k + 1 < blocks.block_ptr.size(); k++)
    for (idx i = blocks.block_ptr[k]; i < blocks.block_ptr[k + 1]; i++) block_of[blocks.perm[i]] = (idx)k;
  return block_of;
}

// The order of the whole graph, block after block. A block's fill is at most what it was in the whole.
std::vector<idx> sorted_by_block(const std::vector<idx>& perm, const BlockTriangular& blocks) {
  const std::vector<idx> block_of = block_of_columns(blocks);
  std::vector<idx> next(blocks.block_ptr), sorted(perm.size());
  for (const idx j : perm) sorted[next[block_of[j]]++] = j;
  return sorted;
}

bool one_block_dominates(const BlockTriangular& blocks) {
  idx largest = 0;
  for (size_t k = 0; k + 1 < blocks.block_ptr.size(); k++)
    largest = std::max(largest, blocks.block_ptr[k + 1] - blocks.block_ptr[k]);
  return largest >= 0.8 * (double)blocks.perm.size();
}

// A matrix whose off-diagonal entries mostly have no partner does not fall apart by accident only.
bool is_unsymmetric(PatternView graph, PatternView A) { return (double)graph.nnz() > 1.3 * ((double)A.nnz() - A.n); }

// Whether so many of the entries lie between blocks that fronts of the whole may have much more fill than the blocks.
bool coupling_matters(PatternView A, const idx* row_of_col, const BlockTriangular& blocks) {
  const std::vector<idx> block_of = block_of_columns(blocks);
  std::vector<idx> block_of_row(block_of);
  for (idx j = 0; row_of_col && j < A.n; j++) block_of_row[row_of_col[j]] = block_of[j];
  off between = 0;
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) between += block_of_row[A.ind[p]] != block_of[j];
  return (double)between > 0.1 * (double)A.nnz();
}

// Column LU profits from the block triangular form; fronts take the matrix as one block, because few matrices with
// enough fill for fronts fall apart. Matrices that fall apart, and are likely to be left to column LU or so unsymmetric
// that the union with the transpose may be all that holds them together, by many entries between their blocks, are
// ordered block by block, all others as a whole, and the other method takes the order over, unless the coupling of the
// blocks, which fronts do not leave out, adds much.
void analyze_lu(PatternView A, const idx* row_of_col, const AnalyzeOptions& options, Symbolic& s) {
  constexpr idx small = 5000;
  constexpr double acceptable_coupling = 1.2;
  const bool minimum_degree = options.ordering == Ordering::automatic || options.ordering == Ordering::amd;
  const bool want_blocks = minimum_degree && options.method != MethodChoice::front;
  BlockTriangular blocks;
  const auto find_blocks = [&] {
    blocks = timed(s, "blocks", [&] { return block_triangular(A, row_of_col); });
    return blocks.block_ptr.size() > 2;
  };
  Pattern graph;
  const auto find_graph = [&] { graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col); }); };
  const bool likely_column = s.n < small || is_badly_scaled(s) || options.method == MethodChoice::column;
  if (!likely_column) find_graph();
  bool reducible = want_blocks && (likely_column || is_unsymmetric(graph.view(), A)) && find_blocks();
  const bool by_blocks =
      reducible && !one_block_dominates(blocks) && (likely_column || coupling_matters(A, row_of_col, blocks));
  Ordered order, order_by_blocks;
  if (by_blocks) {
    order_by_blocks = timed(s, "order", [&] { return order_blocks(A, row_of_col, blocks); });
    const OrderingCost& cost = order_by_blocks.tree.cost;
    if (column_is_faster(s, cost, cost, options))
      return finish_column(s, std::move(order_by_blocks), std::move(blocks.block_ptr), row_of_col);
  }
  if (likely_column) find_graph();
  const OrderingCost cost_by_blocks = order_by_blocks.tree.cost;
  if (by_blocks) order = {ordered_tree(graph.view(), order_by_blocks.tree.perm), order_by_blocks.name};
  if (!by_blocks || order.tree.cost.flops > acceptable_coupling * cost_by_blocks.flops)
    order = timed(s, "order", [&] { return order_graph(graph.view(), A, options); });
  if (by_blocks && column_is_faster(s, cost_by_blocks, order.tree.cost, options))
    return finish_column(s, std::move(order_by_blocks), std::move(blocks.block_ptr), row_of_col);
  if (!column_is_faster(s, order.tree.cost, order.tree.cost, options))
    return finish_front(s, graph.view(), std::move(order), row_of_col);
  if (options.ordering == Ordering::user) order.tree.perm.assign(options.user_perm, options.user_perm + s.n);
  if (want_blocks && blocks.block_ptr.empty()) reducible = find_blocks();
  if (reducible) order.tree.perm = sorted_by_block(order.tree.perm, blocks);
  finish_column(s, std::move(order), reducible ? std::move(blocks.block_ptr) : std::vector<idx>{0, s.n}, row_of_col);
}

Symbolic described(PatternView A, const AnalyzeOptions& options) {
  Symbolic s;
  s.n = A.n;
  s.nnz = A.nnz();
  s.cholesky = options.cholesky;
  return s;
}

// Matching and scaling; `row_of_col` stays empty where rows keep their order. False if A is structurally singular.
template <class T>
bool match(PatternView A, const T* values, const AnalyzeOptions& options, Symbolic& s, std::vector<idx>& row_of_col) {
  s.structural_rank = s.n;
  if (!options.matching) return true;
  Matching matching = timed(s, "matching", [&] { return max_product_matching(A, values); });
  s.structural_rank = matching.structural_rank;
  if (s.structural_rank < s.n) return false;
  s.row_scale = std::move(matching.row_scale);
  s.col_scale = std::move(matching.col_scale);
  if (!std::is_sorted(matching.row_of_col.begin(), matching.row_of_col.end()))
    row_of_col = std::move(matching.row_of_col);
  return true;
}

// Whether a device is sure to be faster with a than with b: no more flops, fill and levels, far fewer flops where they
// count, or far fewer levels where these do.
bool surpasses(const OrderingCost& a, const OrderingCost& b) {
  constexpr double cheap = 1e8, dear = 1e9, many = 2, few = 0.67, alike = 1.3;
  if (a.flops <= b.flops && a.lnz <= b.lnz && a.levels <= b.levels) return true;
  return (b.flops > cheap && b.flops > many * a.flops) ||
         (a.flops < dear && a.flops <= alike * b.flops && a.levels <= few * b.levels);
}

// Of two orderings, leaves only the one that surpasses the other, if one does.
void drop_hopeless(std::vector<Ordered>& orders) {
  for (const int k : {0, 1})
    if (surpasses(orders[k].tree.cost, orders[1 - k].tree.cost)) {
      orders.erase(orders.begin() + (1 - k));
      return;
    }
}

}  // namespace

template <class T> Symbolic analyze(PatternView A, const T* values, const AnalyzeOptions& options) {
  Symbolic s = described(A, options);
  if (options.cholesky) {
    analyze_cholesky(A, options, s);
    return s;
  }
  if (options.ordering == Ordering::natural) {  // pivoting alone chooses the rows
    s.structural_rank = s.n;
    s.method = Method::column;
    s.col_perm = s.row_perm = identity(s.n);
    s.block_ptr = {0, s.n};
    s.ordering = "natural";
    return s;
  }
  std::vector<idx> rows;
  if (match(A, values, options, s, rows)) analyze_lu(A, rows.empty() ? nullptr : rows.data(), options, s);
  return s;
}

template <class T> std::vector<Symbolic> analyze_fronts(PatternView A, const T* values, const AnalyzeOptions& options) {
  Symbolic s = described(A, options);
  std::vector<idx> rows;
  if (options.cholesky) s.structural_rank = s.n;
  else if (!match(A, values, options, s, rows)) return {s};
  const idx* row_of_col = rows.empty() ? nullptr : rows.data();
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col); });
  const Stopwatch ordering;
  std::vector<Ordered> orders;
  constexpr idx middling = 10000;  // a device takes levels harder than a processor does
  if (options.ordering == Ordering::automatic && only_dissection(graph.view(), middling)) {
    orders.push_back(order_dissection(graph.view()));
  } else if (options.ordering == Ordering::automatic) {
    orders.resize(2);
    Beside other([&] { orders[1] = order_amd(graph.view()); });
    orders[0] = order_dissection(graph.view());
    other.join();
    drop_hopeless(orders);
  } else {
    orders.push_back(order_graph(graph.view(), A, options));
  }
  s.stages.emplace_back("order", ordering.seconds());
  std::vector<Symbolic> candidates(orders.size(), s);
  const auto finish = [&](size_t k) { finish_front(candidates[k], graph.view(), std::move(orders[k]), row_of_col); };
  const auto finish_second = [&] { finish(1); };
  std::optional<Beside<decltype(finish_second)>> second;
  if (orders.size() > 1) second.emplace(finish_second);
  finish(0);
  if (second) second->join();
  return candidates;
}

template <class T> Symbolic analyze_columns(PatternView A, const T* values, const AnalyzeOptions& options) {
  if (options.ordering == Ordering::natural) return analyze(A, values, options);
  Symbolic s = described(A, options);
  std::vector<idx> rows;
  if (!match(A, values, options, s, rows)) return s;
  const idx* row_of_col = rows.empty() ? nullptr : rows.data();
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col); });
  Ordered order = timed(s, "order", [&] {
    if (options.ordering != Ordering::automatic) return order_graph(graph.view(), A, options);
    Ordered by_dissection, by_degree;
    Beside other([&] { by_degree = order_amd(graph.view()); });
    by_dissection = order_dissection(graph.view());
    other.join();
    const bool dissect = level_seconds(by_dissection.tree.cost) < level_seconds(by_degree.tree.cost);
    return dissect ? by_dissection : by_degree;
  });
  if (options.ordering == Ordering::user) order.tree.perm.assign(options.user_perm, options.user_perm + s.n);
  finish_column(s, std::move(order), {0, s.n}, row_of_col);
  return s;
}

#define GS_INSTANTIATE(T)                                                          \
  template Symbolic analyze(PatternView, const T*, const AnalyzeOptions&);         \
  template Symbolic analyze_columns(PatternView, const T*, const AnalyzeOptions&); \
  template std::vector<Symbolic> analyze_fronts(PatternView, const T*, const AnalyzeOptions&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
