#include "analysis/analyze.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <optional>

#include "analysis/graph.hpp"
#include "analysis/matching.hpp"
#include "analysis/own_order.hpp"
#include "analysis/pairs.hpp"
#include "analysis/selection.hpp"
#include "analysis/structure.hpp"
#include "base/background_task.hpp"
#include "base/scalars.hpp"
#include "base/threads.hpp"
#include "matrix/modulus.hpp"
#include "matrix/scales.hpp"
#include "matrix/symmetry.hpp"

namespace gs {
namespace {

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
  s.col_perm = timed(s, "structure", [&] {
    return supernodal_structure(graph, std::move(order.tree), Relaxation{s.costs.supernodes}, s);
  });
  set_rows(s, row_of_col);
}

void analyze_cholesky(PatternView A, const AnalyzeOptions& options, Symbolic& s) {
  s.structural_rank = s.n;
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, nullptr); });
  Ordered order = timed(s, "order", [&] { return choose_ordering(graph.view(), options, s); });
  finish_front(s, graph.view(), std::move(order), nullptr);
}

// Whether a pattern equals its transpose, computed on the first call.
struct PatternSymmetry {
  PatternView A;
  std::optional<bool> known;
  bool operator()() { return *(known ? known : known = is_structurally_symmetric(A)); }
};

// Converts a caller's column order to an order of the vertices of the pair graph, by the position of each vertex's
// first column.
std::vector<idx> order_of_pairs(const idx* perm, const PairedGraph& paired, const std::vector<idx>& partner) {
  std::vector<idx> vertex(partner.size(), -1), order;
  for (idx v = 0; v < paired.graph.n; v++) vertex[paired.first[v]] = vertex[partner[paired.first[v]]] = v;
  std::vector<char> seen(paired.graph.n, 0);
  for (std::size_t k = 0; k < partner.size(); k++)
    if (const idx v = vertex[perm[k]]; !seen[v]) seen[v] = 1, order.push_back(v);
  return order;
}

// Columns that the matching pairs are ordered as one and stay in one supernode. `choose` gives the orders of a graph,
// and each makes an analysis. With `for_lu`, in place of LU, only orders with which LDL^T is predicted to be faster
// make one, and a matching is left in `for_lu`.
template <class T, class Choose>
std::vector<Symbolic> analyze_ldlt(PatternView A, const T* values, const AnalyzeOptions& options,
                                   std::optional<Matching>* for_lu, Symbolic s, Choose&& choose) {
  SymmetricMatching matching = timed(s, "matching", [&] { return match_symmetric(A, values, for_lu); });
  s.structural_rank = matching.structural_rank;
  if (s.structural_rank < s.n) return for_lu ? std::vector<Symbolic>() : std::vector<Symbolic>{s};
  s.row_scale = std::move(matching.scale);
  s.col_scale = s.row_scale;
  Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, nullptr); });
  PairedGraph paired;
  if (!matching.partner.empty())
    paired = timed(s, "symmetrize", [&] { return merge_pairs(graph.view(), matching.partner); });
  const bool has_pairs = !matching.partner.empty() && paired.graph.n < s.n;
  const std::vector<idx>& partner = s.partner = has_pairs ? std::move(matching.partner) : std::vector<idx>();
  AnalyzeOptions of_pairs(options);
  std::vector<idx> own;
  if (has_pairs && options.ordering == "user") {
    own = order_of_pairs(options.user_perm, paired, partner);
    of_pairs.user_perm = own.data();
  }
  const PatternView ordered = has_pairs ? paired.graph.view() : graph.view();
  std::vector<Ordered> orders = timed(s, "order", [&] { return choose(ordered, of_pairs, s); });
  if (has_pairs) graph = timed(s, "symmetrize", [&] { return split_pairs(paired, partner); });
  std::vector<Symbolic> candidates;
  for (Ordered& order : orders) {
    if (has_pairs) order.tree = ordered_tree(graph.view(), split_order(paired, partner, order.tree.perm));
    if (for_lu && !ldlt_is_faster(order, options, s)) continue;
    finish_front(candidates.emplace_back(s), graph.view(), std::move(order), nullptr);
  }
  return candidates;
}

