#include "analysis/lu_pattern.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/types.hpp"
#include "matrix/scales.hpp"

namespace gs {
namespace {

// Rows that begin in the same column are candidates for its pivot, and where one is taken the others get its pattern: a
// group of rows with the union of their patterns, without the column, as its pattern.
class RowMerging {
 public:
  explicit RowMerging(PatternView A)
      : n_(A.n), row_ptr_((std::size_t)A.n + 1), row_ind_(A.nnz()), first_(A.n, -1), group_(2 * (std::size_t)A.n) {
    for (off p = 0; p < A.nnz(); p++) row_ptr_[A.ind[p] + 1]++;
    for (idx i = 0; i < n_; i++) row_ptr_[i + 1] += row_ptr_[i];
    RawVector<off> next(row_ptr_.begin(), row_ptr_.end() - 1);
    for (idx j = 0; j < n_; j++)
      for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) row_ind_[next[A.ind[p]]++] = j;
  }

  std::optional<OwnOrderSize> run(off most) {
    for (idx i = n_; i-- > 0;) {
      const off begin = row_ptr_[i], end = row_ptr_[i + 1];
      if (begin == end) return {};
      enter(i, {begin, end, 1, -1}, row_ind_[begin]);
    }
    OwnOrderSize size;
    std::vector<idx> both, other;
    for (idx j = 0; j < n_; j++) {
      if (first_[j] < 0) return {};
      both.clear();
      idx count = 0;
      for (idx g = first_[j]; g >= 0; g = group_[g].next) {
        const Group& group = group_[g];
        const idx* const columns = (g < n_ ? row_ind_.data() : merged_.data()) + group.begin;
        const idx* const end = columns + (group.end - group.begin);
        count += group.count;
        if (both.size() == std::size_t(end - columns) && std::equal(columns, end, both.begin())) continue;
        other.resize(both.size() + (end - columns));
        other.resize(std::set_union(both.begin(), both.end(), columns, end, other.begin()) - other.begin());
        both.swap(other);
      }
      size.lower += count, size.upper += (off)both.size();
      size.flops += double(count - 1) * (double)both.size();
      if (size.lower + size.upper > most) return {};
      if (count == 1) continue;
      if (both.size() == 1) return {};
      const off begin = (off)merged_.size();
      merged_.insert(merged_.end(), both.begin() + 1, both.end());
      enter(n_ + j, {begin, (off)merged_.size(), count - 1, -1}, both[1]);
    }
    return size;
  }

 private:
  struct Group {
    off begin, end;  // its columns: of a row as it is, of others in merged_
    idx count;       // rows
    idx next;        // that begins in the same column
  };

  void enter(idx g, Group group, idx column) {
    group.next = first_[column];
    first_[column] = g;
    group_[g] = group;
  }

  const idx n_;
  std::vector<off> row_ptr_;
  RawVector<idx> row_ind_;
  std::vector<idx> first_;  // group that begins in a column
  RawVector<Group> group_;  // rows, and the group that the pivot of a column leaves
  std::vector<idx> merged_;
};

}  // namespace

std::optional<OwnOrderSize> own_order_size(PatternView A, off most) { return RowMerging(A).run(most); }

bool is_near_diagonal(PatternView A) {
  constexpr double wider = 2;
  const double most = wider * (double)A.nnz() * (double)A.nnz() / A.n;
  double sum = 0;
  for (idx j = 0; j < A.n && sum <= most; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) sum += std::abs(A.ind[p] - j);
  return sum <= most;
}

template <class T> bool rows_are_alike(PatternView A, const T* values) {
  constexpr double most = 1e6;
  const ScaleRange range = range_of(scales_of_rows(A, values));
  return range.largest <= most * range.least;
}

#define GS_INSTANTIATE(T) template bool rows_are_alike(PatternView, const T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
