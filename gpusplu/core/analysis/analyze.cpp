#include "analysis/analyze.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <optional>

#include "analysis/amd.hpp"
#include "analysis/block_triangular.hpp"
#include "analysis/column_counts.hpp"
#include "analysis/dissection/nested_dissection.hpp"
#include "analysis/graph.hpp"
#include "analysis/lu_pattern.hpp"
#include "analysis/matching.hpp"
#include "analysis/structure.hpp"
#include "base/background_task.hpp"
#include "base/threads.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "matrix/scales.hpp"
#include "matrix/symmetry.hpp"

namespace gs {
namespace {

// Decisions about orderings and methods, by the predictions of the cost model
// (docs/internals/decisions/0019-one-cost-model.md).

struct Ordered {
  OrderedTree tree;  // of orderings by blocks only the permutation and the cost
  const char* name = "amd";
};

// Sizes of graphs below which dissection never pays, and from which on minimum degree is not even tried.
constexpr idx never_dissect = 3000, large = 400000;
// The last for finite elements in space, where minimum degree takes longer than dissection by several threads and
// causes a multiple of the flops; levels cost a device more than a processor.
constexpr idx middling = 50000, middling_on_device = 10000;
constexpr idx least_mesh = 5000;  // in space, on which dissection by one thread, too, is worth more than it takes
// Where vertices have no more neighbours on average, and minimum degree no more fill relative to the matrix, other
// orders cannot do much better.
constexpr double few_neighbours = 2.5, little_fill = 2;
// What a part of a large graph says about minimum degree, by its flops over those of dissection (`ratio`) and the
// latter for each vertex. On meshes in space and power grids the ratio is 1.5 to 2.8, and 3 to 5 in all of the graph.
// Where there are few flops, minimum degree saves less time than it takes, unless it is far better.
bool may_degree_win(double ratio, double flops) {
  constexpr double hopeless = 1.25, far_better = 0.8, few_flops = 1000;
  return ratio < (flops < few_flops ? far_better : hopeless);
}
constexpr double saved_by_dissection = 0.25;  // expected part of the seconds of factorizations
constexpr idx likely_column = 5000;           // the order of matrices below
constexpr idx sure_column = 8000;             // the same where the diagonal is good
constexpr double sparse_column = 3.25;        // or entries a row are no more
constexpr double fixed_pivot_risk = 4;        // of fronts where fixed pivots often fail: how much slower columns may be
constexpr idx least_ldlt = 500;               // the order of matrices that fronts may be fast with
constexpr double dominates = 0.8;             // of the columns
constexpr double unsymmetric = 1.3;           // entries of A + A^T over those of A
constexpr double coupled = 0.1;               // of the entries
constexpr double acceptable_coupling = 1.2;   // flops of the whole over those of the blocks

Ordered order_amd(PatternView graph) {
  begin_phase("ordering");
  std::optional<FactorSize> size;
  std::vector<idx> perm = amd(graph, &size);
  return {ordered_tree(graph, std::move(perm), size), "amd"};
}

Ordered order_dissection(PatternView graph) {
  begin_phase("ordering");
  return {ordered_tree(graph, nested_dissection(graph)), "nd"};
}

Ordered order_nothing(PatternView graph) {
  std::vector<idx> identity(graph.n);
  std::iota(identity.begin(), identity.end(), 0);
  return {ordered_tree(graph, std::move(identity)), "natural"};
}

struct NamedOrdering {
  std::string_view name;
  Ordered (*order)(PatternView);
};
constexpr NamedOrdering orderings[] = {{"amd", order_amd}, {"nd", order_dissection}, {"natural", order_nothing}};

// Dissection, then minimum degree; on a processor only where it may cause fewer flops.
std::vector<Ordered> order_both(PatternView graph, bool on_device) {
  std::vector<Ordered> orders(2);
  const auto by_degree = [&] { orders[1] = order_amd(graph); };
  std::optional<BackgroundTask<decltype(by_degree)>> other;
  const Compared compared = [&](double ratio, double flops) {
    if (may_degree_win(ratio, flops)) other.emplace(by_degree);
  };
  if (on_device) compared(0, 0);
  begin_phase("ordering");
  orders[0] = {ordered_tree(graph, nested_dissection(graph, on_device ? Compared() : compared)), "nd"};
  if (other) other->join();
  else orders.pop_back();
  return orders;
}

bool only_dissection(PatternView graph, idx from) {
  return graph.n >= large || (graph.n >= from && (double)graph.nnz() > neighbours_in_space * graph.n);
}

// Whether a graph is a mesh in space: it grows like one, and unlike networks, which may grow as fast, nearly all of its
// vertices have about as many neighbours as others. Minimum degree causes 1.2 times the flops of dissection there, with
// 100,000 vertices 2.5 times.
bool is_mesh_in_space(PatternView graph) {
  constexpr double least_dimension = 2.5;  // 2.6 to 3.5 of finite elements and grids in space, 1.9 to 2.4 of surfaces
  constexpr double most_unlike = 0.05;     // 0 to 0.03 of meshes, 0.08 and more of power grids and circuits
  if (graph.n < least_mesh) return false;
  off unlike = 0;  // vertices with at most half or more than twice the mean
  for (idx v = 0; v < graph.n; v++) {
    const double neighbours = (double)(graph.ptr[v + 1] - graph.ptr[v]) * graph.n, all = (double)graph.nnz();
    unlike += 2 * neighbours <= all || neighbours > 2 * all;
  }
  return (double)unlike <= most_unlike * graph.n && dimension(graph) >= least_dimension;
}

// Of one first factorization, refactorization and solve with one right-hand side [s].
struct MethodSeconds {
  double factor = 0, refactor = 0, solve = 0;
  // Time to factor, then to refactor and solve that many times.
  double total(double refactorizations) const { return factor + refactorizations * (refactor + solve); }
};

enum class Elimination { lu, cholesky, ldlt };

// For a matrix of order n with nnz entries; by columns LU only.
MethodSeconds predict_seconds(const CpuCosts& costs, Method method, idx n, off nnz, const OrderingCost& cost,
                              Elimination elimination) {
  const double flops = 2 * cost.flops;  // those of LU
  const auto at = [&](const LinearCosts& c) {
    return c.call + c.rows * n + c.entries * (double)nnz + c.fill * (double)cost.lnz + c.flops * flops +
           (flops < SINGLE_THREAD_FLOPS ? c.alone * flops : 0);
  };
  const bool ldlt = elimination == Elimination::ldlt;
  const MethodCosts& of = method == Method::column ? costs.column : ldlt ? costs.ldlt : costs.front;
  const double half = elimination == Elimination::cholesky ? 0.5 : 1.0;  // one triangle of everything
  return {half * at(of.factor), half * at(of.refactor), at(of.solve)};
}

Elimination elimination_of(const AnalyzeOptions& options) {
  if (options.cholesky) return Elimination::cholesky;
  return options.ldlt || options.symmetric ? Elimination::ldlt : Elimination::lu;
}

double predicted_total(Method method, const Ordered& order, const AnalyzeOptions& options, Symbolic& s) {
  const Elimination elimination = elimination_of(options);
  const MethodSeconds seconds = predict_seconds(options.costs, method, s.n, s.nnz, order.tree.cost, elimination);
  const bool ldlt = method == Method::front && elimination == Elimination::ldlt;
  const Considered now{order.name, method, ldlt, seconds.total(options.refactorizations)};
  if (s.considered.empty()) s.considered.reserve(4);  // two orderings, two methods
  const auto known = std::find_if(s.considered.begin(), s.considered.end(), [&](const Considered& other) {
    return other.method == method && other.ldlt == ldlt && std::string_view(other.ordering) == now.ordering;
  });
  if (known == s.considered.end()) s.considered.push_back(now);
  else *known = now;
  return now.seconds;
}

// Minimum degree is cheap and wins on small and very sparse graphs, dissection on large ones. Dissection costs
// microseconds a vertex, so on small and middling graphs it is tried where the factorizations that it may shorten take
// longer than it does itself, and on large ones in parallel with minimum degree, unless a part of the graph shows that
// minimum degree cannot win. On meshes in space it never does.
Ordered order_automatic(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  const auto total = [&](const Ordered& order) { return predicted_total(Method::front, order, options, s); };
  std::vector<Ordered> orders;
  if (graph.n >= both_orderings_from && (double)graph.nnz() <= few_neighbours * graph.n) {
    Ordered by_degree = order_amd(graph);
    if ((double)by_degree.tree.cost.lnz <= little_fill * (0.5 * (double)graph.nnz() + graph.n)) return by_degree;
  }
  if (only_dissection(graph, middling) || is_mesh_in_space(graph)) {
    orders.push_back(order_dissection(graph));
  } else if (graph.n >= both_orderings_from) {
    orders = order_both(graph, false);
  } else {
    orders.push_back(order_amd(graph));
    const DissectionCosts& costs = options.costs.dissection;
    const double dissection_seconds = costs.rows * graph.n + costs.entries * (double)graph.nnz();
    if (graph.n >= never_dissect && saved_by_dissection * total(orders[0]) >= dissection_seconds)
      orders.insert(orders.begin(), order_dissection(graph));
  }
  if (orders.size() == 1) return std::move(orders[0]);
  return std::move(orders[total(orders[0]) < total(orders[1]) ? 0 : 1]);
}

std::vector<idx> block_of_columns(const BlockTriangular& blocks) {
  std::vector<idx> block_of(blocks.perm.size());
  for (size_t k = 0; k + 1 < blocks.block_ptr.size(); k++)
    for (idx i = blocks.block_ptr[k]; i < blocks.block_ptr[k + 1]; i++) block_of[blocks.perm[i]] = (idx)k;
  return block_of;
}

bool one_block_dominates(const BlockTriangular& blocks) {
  idx largest = 0;
  for (size_t k = 0; k + 1 < blocks.block_ptr.size(); k++)
    largest = std::max(largest, blocks.block_ptr[k + 1] - blocks.block_ptr[k]);
  return largest >= dominates * (double)blocks.perm.size();
}

bool coupling_matters(PatternView A, const idx* row_of_col, const BlockTriangular& blocks) {
  const std::vector<idx> block_of = block_of_columns(blocks);
  std::vector<idx> block_of_row(block_of);
  for (idx j = 0; row_of_col && j < A.n; j++) block_of_row[row_of_col[j]] = block_of[j];
  off between = 0;
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) between += block_of_row[A.ind[p]] != block_of[j];
  return (double)between > coupled * (double)A.nnz();
}

bool has_whole_diagonal(PatternView A) {
  for (idx j = 0; j < A.n; j++)
    if (!std::binary_search(A.ind + A.ptr[j], A.ind + A.ptr[j + 1], j)) return false;
  return true;
}

// Whether a device is certainly faster with a than with b, for any constants of its model: no more flops, fill and
// levels, far fewer flops where they count, or far fewer levels where these do.
bool surpasses(const OrderingCost& a, const OrderingCost& b) {
  constexpr double cheap = 1e8, dear = 1e9, many = 2, few = 0.67, alike = 1.3;
  if (a.flops <= b.flops && a.lnz <= b.lnz && a.levels <= b.levels) return true;
  return (b.flops > cheap && b.flops > many * a.flops) ||
         (a.flops < dear && a.flops <= alike * b.flops && a.levels <= few * b.levels);
}

// Of two orderings, keeps only the one that is better than the other, if one is.
void drop_hopeless(std::vector<Ordered>& orders) {
  for (const int k : {0, 1})
    if (surpasses(orders[k].tree.cost, orders[1 - k].tree.cost)) {
      orders.erase(orders.begin() + (1 - k));
      return;
    }
}

// Scales over many orders of magnitude mark matrices on which fixed pivots are often inaccurate.
bool is_badly_scaled(const Symbolic& s) {
  const auto is_wide = [](const std::vector<double>& scale) {
    const ScaleRange range = range_of(scale);
    return range.largest / range.least > 1e9;
  };
  return is_wide(s.row_scale) && is_wide(s.col_scale);
}

// The requested ordering, or the best one for the fronts of the CPU engine; the compared candidates go to s.considered.
Ordered choose_ordering(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  if (options.ordering == "user")
    return {ordered_tree(graph, {options.user_perm, options.user_perm + graph.n}), "user"};
  for (const NamedOrdering& known : orderings)
    if (options.ordering == known.name) return known.order(graph);
  return order_automatic(graph, options, s);
}

// The requested ordering, or those among which an engine on a device may choose by its own predictions.
std::vector<Ordered> orderings_for_fronts(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  std::vector<Ordered> orders;
  if (options.ordering != "auto") {
    orders.push_back(choose_ordering(graph, options, s));
  } else if (only_dissection(graph, middling_on_device)) {
    orders.push_back(order_dissection(graph));
  } else {
    orders = order_both(graph, true);
    drop_hopeless(orders);
  }
  return orders;
}

std::vector<Ordered> orderings_for_columns(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  std::vector<Ordered> orders;
  if (options.ordering == "auto") orders = order_both(graph, true);
  else orders.push_back(choose_ordering(graph, options, s));
  std::reverse(orders.begin(), orders.end());  // of equals the first is taken: minimum degree
  return orders;
}

// Minimum degree inside every diagonal block of the block triangular form.
// Orders all blocks as one disconnected graph: thousands of small blocks one by one cost more than their ordering.
// Blocks of order 1 need no order and are left out.
Ordered order_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks) {
  std::vector<idx> column, block_at, number_of_row(A.n, -1);
  std::vector<idx> sorted(blocks.perm), next(blocks.block_ptr);
  idx n_single = 0;
  for (std::size_t k = 0; k + 1 < blocks.block_ptr.size(); k++) {
    const idx begin = blocks.block_ptr[k], end = blocks.block_ptr[k + 1];
    if (end - begin == 1) {
      n_single++;
      continue;
    }
    for (idx i = begin; i < end; i++) {
      const idx j = blocks.perm[i];
      number_of_row[row_of_col ? row_of_col[j] : j] = (idx)column.size();
      column.push_back(j), block_at.push_back((idx)k);
    }
  }
  Ordered o =
      order_amd(symmetrize_blocks(A, (idx)column.size(), number_of_row.data(), column.data(), block_at.data()).view());
  for (const idx i : o.tree.perm) sorted[next[block_at[i]]++] = column[i];
  o.tree.perm = std::move(sorted);
  o.tree.parent.clear(), o.tree.col_count.clear();  // of another order
  o.tree.cost.lnz += n_single;
  o.tree.cost.roots += n_single;
  o.tree.cost.levels = std::max(o.tree.cost.levels, idx(1));
  return o;
}