std::vector<Ordered> chosen_ordering(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  std::vector<Ordered> one;
  one.push_back(choose_ordering(graph, options, s));
  return one;
}

// A symmetric pattern splits into the connected components of its graph. An unsymmetric matrix is ordered block by
// block if column LU is likely, or if so many entries lie between its blocks that only the union with the transpose may
// connect them; all others are ordered as a whole. The other method takes over the order, unless the coupling of the
// blocks adds much.
void analyze_lu(PatternView A, const idx* row_of_col, const AnalyzeOptions& options, PatternSymmetry& is_symmetric,
                Symbolic& s) {
  const bool want_blocks = may_use_blocks(options), column_likely = is_column_likely(s, options);
  BlockTriangular blocks;
  const auto find_blocks = [&] {
    blocks = timed(s, "blocks", [&] { return block_triangular(A, row_of_col); });
    return blocks.block_ptr.size() > 2;
  };
  Pattern graph;
  bool symmetric = false;
  const auto find_graph = [&] {
    graph = timed(s, "symmetrize",
                  [&] { return row_of_col ? symmetrize(A, row_of_col) : symmetrize_known(A, is_symmetric()); });
    symmetric = row_of_col ? (off)graph.ind.size() == A.nnz() - A.n : is_symmetric();
  };
  const bool graph_first = !column_likely || (!row_of_col && is_symmetric());
  if (graph_first) find_graph();
  bool reducible = want_blocks && !symmetric && (column_likely || is_unsymmetric(graph.view(), A)) && find_blocks();
  const bool by_blocks = reducible && orders_by_blocks(A, row_of_col, blocks, column_likely);
  Ordered order, order_by_blocks;
  if (by_blocks) {
    order_by_blocks = timed(s, "order", [&] { return order_blocks(A, row_of_col, blocks); });
    if (column_is_faster(order_by_blocks, order_by_blocks, options, s))
      return finish_column(s, std::move(order_by_blocks), std::move(blocks.block_ptr), row_of_col);
  }
  if (!graph_first) find_graph();
  if (by_blocks) order = {ordered_tree(graph.view(), order_by_blocks.tree.perm), order_by_blocks.name};
  if (!by_blocks || !is_coupling_acceptable(order.tree.cost, order_by_blocks.tree.cost))
    order = timed(s, "order", [&] { return choose_ordering(graph.view(), options, s); });
  if (by_blocks && column_is_faster(order_by_blocks, order, options, s))
    return finish_column(s, std::move(order_by_blocks), std::move(blocks.block_ptr), row_of_col);
  if (!column_is_faster(order, order, options, s)) return finish_front(s, graph.view(), std::move(order), row_of_col);
  if (options.ordering == "user") order.tree.perm.assign(options.user_perm, options.user_perm + s.n);
  const bool is_connected = symmetric && order.tree.cost.roots == 1;
  if (want_blocks && !is_connected && blocks.block_ptr.empty()) reducible = find_blocks();
  if (reducible) order.tree.perm = sorted_by_block(order.tree.perm, blocks);
  finish_column(s, std::move(order), reducible ? std::move(blocks.block_ptr) : std::vector<idx>{0, s.n}, row_of_col);
}

Symbolic described(PatternView A, const AnalyzeOptions& options) {
  Symbolic s;
  s.n = A.n;
  s.nnz = A.nnz();
  s.cholesky = options.cholesky, s.ldlt = options.ldlt;
  s.costs = options.costs;
  return s;
}

// Matching and scaling; `row_of_col` stays empty where rows keep their order. False if A is structurally singular.
template <class T> bool match(PatternView A, const T* values, const AnalyzeOptions& options, Symbolic& s,
                              std::vector<idx>& row_of_col, std::optional<Matching> known = {}) {
  s.structural_rank = s.n;
  if (!options.matching) return true;
  Matching matching = timed(s, "matching", [&] { return known ? std::move(*known) : max_product_matching(A, values); });
  s.structural_rank = matching.structural_rank;
  if (s.structural_rank < s.n) return false;
  s.row_scale = std::move(matching.row_scale);
  s.col_scale = std::move(matching.col_scale);
  if (!std::is_sorted(matching.row_of_col.begin(), matching.row_of_col.end()))
    row_of_col = std::move(matching.row_of_col);
  return true;
}

