#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "analysis/amd.hpp"
#include "analysis/dissection/nested_dissection.hpp"
#include "testing.hpp"

namespace gs {
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
}

}  // namespace gs
