#include <nanobind/stl/tuple.h>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/columns/trailing.hpp"

namespace gs {
namespace {

void require_division(idx p, idx n) { require(p >= 0 && p <= n, "p must be in 0 .. n"); }

}  // namespace

void bind_trailing_terms(nb::module_& m) {
  m.def(
      "column_times",
      [](In<off> col_ptr, In<idx> row, In<off> diag, In<idx> level, const Costs& all, double column, double update,
         double slice, double long_column, double long_depth) {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        const gpu::ColumnCosts costs{column, update, slice, long_column, long_depth};
        if (level.shape(0)) require_entries(level, pattern.n, "level");
        const idx* levels = level.shape(0) ? level.data() : nullptr;
        gpu::ColumnTimes times =
            without_gil([&] { return gpu::column_times(pattern, levels, costs, all.columns.longest); });
        return std::make_tuple(to_numpy(std::move(times.finish)), to_numpy(std::move(times.last)),
                               to_numpy(std::move(times.depth)));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "level"_a, "costs"_a, "column"_a, "update"_a, "slice"_a, "long_column"_a,
      "long_depth"_a,
      "When columns are finished, the latest of those before, the chain of L; core/plan/columns/trailing.hpp.");
  m.def(
      "longest_trailing_column",
      [](In<off> col_ptr, In<idx> row, In<off> diag, In<off> position, idx p, double entry, double term) {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        require_entries(position, pattern.n, "position");
        require_division(p, pattern.n);
        return gpu::longest_trailing_column(pattern, position.data(), p, entry, term);
      },
      "col_ptr"_a, "row"_a, "diag"_a, "position"_a, "p"_a, "entry"_a, "term"_a);
  m.def(
      "count_trailing_terms",
      [](In<off> col_ptr, In<idx> row, In<off> diag, idx p) {
        require_division(p, (idx)diag.shape(0));
        return gpu::count_trailing_terms(column_pattern(col_ptr, row, diag), p);
      },
      "col_ptr"_a, "row"_a, "diag"_a, "p"_a);
  m.def(
      "trailing_terms",
      [](In<off> col_ptr, In<idx> row, In<off> diag, idx p, off capacity, off kept, off overlapped,
         int scalar_bytes) -> Dict {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        require_division(p, pattern.n);
        gpu::TrailingTerms terms = without_gil([&] {
          return gpu::make_trailing_terms(pattern, p, {capacity, kept, overlapped, scalar_bytes});
        });
        nb::dict out;
        out["term_ptr"] = to_numpy(std::move(terms.term_ptr));
        out["place"] = to_numpy(std::move(terms.place));
        out["position"] = to_numpy(std::move(terms.position));
        out["order"] = to_numpy(std::move(terms.order));
        out["huge"] = to_numpy(std::move(terms.huge));
        out["step_ptr"] = to_numpy(std::move(terms.step_ptr));
        out["step"] = to_numpy(std::move(terms.step));
        out["batch_ptr"] = to_numpy(std::move(terms.batch_ptr));
        out["batch"] = to_numpy(std::move(terms.batch));
        out["need_ptr"] = to_numpy(std::move(terms.need_ptr));
        out["need"] = to_numpy(std::move(terms.need));
        return out;
      },
      "col_ptr"_a, "row"_a, "diag"_a, "p"_a, "capacity"_a, "kept"_a, "overlapped"_a, "scalar_bytes"_a,
      "What a dense trailing block takes from the columns; core/plan/columns/trailing.hpp.");
}

}  // namespace gs
