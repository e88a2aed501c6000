#include "analysis/analyze.hpp"

#include <algorithm>
#include <complex>
#include <numeric>
#include <thread>

#include "analysis/amd.hpp"
#include "analysis/block_triangular.hpp"
#include "analysis/column_counts.hpp"
#include "analysis/graph.hpp"
#include "analysis/matching.hpp"
#include "analysis/nested_dissection.hpp"
#include "analysis/structure.hpp"
#include "analysis/time_model.hpp"
#include "base/threads.hpp"

namespace gs {
namespace {

struct Ordered {
  std::vector<idx> perm;
  OrderingCost cost;
  const char* name = "amd";
};

std::vector<idx> identity(idx n) {
  std::vector<idx> p(n);
  std::iota(p.begin(), p.end(), 0);
  return p;
}

Ordered order_amd(PatternView graph) {
  Ordered o;
  o.perm = amd(graph);
  o.cost = ordering_cost(graph, o.perm.data());
  return o;
}

Ordered order_dissection(PatternView graph) {
  Ordered o;
  o.perm = nested_dissection(graph);
  o.cost = ordering_cost(graph, o.perm.data());
  o.name = "nd";
  return o;
}

// Which fill-reducing ordering serves the front method best. Minimum degree is cheap and wins on small and very sparse
// graphs; dissection wins on large ones and costs about 2 us a vertex, so on middling ones it is tried where
// the factorization it may shorten takes longer than it does itself, and beside minimum degree where both may win.
Ordered order_automatic(PatternView graph, double seconds_per_flop_unit) {
  const int threads = num_threads();
  const idx n = graph.n;
  constexpr idx always_dissect = 400000, both_at_once = 40000;
  if (n >= always_dissect) return order_dissection(graph);
  Ordered by_degree, by_dissection;
  if (n >= both_at_once) {
    std::thread other([&] { by_degree = order_amd(graph); });
    by_dissection = order_dissection(graph);
    other.join();
  } else {
    by_degree = order_amd(graph);
    const double seconds = seconds_per_flop_unit * front_seconds(n, by_degree.cost, threads);
    if (n < 2000 || seconds < 1e-6 * n) return by_degree;
    by_dissection = order_dissection(graph);
  }
  return front_seconds(n, by_dissection.cost, threads) < front_seconds(n, by_degree.cost, threads) ? by_dissection
                                                                                                   : by_degree;
}

// Minimum degree inside every diagonal block of the block triangular form.
Ordered order_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks) {
  Ordered o;
  o.perm = blocks.perm;
  o.cost = {};
  std::vector<idx> inverse_row_perm(A.n);
  for (idx i = 0; i < A.n; i++) inverse_row_perm[row_of_col ? row_of_col[blocks.perm[i]] : blocks.perm[i]] = i;
  const idx nblocks = (idx)blocks.block_ptr.size() - 1;
  for (idx k = 0; k < nblocks; k++) {
    const idx begin = blocks.block_ptr[k], end = blocks.block_ptr[k + 1];
    if (end - begin < 3) {
      o.cost.lnz += end - begin;
      continue;
    }
    const Pattern graph = symmetrize_block(A, inverse_row_perm.data(), blocks.perm.data(), begin, end);
    const Ordered block = order_amd(graph.view());
    for (idx i = begin; i < end; i++) o.perm[i] = blocks.perm[begin + block.perm[i - begin]];
    o.cost.lnz += block.cost.lnz;
    o.cost.flops += block.cost.flops;
    o.cost.levels = std::max(o.cost.levels, block.cost.levels);
  }
  return o;
}

Ordered order_graph(PatternView graph, const AnalyzeOptions& options, double work) {
  switch (options.ordering) {
    case Ordering::amd:
      return order_amd(graph);
    case Ordering::nested_dissection:
      return order_dissection(graph);
    case Ordering::natural:
    case Ordering::user: {
      Ordered o;
      o.perm = options.ordering == Ordering::user ? std::vector<idx>(options.user_perm, options.user_perm + graph.n)
                                                  : identity(graph.n);
      o.cost = ordering_cost(graph, o.perm.data());
      o.name = options.ordering == Ordering::user ? "user" : "natural";
      return o;
    }
    default:
      return order_automatic(graph, work);
  }
}

void set_rows(Symbolic& s, const idx* row_of_col) {
  s.row_perm.resize(s.n);
  for (idx i = 0; i < s.n; i++) s.row_perm[i] = row_of_col ? row_of_col[s.col_perm[i]] : s.col_perm[i];
}

void finish_column(Symbolic& s, Ordered&& order, std::vector<idx>&& block_ptr, const idx* row_of_col) {
  s.method = Method::column;
  s.col_perm = std::move(order.perm);
  s.block_ptr = std::move(block_ptr);
  s.ordering = order.name;
  s.lnz = order.cost.lnz;
  s.flops = 2 * order.cost.flops;
  s.column_levels = order.cost.levels;
  set_rows(s, row_of_col);
}

void finish_front(Symbolic& s, PatternView graph, Ordered&& order, const idx* row_of_col) {
  s.method = Method::front;
  s.ordering = order.name;
  s.block_ptr = {0, s.n};
  s.col_perm = supernodal_structure(graph, std::move(order.perm), Relaxation{}, s);
  set_rows(s, row_of_col);
}

void analyze_cholesky(PatternView A, const AnalyzeOptions& options, Symbolic& s) {
  s.structural_rank = s.n;
  const Pattern graph = symmetrize(A, nullptr);
  finish_front(s, graph.view(), order_graph(graph.view(), options, 1.0), nullptr);
}

bool column_is_faster(idx n, const OrderingCost& cost, MethodChoice choice) {
  if (choice != MethodChoice::automatic) return choice == MethodChoice::column;
  return column_seconds(n, cost, num_threads()) <= front_seconds(n, cost, num_threads());
}

// Column LU profits from the block triangular form; fronts take the matrix as one block, because few matrices with
// enough fill for fronts fall apart. Small matrices are ordered by blocks first, large ones as a whole first, so that
// the usual case of either pays for one ordering only.
void analyze_lu(PatternView A, const idx* row_of_col, const AnalyzeOptions& options, Symbolic& s) {
  constexpr idx small = 5000;
  const bool minimum_degree = options.ordering == Ordering::automatic || options.ordering == Ordering::amd;
  BlockTriangular blocks;
  if (minimum_degree && options.method != MethodChoice::front) blocks = block_triangular(A, row_of_col);
  const bool reducible = blocks.block_ptr.size() > 2;
  auto try_blocks = [&] {
    Ordered order = order_blocks(A, row_of_col, blocks);
    if (!column_is_faster(s.n, order.cost, options.method)) return false;
    finish_column(s, std::move(order), std::move(blocks.block_ptr), row_of_col);
    return true;
  };
  const bool blocks_first = reducible && (s.n < small || options.method == MethodChoice::column);
  if (blocks_first && try_blocks()) return;
  const Pattern graph = symmetrize(A, row_of_col);
  Ordered order = order_graph(graph.view(), options, 2.0);
  if (!column_is_faster(s.n, order.cost, options.method))
    return finish_front(s, graph.view(), std::move(order), row_of_col);
  if (reducible && !blocks_first && try_blocks()) return;
  finish_column(s, std::move(order), {0, s.n}, row_of_col);
}

}  // namespace

template <class T> Symbolic analyze(PatternView A, const T* values, const AnalyzeOptions& options) {
  Symbolic s;
  s.n = A.n;
  s.nnz = A.nnz();
  s.cholesky = options.cholesky;
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
  if (!options.matching) {
    s.structural_rank = s.n;
    analyze_lu(A, nullptr, options, s);
    return s;
  }
  Matching matching = max_product_matching(A, values);
  s.structural_rank = matching.structural_rank;
  if (s.structural_rank < s.n) return s;
  s.row_scale = std::move(matching.row_scale);
  s.col_scale = std::move(matching.col_scale);
  analyze_lu(A, matching.row_of_col.data(), options, s);
  return s;
}

template Symbolic analyze(PatternView, const float*, const AnalyzeOptions&);
template Symbolic analyze(PatternView, const double*, const AnalyzeOptions&);
template Symbolic analyze(PatternView, const std::complex<float>*, const AnalyzeOptions&);
template Symbolic analyze(PatternView, const std::complex<double>*, const AnalyzeOptions&);

}  // namespace gs
