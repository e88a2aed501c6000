#include "analysis/amd.hpp"
#include "analysis/dissection/nested_dissection.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"

namespace gs {
namespace {

NumPy<idx> bound_nested_dissection(const In<off>& ptr, const In<idx>& ind, int threads, std::uint64_t seed) {
  std::vector<idx> perm;
  {
    nb::gil_scoped_release unlocked;
    perm = nested_dissection(pattern_view(ptr, ind), {threads, seed});
  }
  return to_numpy(std::move(perm));
}

}  // namespace

void bind_ordering(nb::module_& m) {
  m.def(
      "amd",
      [](In<off> ptr, In<idx> ind) { return to_numpy(without_gil([&] { return amd(pattern_view(ptr, ind)); })); },
      "ptr"_a, "ind"_a, "Approximate minimum degree ordering of a symmetric pattern: gather permutation.");
  m.def("nested_dissection", &bound_nested_dissection, "ptr"_a, "ind"_a, "threads"_a = 0, "seed"_a = 1,
        "Fill-reducing order of a symmetric pattern (both triangles): perm[new] = old.");
}

}  // namespace gs