// The order of the whole graph, block after block. A block's fill is at most its fill in the whole.
std::vector<idx> sorted_by_block(const std::vector<idx>& perm, const BlockTriangular& blocks) {
  const std::vector<idx> block_of = block_of_columns(blocks);
  std::vector<idx> next(blocks.block_ptr), sorted(perm.size());
  for (const idx j : perm) sorted[next[block_of[j]]++] = j;
  return sorted;
}

// Whether column LU with the first ordering is faster than fronts with the second.
bool column_is_faster(const Ordered& by_columns, const Ordered& by_fronts, const AnalyzeOptions& options, Symbolic& s) {
  if (options.method != MethodChoice::automatic) return options.method == MethodChoice::column;
  const double fronts = predicted_total(Method::front, by_fronts, options, s);
  const double columns = predicted_total(Method::column, by_columns, options, s);
  return columns <= fronts || (columns <= fixed_pivot_risk * fronts && is_badly_scaled(s));
}

// Whether LDL^T by an ordering is faster than LU by fronts would be by the same one, and than LU by columns.
bool ldlt_is_faster(const Ordered& order, const AnalyzeOptions& options, Symbolic& s) {
  AnalyzeOptions by_lu(options);
  by_lu.symmetric = false;
  return !column_is_faster(order, order, options, s) &&
         predicted_total(Method::front, order, options, s) < predicted_total(Method::front, order, by_lu, s);
}

