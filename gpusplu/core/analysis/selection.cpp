#include "analysis/selection.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "analysis/amd.hpp"
#include "analysis/dissection/nested_dissection.hpp"
#include "analysis/graph.hpp"
#include "base/background_task.hpp"
#include "matrix/scales.hpp"

namespace gs {
namespace {

// Sizes of graphs below which dissection never pays, and from which on minimum degree is not even tried.
constexpr idx never_dissect = 3000, large = 400000;
// The last for finite elements in space, where minimum degree takes longer than dissection by several threads and
// causes a multiple of the flops; levels cost a device more than a processor.
constexpr idx middling = 50000, middling_on_device = 10000;
// Where vertices have no more neighbours on average, and minimum degree no more fill relative to the matrix, other
// orders cannot do much better.
constexpr double few_neighbours = 2.5, little_fill = 2;
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

// Dissection first.
std::vector<Ordered> order_both(PatternView graph) {
  std::vector<Ordered> orders(2);
  BackgroundTask other([&] { orders[1] = order_amd(graph); });
  orders[0] = order_dissection(graph);
  other.join();
  return orders;
}

bool only_dissection(PatternView graph, idx from) {
  return graph.n >= large || (graph.n >= from && (double)graph.nnz() > neighbours_in_space * graph.n);
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
// longer than it does itself, and on large ones in parallel with minimum degree.
Ordered order_automatic(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  const auto total = [&](const Ordered& order) { return predicted_total(Method::front, order, options, s); };
  std::vector<Ordered> orders;
  if (graph.n >= both_orderings_from && (double)graph.nnz() <= few_neighbours * graph.n) {
    Ordered by_degree = order_amd(graph);
    if ((double)by_degree.tree.cost.lnz <= little_fill * (0.5 * (double)graph.nnz() + graph.n)) return by_degree;
  }
  if (only_dissection(graph, middling)) {
    orders.push_back(order_dissection(graph));
  } else if (graph.n >= both_orderings_from) {
    orders = order_both(graph);
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

}  // namespace

bool is_badly_scaled(const Symbolic& s) {
  const auto is_wide = [](const std::vector<double>& scale) {
    const ScaleRange range = range_of(scale);
    return range.largest / range.least > 1e9;
  };
  return is_wide(s.row_scale) && is_wide(s.col_scale);
}

const std::vector<std::string_view>& ordering_names() {
  // Never destroyed: threads may be in here while the process ends.
  static const auto* names = [] {
    auto* all = new std::vector<std::string_view>{"auto"};
    for (const NamedOrdering& known : orderings) all->push_back(known.name);
    return all;
  }();
  return *names;
}

Ordered choose_ordering(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  if (options.ordering == "user")
    return {ordered_tree(graph, {options.user_perm, options.user_perm + graph.n}), "user"};
  for (const NamedOrdering& known : orderings)
    if (options.ordering == known.name) return known.order(graph);
  return order_automatic(graph, options, s);
}

std::vector<Ordered> orderings_for_fronts(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  std::vector<Ordered> orders;
  if (options.ordering != "auto") {
    orders.push_back(choose_ordering(graph, options, s));
  } else if (only_dissection(graph, middling_on_device)) {
    orders.push_back(order_dissection(graph));
  } else {
    orders = order_both(graph);
    drop_hopeless(orders);
  }
  return orders;
}

std::vector<Ordered> orderings_for_columns(PatternView graph, const AnalyzeOptions& options, Symbolic& s) {
  std::vector<Ordered> orders;
  if (options.ordering == "auto") orders = order_both(graph);
  else orders.push_back(choose_ordering(graph, options, s));
  std::reverse(orders.begin(), orders.end());  // of equals the first is taken: minimum degree
  return orders;
}

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

std::vector<idx> sorted_by_block(const std::vector<idx>& perm, const BlockTriangular& blocks) {
  const std::vector<idx> block_of = block_of_columns(blocks);
  std::vector<idx> next(blocks.block_ptr), sorted(perm.size());
  for (const idx j : perm) sorted[next[block_of[j]]++] = j;
  return sorted;
}

bool ldlt_is_faster(const Ordered& order, const AnalyzeOptions& options, Symbolic& s) {
  AnalyzeOptions by_lu(options);
  by_lu.symmetric = false;
  return !column_is_faster(order, order, options, s) &&
         predicted_total(Method::front, order, options, s) < predicted_total(Method::front, order, by_lu, s);
}

bool column_is_faster(const Ordered& by_columns, const Ordered& by_fronts, const AnalyzeOptions& options, Symbolic& s) {
  if (options.method != MethodChoice::automatic) return options.method == MethodChoice::column;
  const double fronts = predicted_total(Method::front, by_fronts, options, s);
  const double columns = predicted_total(Method::column, by_columns, options, s);
  return columns <= fronts || (columns <= fixed_pivot_risk * fronts && is_badly_scaled(s));
}

bool is_column_likely(const Symbolic& s, const AnalyzeOptions& options) {
  return s.n < likely_column || is_badly_scaled(s) || options.method == MethodChoice::column;
}

bool may_keep_diagonal(PatternView A, const AnalyzeOptions& options) {
  if (!options.keep_diagonal || !options.matching || options.method == MethodChoice::front) return false;
  return A.n < sure_column || (double)A.nnz() <= sparse_column * A.n || options.method == MethodChoice::column;
}

bool may_be_ldlt(PatternView A, const AnalyzeOptions& options) {
  return options.symmetric && options.matching && options.method == MethodChoice::automatic && A.n >= least_ldlt;
}

bool may_use_blocks(const AnalyzeOptions& options) {
  const bool by_degree = options.ordering == "auto" || options.ordering == "amd";
  return by_degree && options.method != MethodChoice::front;
}

bool is_unsymmetric(PatternView graph, PatternView A) {
  return (double)graph.nnz() > unsymmetric * ((double)A.nnz() - A.n);
}

bool orders_by_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks, bool column_likely) {
  return !one_block_dominates(blocks) && (column_likely || coupling_matters(A, row_of_col, blocks));
}

bool is_coupling_acceptable(const OrderingCost& whole, const OrderingCost& by_blocks) {
  return whole.flops <= acceptable_coupling * by_blocks.flops;
}

bool may_be_staircase(PatternView A, const AnalyzeOptions& options) {
  constexpr idx least = 64;  // below, matching and ordering cost nothing
  if (!options.matching || options.symmetric || options.method != MethodChoice::automatic) return false;
  return options.ordering == "auto" && A.n >= least && A.n < sure_column;
}

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

}  // namespace gs