// Row scales in place of a matching, as in KLU. The pivoting threshold catches pivots that are too small after all;
// fronts therefore do not rely on these scales.
template <class T> bool keep_diagonal(PatternView A, const T* values, Symbolic& s) {
  return timed(s, "matching", [&] {
    s.structural_rank = s.n;
    s.row_scale = scales_of_rows(A, values);
    s.col_scale.assign(s.n, 1.0);
    s.keeps_diagonal = keeps_diagonal(A, values, s.row_scale);
    return s.keeps_diagonal;
  });
}

// Pivoting alone chooses the rows.
Symbolic left_as_it_is(Symbolic&& s) {
  s.structural_rank = s.n;
  s.method = Method::column;
  s.col_perm.resize(s.n);
  std::iota(s.col_perm.begin(), s.col_perm.end(), 0);
  s.row_perm = s.col_perm;
  s.block_ptr = {0, s.n};
  s.ordering = "natural";
  return std::move(s);
}

// Narrow staircases: in their own order there is hardly any fill for any choice of pivots, so no matching and no
// ordering are needed.
template <class T> bool is_staircase(PatternView A, const T* values, Symbolic& s) {
  constexpr off most_fill = 3;  // entries of L + U over those of A
  if (!is_near_diagonal(A)) return false;
  return timed(s, "order", [&] {
    if (!rows_are_alike(A, values)) return false;
    const std::optional<OwnOrderSize> size = own_order_size(A, most_fill * A.nnz());
    if (size) s.lnz = size->lower, s.flops = 2 * size->flops, s.column_levels = s.n;
    return size.has_value();
  });
}

// Pivots of one front are searched among all rows, so no matching is needed. Only the scaled entries have to be about
// 1.
template <class T> Symbolic analyze_one_front(PatternView A, const T* values, Symbolic&& described) {
  begin_phase("symbolic");
  Symbolic s = timed(described, "structure", [&] { return one_supernode(A.n); });
  s.nnz = described.nnz, s.costs = described.costs, s.stages = std::move(described.stages);
  s.ordering = "amd";  // which leaves the order of such graphs as it is
  s.row_scale = scales_of_rows(A, values);
  s.col_scale.resize(A.n);
  for (idx j = 0; j < A.n; j++) {
    double largest = 0;
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++)
      largest = std::max(largest, modulus(values[p]) * s.row_scale[A.ind[p]]);
    int exponent = 0;
    if (largest > 0) std::frexp(largest, &exponent);
    s.col_scale[j] = std::ldexp(1.0, std::clamp(-exponent, -largest_scale_exponent<T>, largest_scale_exponent<T>));
  }
  return s;
}

// The fronts of a kept diagonal with the scales of a matching, which left every row where it was.
Symbolic matched(Symbolic&& kept, Symbolic&& matching) {
  kept.keeps_diagonal = false;
  kept.row_scale = std::move(matching.row_scale);
  kept.col_scale = std::move(matching.col_scale);
  for (const auto& [stage, seconds] : matching.stages) add_to_stage(kept, stage, seconds);
  return std::move(kept);
}

}  // namespace

