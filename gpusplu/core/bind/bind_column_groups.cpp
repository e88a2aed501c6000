#include "bind/bind.hpp"
#include "plan/columns/groups.hpp"

namespace gs {

void bind_column_groups(nb::module_& m) {
  m.def(
      "column_groups",
      [](In<off> col_ptr, In<idx> row, In<off> diag, off leaf, off capacity, idx columns) {
        const gpu::ColumnPattern pattern{(idx)diag.shape(0), col_ptr.data(), diag.data(), row.data()};
        gpu::ColumnGroups groups = without_gil([&] {
          return gpu::make_column_groups(pattern, {leaf, capacity, columns});
        });
        return nb::make_tuple(to_numpy(std::move(groups.range)), to_numpy(std::move(groups.level_ptr)));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "leaf"_a, "capacity"_a, "columns"_a,
      "(range, level_ptr): groups of columns for one block each; see core/plan/columns/groups.hpp.");
  m.def(
      "columns_that_follow",
      [](In<off> col_ptr, In<idx> row, In<off> diag) {
        const gpu::ColumnPattern pattern{(idx)diag.shape(0), col_ptr.data(), diag.data(), row.data()};
        return to_numpy(without_gil([&] { return gpu::columns_that_follow(pattern); }));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "1 for columns of L with the rows of the column before but for its own.");
  m.def(
      "row_diagonals",
      [](In<off> col_ptr, In<idx> row, In<off> diag, In<off> row_ptr) {
        const gpu::ColumnPattern pattern{(idx)diag.shape(0), col_ptr.data(), diag.data(), row.data()};
        return to_numpy(without_gil([&] { return gpu::row_diagonals(pattern, row_ptr.data()); }));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "row_ptr"_a, "Where the diagonal lies in each row of L + U, by rows.");
}

}  // namespace gs
