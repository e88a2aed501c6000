#include "numeric/column_nodes.hpp"

#include <algorithm>

namespace gs {
namespace {

// Consecutive columns that may share one node: column k joins when U(k-1, k) is there (then L's column k holds all rows
// of the ones before) and the zeros stored on account of all that is joined stay few. Returns the first column of each
// run, and n. Time: O(nnz(U)).
template <class T> std::vector<idx> find_runs(const std::vector<idx>& block_ptr, const PivotedColumns<T>& columns) {
  const idx n = block_ptr.back();
  std::vector<idx> runs, mark(n, -1);
  for (std::size_t block = 0; block + 1 < block_ptr.size(); block++) {
    idx begin = -1;
    off stored = 0, union_upper = 0;
    for (idx k = block_ptr[block]; k < block_ptr[block + 1]; k++) {
      const off n_lower = columns.lower_ptr[k + 1] - columns.lower_ptr[k];
      const off n_upper = columns.upper_ptr[k + 1] - columns.upper_ptr[k];
      const idx* upper = columns.upper_row.data() + columns.upper_ptr[k];
      bool adjacent = false;
      off fresh = 0;
      if (begin >= 0)
        for (off p = 0; p < n_upper; p++) {
          adjacent |= upper[p] == k - 1;
          if (upper[p] < begin && mark[upper[p]] != begin) mark[upper[p]] = begin, fresh++;
        }
      const off width = k - begin + 1, rows = union_upper + fresh + n_lower + width;
      const off padding = rows * width - (stored + n_lower + n_upper + 1);
      if (begin >= 0 && adjacent && 8 * padding <= 2 * rows * width) {
        union_upper += fresh;
        stored += n_lower + n_upper + 1;
        continue;
      }
      runs.push_back(begin = k);
      stored = n_lower + n_upper + 1;
      union_upper = n_upper;
      for (off p = 0; p < n_upper; p++) mark[upper[p]] = begin;
    }
  }
  runs.push_back(n);
  return runs;
}

template <class T> class Builder {
 public:
  Builder(const PermutedPattern& B, const std::vector<idx>& block_ptr, const PivotedColumns<T>& columns)
      : B_(B), block_ptr_(block_ptr), columns_(columns), n_((idx)B.first.size()), node_of_(n_), row_place_(n_),
        mark_(n_, -1), source_place_(n_), source_mark_(n_, -1), source_first_(n_) {
    std::vector<idx> final_row(n_);
    for (idx k = 0; k < n_; k++) final_row[columns.row_order[k]] = k;
    out_.a_row.resize(B.row.size());
    for (std::size_t p = 0; p < B.row.size(); p++) out_.a_row[p] = final_row[B.row[p]];
    const off lower = columns.lower_ptr[n_], upper = columns.upper_ptr[n_];
    out_.lower_row.reserve(lower), out_.lower.reserve(lower + lower / 4);
    out_.upper_row.reserve(upper), out_.upper.reserve(upper + upper / 4);
    out_.node.reserve(n_ + 1);
  }

  ColumnNodes<T> build(const T* values, const off* source, const real_t<T>* row_scale, const real_t<T>* col_scale) {
    values_ = values, source_ = source, row_scale_ = row_scale, col_scale_ = col_scale;
    const std::vector<idx> runs = find_runs(block_ptr_, columns_);
    std::size_t block = 0;
    for (std::size_t r = 0; r + 1 < runs.size(); r++) {
      while (runs[r] >= block_ptr_[block + 1]) close_block(block++);
      for (idx first = runs[r]; first < runs[r + 1];) {
        idx width = 8;
        while (width > runs[r + 1] - first) width /= 2;
        add_node(first, width, block_ptr_[block]);
        first += width;
      }
    }
    for (; block + 1 < block_ptr_.size(); block++) close_block(block);
    open_node(n_);
    out_.pivot = columns_.pivot;
    out_.inverse_pivot.resize(n_);
    for (idx k = 0; k < n_; k++) out_.inverse_pivot[k] = T(1) / columns_.pivot[k];
    return std::move(out_);
  }

 private:
  const PermutedPattern& B_;
  const std::vector<idx>& block_ptr_;
  const PivotedColumns<T>& columns_;
  idx n_;
  std::vector<idx> node_of_;
  std::vector<off> row_place_;  // place of a row of L or outer row in the node at hand
  std::vector<idx> mark_;       // last node that met the row
  std::vector<off> source_place_;
  std::vector<idx> source_mark_, source_first_, sources_;
  ColumnNodes<T> out_;
  const T* values_ = nullptr;
  const off* source_ = nullptr;
  const real_t<T>*row_scale_ = nullptr, *col_scale_ = nullptr;

  void open_node(idx first) {
    out_.node.push_back({(off)out_.lower_row.size(), (off)out_.lower.size(), (off)out_.upper_row.size(),
                         (off)out_.upper.size(), (off)out_.segment.size(), first, 0});
  }

  // Values start at a multiple of the node's width, so that its rows do not straddle cache lines.
  static void align(AlignedVector<T>& values, idx width) { values.resize((values.size() + width - 1) / width * width); }

  void close_block(std::size_t block) {
    const idx end = (idx)out_.node.size();
    const idx begin = out_.phase.empty() ? 0 : out_.phase.back().end;
    if (begin == end) return;
    const bool has_lower = block_ptr_[block + 1] - block_ptr_[block] > 1;
    if (!has_lower && !out_.phase.empty() && !out_.phase.back().has_lower) out_.phase.back().end = end;
    else out_.phase.push_back({begin, end, has_lower});
  }

  void add_node(idx first, idx width, idx block_begin) {
    align(out_.lower, width), align(out_.upper, width);
    const idx s = (idx)out_.node.size();
    open_node(first);
    out_.widest = std::max(out_.widest, width);
    for (idx k = first; k < first + width; k++) node_of_[k] = s;
    collect_lower(s, first, width);
    collect_sources(s, first, width);
    collect_outer(s, first, width, block_begin);
    fill(s, first, width, block_begin);
  }

  void collect_lower(idx s, idx first, idx width) {
    const off begin = (off)out_.lower_row.size();
    for (idx k = first; k < first + width; k++)
      for (off p = columns_.lower_ptr[k]; p < columns_.lower_ptr[k + 1]; p++) {
        const idx row = columns_.lower_row[p];
        if (row < first + width || mark_[row] == s) continue;
        mark_[row] = s;
        out_.lower_row.push_back(row);
      }
    std::sort(out_.lower_row.begin() + begin, out_.lower_row.end());
    const off count = (off)out_.lower_row.size() - begin;
    for (off p = 0; p < count; p++) row_place_[out_.lower_row[begin + p]] = p;
    out_.node[s].n_lower = (idx)count;
    out_.lower.resize(out_.lower.size() + width * (count + (width > 1 ? width : 0)));
  }

  void collect_sources(idx s, idx first, idx width) {
    sources_.clear();
    for (idx k = first; k < first + width; k++)
      for (off p = columns_.upper_ptr[k]; p < columns_.upper_ptr[k + 1]; p++) {
        const idx row = columns_.upper_row[p];
        if (row >= first) continue;
        const idx source = node_of_[row];
        if (source_mark_[source] != s) {
          source_mark_[source] = s;
          source_first_[source] = row;
          sources_.push_back(source);
        } else {
          source_first_[source] = std::min(source_first_[source], row);
        }
      }
    std::sort(sources_.begin(), sources_.end());
    for (const idx source : sources_) {
      const idx end = out_.node[source + 1].first;
      source_place_[source] = (off)out_.upper_row.size() - out_.node[s].upper_row - source_first_[source];
      out_.segment.push_back({source_first_[source], source});
      for (idx row = source_first_[source]; row < end; row++) out_.upper_row.push_back(row);
    }
  }

  void collect_outer(idx s, idx first, idx width, idx block_begin) {
    const off begin = (off)out_.upper_row.size();
    for (idx k = first; k < first + width; k++)
      for (off p = B_.ptr[k]; p < B_.ptr[k + 1]; p++) {
        const idx row = out_.a_row[p];
        if (row >= block_begin || mark_[row] == s) continue;
        mark_[row] = s;
        out_.upper_row.push_back(row);
      }
    std::sort(out_.upper_row.begin() + begin, out_.upper_row.end());
    for (off p = begin; p < (off)out_.upper_row.size(); p++) row_place_[out_.upper_row[p]] = p - out_.node[s].upper_row;
    out_.upper.resize(out_.upper.size() + width * ((off)out_.upper_row.size() - out_.node[s].upper_row));
  }

  void fill(idx s, idx first, idx width, idx block_begin) {
    T* upper = out_.upper.data() + out_.node[s].upper_value;
    T* block = out_.lower.data() + out_.node[s].lower_value;
    T* lower = block + (width > 1 ? width * width : 0);
    for (idx c = 0; c < width; c++) {
      const idx k = first + c;
      for (off p = columns_.lower_ptr[k]; p < columns_.lower_ptr[k + 1]; p++) {
        const idx row = columns_.lower_row[p];
        if (row < first + width) block[(row - first) * width + c] = columns_.lower_value[p];
        else lower[row_place_[row] * width + c] = columns_.lower_value[p];
      }
      if (width > 1) block[c * width + c] = columns_.pivot[k];
      for (off p = columns_.upper_ptr[k]; p < columns_.upper_ptr[k + 1]; p++) {
        const idx row = columns_.upper_row[p];
        if (row >= first) block[(row - first) * width + c] = columns_.upper_value[p];
        else upper[(source_place_[node_of_[row]] + row) * width + c] = columns_.upper_value[p];
      }
      for (off p = B_.ptr[k]; p < B_.ptr[k + 1]; p++) {
        const idx row = out_.a_row[p];
        if (row >= block_begin) continue;
        const off from = B_.first[k] + (p - B_.ptr[k]);
        T v = values_[source_ ? source_[from] : from];
        if (row_scale_) v *= row_scale_[row];
        if (col_scale_) v *= col_scale_[k];
        upper[row_place_[row] * width + c] = v;
      }
    }
  }
};

}  // namespace

template <class T>
ColumnNodes<T> build_nodes(const PermutedPattern& B, const std::vector<idx>& block_ptr, const PivotedColumns<T>& columns,
                           const T* values, const off* source, const real_t<T>* row_scale, const real_t<T>* col_scale) {
  return Builder<T>(B, block_ptr, columns).build(values, source, row_scale, col_scale);
}

#define GS_INSTANTIATE(T)                                                                                   \
  template ColumnNodes<T> build_nodes<T>(const PermutedPattern&, const std::vector<idx>&,                   \
                                         const PivotedColumns<T>&, const T*, const off*, const real_t<T>*, \
                                         const real_t<T>*);
GS_INSTANTIATE(float)
GS_INSTANTIATE(double)
GS_INSTANTIATE(std::complex<float>)
GS_INSTANTIATE(std::complex<double>)
#undef GS_INSTANTIATE

}  // namespace gs