// The probable answer, before any ordering.
bool is_column_likely(const Symbolic& s, const AnalyzeOptions& options) {
  return s.n < likely_column || is_badly_scaled(s) || options.method == MethodChoice::column;
}

// Whether the diagonal may stay in place: only where column LU is almost certain, since fronts would have to begin
// again.
bool may_keep_diagonal(PatternView A, const AnalyzeOptions& options) {
  if (!options.keep_diagonal || !options.matching || options.method == MethodChoice::front) return false;
  return A.n < sure_column || (double)A.nnz() <= sparse_column * A.n || options.method == MethodChoice::column;
}

// Whether to test if A is symmetric, for LDL^T in place of LU.
bool may_be_ldlt(PatternView A, const AnalyzeOptions& options) {
  return options.symmetric && options.matching && options.method == MethodChoice::automatic && A.n >= least_ldlt;
}

// Whether to search for blocks: column LU profits from the block triangular form; fronts take the matrix as one block,
// because few matrices with enough fill for fronts have several blocks.
bool may_use_blocks(const AnalyzeOptions& options) {
  const bool by_degree = options.ordering == "auto" || options.ordering == "amd";
  return by_degree && options.method != MethodChoice::front;
}

// Whether most entries off the diagonal have no transposed partner: then several blocks are no accident.
bool is_unsymmetric(PatternView graph, PatternView A) {
  return (double)graph.nnz() > unsymmetric * ((double)A.nnz() - A.n);
}

