#include "bind/bind.hpp"
#include "plan/columns/corner_terms.hpp"

namespace gs {

void bind_corner_terms(nb::module_& m) {
  m.def(
      "count_corner_terms",
      [](In<off> col_ptr, In<idx> row, In<off> diag, idx p) {
        return gpu::count_corner_terms({(idx)diag.shape(0), col_ptr.data(), diag.data(), row.data()}, p);
      },
      "col_ptr"_a, "row"_a, "diag"_a, "p"_a);
  m.def(
      "corner_terms",
      [](In<off> col_ptr, In<idx> row, In<off> diag, idx p) {
        const gpu::ColumnPattern pattern{(idx)diag.shape(0), col_ptr.data(), diag.data(), row.data()};
        gpu::CornerTerms terms = without_gil([&] { return gpu::make_corner_terms(pattern, p); });
        nb::dict out;
        out["term_ptr"] = to_numpy(std::move(terms.term_ptr));
        out["place"] = to_numpy(std::move(terms.place));
        out["position"] = to_numpy(std::move(terms.position));
        out["order_ptr"] = to_numpy(std::move(terms.order_ptr));
        out["order"] = to_numpy(std::move(terms.order));
        out["level_ptr"] = to_numpy(std::move(terms.level_ptr));
        out["level"] = to_numpy(std::move(terms.level));
        return out;
      },
      "col_ptr"_a, "row"_a, "diag"_a, "p"_a,
      "What a dense corner takes from the columns; core/plan/columns/corner_terms.hpp.");
}

}  // namespace gs