template <class T> Symbolic analyze(PatternView A, const T* values, const AnalyzeOptions& given) {
  AnalyzeOptions options(given);
  Symbolic s = described(A, options);
  if (options.cholesky) {
    analyze_cholesky(A, options, s);
    return s;
  }
  if (options.ldlt) return std::move(analyze_ldlt(A, values, options, nullptr, std::move(s), chosen_ordering).front());
  PatternSymmetry is_symmetric{A, {}};
  options.symmetric = may_be_ldlt(A, options) && symmetry_of(A, values) != Symmetry::none;
  if (options.symmetric) is_symmetric.known = true;
  if (options.ordering == "natural") return left_as_it_is(std::move(s));
  if (is_one_front(A, options)) return analyze_one_front(A, values, std::move(s));
  std::optional<Symbolic> kept;
  if (may_keep_diagonal(A, options) && is_symmetric()) {
    kept = s;
    if (!keep_diagonal(A, values, *kept)) kept.reset();
    else analyze_lu(A, nullptr, options, is_symmetric, *kept);
    if (kept && kept->method == Method::column) return std::move(*kept);
  }
  if (given.symmetric && may_be_staircase(A, options) && is_staircase(A, values, s)) return left_as_it_is(std::move(s));
  std::optional<Matching> matching;
  if (options.symmetric) {
    Symbolic symmetric = s;
    symmetric.ldlt = true;
    std::vector<Symbolic> found = analyze_ldlt(A, values, options, &matching, std::move(symmetric), chosen_ordering);
    if (!found.empty()) return std::move(found.front());
    options.symmetric = false;
  }
  std::vector<idx> rows;
  if (!match(A, values, options, s, rows, std::move(matching))) return s;
  if (kept && rows.empty() && !is_badly_scaled(s)) return matched(std::move(*kept), std::move(s));
  analyze_lu(A, rows.empty() ? nullptr : rows.data(), options, is_symmetric, s);
  return s;
}

template <class T> std::vector<Symbolic> analyze_fronts(PatternView A, const T* values, const AnalyzeOptions& options) {
  Symbolic s = described(A, options);
  if (options.ldlt) return analyze_ldlt(A, values, options, nullptr, std::move(s), orderings_for_fronts);
  std::vector<idx> rows;
  if (options.cholesky) s.structural_rank = s.n;
  else if (!match(A, values, options, s, rows)) return {s};
  const idx* row_of_col = rows.empty() ? nullptr : rows.data();
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col); });
  std::vector<Ordered> orders = timed(s, "order", [&] { return orderings_for_fronts(graph.view(), options, s); });
  std::vector<Symbolic> candidates(orders.size(), s);
  const auto finish = [&](size_t k) { finish_front(candidates[k], graph.view(), std::move(orders[k]), row_of_col); };
  const auto finish_second = [&] { finish(1); };
  std::optional<BackgroundTask<decltype(finish_second)>> second;
  if (orders.size() > 1) second.emplace(finish_second);
  finish(0);
  if (second) second->join();
  return candidates;
}

Symbolic fronts_like(const Symbolic& columns, PatternView A, const AnalyzeOptions& options) {
  Symbolic s = described(A, options);
  s.structural_rank = columns.structural_rank;
  if (s.structural_rank < s.n) return s;
  s.row_scale = columns.row_scale;
  s.col_scale = columns.col_scale;
  std::vector<idx> row_of_col(s.n);
  for (idx k = 0; k < s.n; k++) row_of_col[columns.col_perm[k]] = columns.row_perm[k];
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col.data()); });
  Ordered order = timed(s, "order", [&] { return choose_ordering(graph.view(), options, s); });
  finish_front(s, graph.view(), std::move(order), row_of_col.data());
  return s;
}

template <class T>
std::vector<Symbolic> analyze_columns(PatternView A, const T* values, const AnalyzeOptions& options) {
  if (options.ordering == "natural") return {analyze(A, values, options)};
  Symbolic s = described(A, options);
  std::vector<idx> rows;
  if (!match(A, values, options, s, rows)) return {s};
  const idx* row_of_col = rows.empty() ? nullptr : rows.data();
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col); });
  std::vector<Ordered> orders = timed(s, "order", [&] { return orderings_for_columns(graph.view(), options, s); });
  std::vector<Symbolic> candidates(orders.size(), s);
  for (std::size_t k = 0; k < orders.size(); k++) {
    if (options.ordering == "user") orders[k].tree.perm.assign(options.user_perm, options.user_perm + s.n);
    finish_column(candidates[k], std::move(orders[k]), {0, s.n}, row_of_col);
  }
  return candidates;
}

#define GS_INSTANTIATE(T)                                                                       \
  template Symbolic analyze(PatternView, const T*, const AnalyzeOptions&);                      \
  template std::vector<Symbolic> analyze_columns(PatternView, const T*, const AnalyzeOptions&); \
  template std::vector<Symbolic> analyze_fronts(PatternView, const T*, const AnalyzeOptions&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