// Whether to order block by block: where no block is nearly all, and column LU is likely, or so many of the entries lie
// between blocks that fronts of the whole may have much more fill than the blocks.
bool orders_by_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks, bool column_likely) {
  return !one_block_dominates(blocks) && (column_likely || coupling_matters(A, row_of_col, blocks));
}

// Whether fronts of the whole can take over the order of the blocks: the coupling, which they do not leave out, adds
// little.
bool is_coupling_acceptable(const OrderingCost& whole, const OrderingCost& by_blocks) {
  return whole.flops <= acceptable_coupling * by_blocks.flops;
}

// Whether A is of a size that may be left in its own order (lu_pattern.hpp): larger ones have work for several threads,
// which a chain of columns does not have.
bool may_be_staircase(PatternView A, const AnalyzeOptions& options) {
  constexpr idx least = 64;  // below, matching and ordering cost nothing
  if (!options.matching || options.symmetric || options.method != MethodChoice::automatic) return false;
  return options.ordering == "auto" && A.n >= least && A.n < sure_column;
}

// Whether A has so few zeros that it is one front for any matching and ordering.
bool is_one_front(PatternView A, const AnalyzeOptions& options) {
  constexpr idx least = 32;      // below, columns are as fast
  constexpr double full = 0.75;  // of the entries
  // Half of them, as in Hessenberg matrices, fill up with their transposes; from some order on the zeros matter.
  constexpr double half = 0.5;
  constexpr idx most_of_half = 256;
  if (!options.matching || options.symmetric || options.method != MethodChoice::automatic) return false;
  if (A.n < least || !may_use_blocks(options)) return false;
  const double entries = (double)A.nnz(), all = (double)A.n * A.n;
  if (entries >= full * all) return true;
  return entries >= half * all && A.n <= most_of_half && has_whole_diagonal(A) &&
         block_triangular(A, nullptr).block_ptr.size() == 2;
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

// An analysis by each of the orderings; two are finished at the same time.
template <class T, class Orderings, class Finish>
std::vector<Symbolic> candidates(PatternView A, const T* values, const AnalyzeOptions& options, Orderings&& orderings,
                                 Finish&& finish) {
  Symbolic s = described(A, options);
  std::vector<idx> rows;
  if (options.cholesky) s.structural_rank = s.n;
  else if (!match(A, values, options, s, rows)) return {s};
  const idx* row_of_col = rows.empty() ? nullptr : rows.data();
  const Pattern graph = timed(s, "symmetrize", [&] { return symmetrize(A, row_of_col); });
  std::vector<Ordered> orders = timed(s, "order", [&] { return orderings(graph.view(), options, s); });
  std::vector<Symbolic> out(orders.size(), s);
  const auto finish_one = [&](std::size_t k) { finish(out[k], graph.view(), std::move(orders[k]), row_of_col); };
  const auto finish_second = [&] { finish_one(1); };
  std::optional<BackgroundTask<decltype(finish_second)>> second;
  if (orders.size() > 1) second.emplace(finish_second);
  finish_one(0);
  if (second) second->join();
  return out;
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

const std::vector<std::string_view>& ordering_names() {
  // Never destroyed: threads may be in here while the process ends.
  static const auto* names = [] {
    auto* all = new std::vector<std::string_view>{"auto"};
    for (const NamedOrdering& known : orderings) all->push_back(known.name);
    return all;
  }();
  return *names;
}

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
  if (options.ldlt) return analyze_ldlt(A, values, options, nullptr, described(A, options), orderings_for_fronts);
  return candidates(A, values, options, orderings_for_fronts, finish_front);
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
  const auto finish = [&](Symbolic& s, PatternView, Ordered&& order, const idx* row_of_col) {
    if (options.ordering == "user") order.tree.perm.assign(options.user_perm, options.user_perm + s.n);
    finish_column(s, std::move(order), {0, s.n}, row_of_col);
  };
  return candidates(A, values, options, orderings_for_columns, finish);
}

#define GS_INSTANTIATE(T)                                                                       \
  template Symbolic analyze(PatternView, const T*, const AnalyzeOptions&);                      \
  template std::vector<Symbolic> analyze_columns(PatternView, const T*, const AnalyzeOptions&); \
  template std::vector<Symbolic> analyze_fronts(PatternView, const T*, const AnalyzeOptions&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
