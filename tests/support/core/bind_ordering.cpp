// Orderings, matchings and the block triangular form, one function each.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "analysis/amd.hpp"
#include "analysis/block_triangular.hpp"
#include "analysis/dissection/nested_dissection.hpp"
#include "analysis/matching.hpp"
#include "testing.hpp"

namespace gs {
namespace {

template <class T> nb::tuple matching(In<off> ptr, In<idx> ind, In<T> values) {
  const PatternView A = pattern_view(ptr, ind);
  Matching m = without_gil([&] { return max_product_matching(A, values.data()); });
  return nb::make_tuple(m.structural_rank, to_numpy(std::move(m.row_of_col)), to_numpy(std::move(m.row_scale)),
                        to_numpy(std::move(m.col_scale)));
}

nb::tuple blocks(In<off> ptr, In<idx> ind, std::optional<In<idx>> row_of_col) {
  const PatternView A = pattern_view(ptr, ind);
  const idx* rows = row_of_col ? row_of_col->data() : nullptr;
  BlockTriangular form = without_gil([&] { return block_triangular(A, rows); });
  return nb::make_tuple(to_numpy(std::move(form.perm)), to_numpy(std::move(form.block_ptr)));
}

}  // namespace

void bind_ordering(nb::module_& m) {
  m.def(
      "amd",
      [](In<off> ptr, In<idx> ind) { return to_numpy(without_gil([&] { return amd(pattern_view(ptr, ind)); })); },
      "ptr"_a, "ind"_a, "Approximate minimum degree ordering of a symmetric pattern: gather permutation.");
  m.def(
      "amd_size",
      [](In<off> ptr, In<idx> ind) {
        std::optional<FactorSize> size;
        without_gil([&] { return amd(pattern_view(ptr, ind), &size); });
        return size ? std::optional(std::pair(size->lnz, size->flops)) : std::nullopt;
      },
      "ptr"_a, "ind"_a, "Entries and flops of the factor as minimum degree counts them; None: it left rows out.");
  m.def(
      "nested_dissection",
      [](In<off> ptr, In<idx> ind) {
        return to_numpy(without_gil([&] { return nested_dissection(pattern_view(ptr, ind)); }));
      },
      "ptr"_a, "ind"_a, "Fill-reducing order of a symmetric pattern (both triangles): perm[new] = old.");
  const char* doc = "Maximum product matching: (structural rank, row of each column, row scale, column scale).";
  for_scalars([&]<class T>(const char*) {
    m.def("max_product_matching", &matching<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), doc);
  });
  m.def("block_triangular", &blocks, "ptr"_a, "ind"_a, "row_of_col"_a = nb::none(),
        "Block upper triangular form of A[row_of_col]: (gather permutation, block boundaries).");
}

}  // namespace gs
