// Stages of the symbolic analysis, one function each.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "analysis/column_counts.hpp"
#include "analysis/elimination_tree.hpp"
#include "analysis/graph.hpp"
#include "analysis/lu_pattern.hpp"
#include "analysis/structure.hpp"
#include "shared/costs.hpp"
#include "testing.hpp"

namespace gs {
namespace {

using PatternArrays = std::pair<NumPy<off>, NumPy<idx>>;

PatternArrays to_arrays(Pattern&& pattern) {
  return {to_numpy(std::move(pattern.ptr)), to_numpy(std::move(pattern.ind))};
}

PatternArrays symmetrize_arrays(In<off> ptr, In<idx> ind, std::optional<In<idx>> row_of_col) {
  const PatternView A = pattern_view(ptr, ind);
  return to_arrays(without_gil([&] { return symmetrize(A, row_of_col ? row_of_col->data() : nullptr); }));
}

PatternArrays symmetrize_blocks_arrays(In<off> ptr, In<idx> ind, In<idx> inverse_row_perm, In<idx> col_perm,
                                       In<idx> block) {
  const PatternView A = pattern_view(ptr, ind);
  return to_arrays(symmetrize_blocks(A, A.n, inverse_row_perm.data(), col_perm.data(), block.data()));
}

NumPy<idx> column_counts_array(In<off> ptr, In<idx> ind, In<idx> perm, In<idx> parent) {
  const PatternView graph = pattern_view(ptr, ind);
  const std::vector<idx> inverse = inverse_permutation(perm.data(), graph.n);
  return to_numpy(column_counts(graph, perm.data(), inverse.data(), to_vector(parent)));
}

std::tuple<off, double, idx> ordering_cost_tuple(In<off> ptr, In<idx> ind, In<idx> perm) {
  const PatternView graph = pattern_view(ptr, ind);
  const OrderingCost cost = ordered_tree(graph, to_vector(perm)).cost;
  return {cost.lnz, cost.flops, cost.levels};
}

std::pair<NumPy<idx>, Symbolic> structure_of(In<off> ptr, In<idx> ind, In<idx> perm, const Costs& costs, bool cholesky,
                                             bool relax) {
  const PatternView graph = pattern_view(ptr, ind);
  Symbolic symbolic;
  symbolic.n = graph.n;
  symbolic.cholesky = cholesky;
  Relaxation relaxation{costs.cpu.supernodes};
  if (!relax) std::fill(std::begin(relaxation.zero_fraction), std::end(relaxation.zero_fraction), -1);
  std::vector<idx> order =
      without_gil([&] { return supernodal_structure(graph, to_vector(perm), relaxation, symbolic); });
  return {to_numpy(std::move(order)), std::move(symbolic)};
}

// ((L_ptr, L_ind), (U_ptr, U_ind), flops)
std::tuple<PatternArrays, PatternArrays, double> lu_pattern_arrays(In<off> ptr, In<idx> ind, In<idx> row_perm,
                                                                   In<idx> col_perm) {
  const PatternView A = pattern_view(ptr, ind);
  const std::vector<idx> inverse = inverse_permutation(row_perm.data(), A.n);
  LuPattern factors = without_gil([&] { return lu_pattern(A, inverse.data(), col_perm.data()); });
  return {to_arrays(std::move(factors.L)), to_arrays(std::move(factors.U)), factors.flops};
}

}  // namespace

void bind_structure(nb::module_& m) {
  m.def("symmetrize", &symmetrize_arrays, "ptr"_a, "ind"_a, "row_of_col"_a = nb::none(),
        "Graph (ptr, ind) of C + C^T without diagonal, C = A[row_of_col].");
  m.def("symmetrize_blocks", &symmetrize_blocks_arrays, "ptr"_a, "ind"_a, "inverse_row_perm"_a, "col_perm"_a, "block"_a,
        "Graph of the diagonal blocks of A[row_perm][:, col_perm]; block: of each of its rows and columns.");
  m.def(
      "dimension", [](In<off> ptr, In<idx> ind) { return dimension(pattern_view(ptr, ind)); }, "ptr"_a, "ind"_a,
      "The exponent by which balls in a graph grow with their radius.");
  m.def(
      "elimination_tree",
      [](In<off> ptr, In<idx> ind, In<idx> perm) {
        const PatternView graph = pattern_view(ptr, ind);
        return to_numpy(elimination_tree(graph, perm.data()));
      },
      "ptr"_a, "ind"_a, "perm"_a, "Elimination tree of graph[perm][:, perm].");
  m.def(
      "postorder", [](In<idx> parent) { return to_numpy(postorder(to_vector(parent))); }, "parent"_a,
      "Postorder (gather) of a forest with parent[j] > j.");
  m.def("column_counts", &column_counts_array, "ptr"_a, "ind"_a, "perm"_a, "parent"_a,
        "Entries of the columns of L of graph[perm][:, perm]; perm is a postorder of parent.");
  m.def("ordering_cost", &ordering_cost_tuple, "ptr"_a, "ind"_a, "perm"_a, "(lnz, flops, levels) of an ordering.");
  m.def("supernodal_structure", &structure_of, "ptr"_a, "ind"_a, "perm"_a, "costs"_a, "cholesky"_a = false,
        "relax"_a = true, "(final permutation, Symbolic) with the structure of graph[perm][:, perm].");
  m.def("lu_pattern", &lu_pattern_arrays, "ptr"_a, "ind"_a, "row_perm"_a, "col_perm"_a,
        "((L_ptr, L_ind), (U_ptr, U_ind), flops) for A[row_perm][:, col_perm] with diagonal pivots.");
}

}  // namespace gs
