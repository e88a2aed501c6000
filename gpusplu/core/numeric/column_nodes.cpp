#include "numeric/column_nodes.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "analysis/elimination_tree.hpp"
#include "base/operation.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"

namespace gs {
namespace {

// Consecutive columns that may share one node: column k joins if U(k-1, k) is present (then L's column k holds all rows
// of the previous ones) and the joined columns store few additional zeros. Returns the first column of each run, and n.
// Time: O(nnz(U)).
std::vector<idx> find_runs(const std::vector<idx>& block_ptr, const ColumnNode* column, const idx* upper_row) {
  const idx n = block_ptr.back();
  std::vector<idx> runs, mark(n, -1);
  Pace pace;
  for (std::size_t block = 0; block + 1 < block_ptr.size(); block++) {
    idx begin = -1;
    off stored = 0, union_upper = 0;
    for (idx k = block_ptr[block]; k < block_ptr[block + 1]; k++) {
      const off n_upper = column[k + 1].upper_row - column[k].upper_row - column[k].n_outer;
      const off own = column[k].n_lower + n_upper + 1;
      const idx* upper = upper_row + column[k].upper_row;
      pace.go_on(1 + n_upper);
      bool adjacent = false;
      off fresh = 0;
      if (begin >= 0)
        for (off p = 0; p < n_upper; p++) {
          adjacent |= upper[p] == k - 1;
          if (upper[p] < begin && mark[upper[p]] != begin) mark[upper[p]] = begin, fresh++;
        }
      const off width = k - begin + 1, rows = union_upper + fresh + column[k].n_lower + width;
      const off padding = rows * width - (stored + own);
      if (begin >= 0 && adjacent && 4 * padding <= rows * width) {
        union_upper += fresh;
        stored += own;
        continue;
      }
      runs.push_back(begin = k);
      stored = own;
      union_upper = n_upper;
      for (off p = 0; p < n_upper; p++) mark[upper[p]] = begin;
    }
  }
  runs.push_back(n);
  return runs;
}

template <class T> class Compiler {
 public:
  Compiler(const PermutedPattern& B, const std::vector<idx>& block_ptr, ColumnNodes<T>&& columns)
      : B_(B),
        block_ptr_(block_ptr),
        n_((idx)B.first.size()),
        columns_(columns),
        column_(columns.node.data()),
        lower_row_(columns.lower_row.data()),
        upper_row_(columns.upper_row.data()),
        node_of_(n_),
        mark_(n_, -1),
        place_(n_),
        source_mark_(n_, -1),
        source_first_(n_) {
    out_.compiled = true;
    out_.lower_row.reserve(columns.lower_row.size());
    out_.upper_row.reserve(columns.upper_row.size());
    out_.node.reserve(n_ + 1);
    out_.a_place.resize(columns.a_row.size());
  }

  ColumnNodes<T> run() {
    const std::vector<idx> runs = find_runs(block_ptr_, column_, upper_row_);
    std::size_t block = 0;
    for (std::size_t r = 0; r + 1 < runs.size(); r++) {
      while (runs[r] >= block_ptr_[block + 1]) close_block(block++);
      for (idx first = runs[r]; first < runs[r + 1];) {
        idx width = 8;  // places in the work array are of type idx
        while (width > runs[r + 1] - first || (off)width * n_ > std::numeric_limits<idx>::max()) width /= 2;
        add_node(first, width);
        first += width;
      }
    }
    for (; block + 1 < block_ptr_.size(); block++) close_block(block);
    open_node(n_, 1);
    // Padding stays zero, and each refactorization writes everything else.
    out_.upper_begin = (lower_end_ + 7) / 8 * 8;
    clear(out_.lower, out_.upper_begin + upper_end_);
    out_.a_row = std::move(columns_.a_row);
    out_.pivot = std::move(columns_.pivot);
    out_.inverse_pivot = std::move(columns_.inverse_pivot);
    return std::move(out_);
  }

 private:
  const PermutedPattern& B_;
  const std::vector<idx>& block_ptr_;
  idx n_;
  ColumnNodes<T>& columns_;  // unchanged until the end
  const ColumnNode* column_;
  const idx *lower_row_, *upper_row_;
  off lower_end_ = 0, upper_end_ = 0;
  std::vector<idx> node_of_;
  std::vector<idx> mark_;  // last node that contained the row
  std::vector<idx> place_;
  std::vector<idx> source_mark_, source_first_, sources_;
  ColumnNodes<T> out_;
  Pace pace_;

  static void clear(RawVector<T>& numbers, off size) {
    numbers.resize(size);
    over_range(size, size, [&](off begin, off end) { std::fill(&numbers[begin], &numbers[end], T(0)); });
  }

  // Values start at a multiple of the node's width, so that its rows do not straddle cache lines.
  void open_node(idx first, idx width) {
    lower_end_ = (lower_end_ + width - 1) / width * width;
    upper_end_ = (upper_end_ + width - 1) / width * width;
    out_.node.push_back({(off)out_.lower_row.size(), lower_end_, (off)out_.upper_row.size(), upper_end_,
                         (off)out_.segment.size(), first, 0, 0});
  }

  void close_block(std::size_t block) {
    const idx end = (idx)out_.node.size();
    const idx begin = out_.phase.empty() ? 0 : out_.phase.back().end;
    if (begin == end) return;
    const bool has_lower = block_ptr_[block + 1] - block_ptr_[block] > 1;
    if (!has_lower && !out_.phase.empty() && !out_.phase.back().has_lower) out_.phase.back().end = end;
    else out_.phase.push_back({begin, end, has_lower});
  }

  void add_node(idx first, idx width) {
    open_node(first, width);
    const idx s = (idx)out_.node.size() - 1;
    ColumnNode& node = out_.node[s];
    out_.widest = std::max(out_.widest, width);
    pace_.go_on(1 + (column_[first + width].lower_row - column_[first].lower_row) +
                (column_[first + width].upper_row - column_[first].upper_row));
    for (idx k = first; k < first + width; k++) node_of_[k] = s;
    if (width == 1 && is_column_of_A(first)) {
      copy_rows_of_A(node);
    } else {
      collect_lower(s, first, width);
      collect_sources(s, first, width);
      collect_outer(s, first, width);
    }
    node.n_lower = (idx)((off)out_.lower_row.size() - node.lower_row);
    const bool direct = width > 1 && (off)out_.segment.size() == node.segment;
    lower_end_ += (off)width * (node.n_lower + (width > 1 ? width : 0));
    upper_end_ += (off)width * ((off)out_.upper_row.size() - node.upper_row);
    place_entries(node, width, direct);
  }

  // Fills a_place.
  void place_entries(const ColumnNode& node, idx width, bool direct) {
    if (direct) {
      for (idx i = 0; i < width; i++) place_[node.first + i] = i;
      for (idx i = 0; i < node.n_lower; i++) place_[out_.lower_row[node.lower_row + i]] = width + i;
      for (idx i = 0; i < node.n_outer; i++) place_[out_.upper_row.end()[-1 - i]] = -1 - i;
    }
    for (idx c = 0; c < width; c++)
      for (off p = B_.ptr[node.first + c]; p < B_.ptr[node.first + c + 1]; p++) {
        const idx row = columns_.a_row[p];
        out_.a_place[p] = (direct ? place_[row] : row) * width + c;
      }
  }

  // Whether nothing updates the column, and its entries are all in L or all outside the diagonal block.
  bool is_column_of_A(idx k) const {
    const off n_upper = column_[k + 1].upper_row - column_[k].upper_row;
    return n_upper == column_[k].n_outer && (n_upper == 0 || column_[k].n_lower == 0);
  }

  // In the order of A, which is the order of sums in transposed solves.
  void copy_rows_of_A(ColumnNode& node) {
    const idx k = node.first;
    node.n_outer = column_[k].n_outer;
    RawVector<idx>& rows = node.n_outer > 0 ? out_.upper_row : out_.lower_row;
    for (off p = B_.ptr[k]; p < B_.ptr[k + 1]; p++)
      if (columns_.a_row[p] != k) rows.push_back(columns_.a_row[p]);
  }

  void collect_lower(idx s, idx first, idx width) {
    const off begin = (off)out_.lower_row.size();
    for (idx k = first; k < first + width; k++)
      for (off p = column_[k].lower_row; p < column_[k + 1].lower_row; p++) {
        const idx row = lower_row_[p];
        if (row < first + width || mark_[row] == s) continue;
        mark_[row] = s;
        out_.lower_row.push_back(row);
      }
    std::sort(out_.lower_row.begin() + begin, out_.lower_row.end());
  }

  void collect_sources(idx s, idx first, idx width) {
    sources_.clear();
    for (idx k = first; k < first + width; k++)
      for (off p = column_[k].upper_row, end = column_[k + 1].upper_row - column_[k].n_outer; p < end; p++) {
        const idx row = upper_row_[p];
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
      const ColumnNode& node = out_.node[source];
      const idx from = source_first_[source], end = out_.node[source + 1].first;
      out_.segment.push_back({node.lower_row, node.lower_value, from, source, node.n_lower,
                              (std::uint8_t)(end - node.first), (std::uint8_t)(from - node.first)});
      for (idx row = from; row < end; row++) out_.upper_row.push_back(row);
    }
  }

  void collect_outer(idx s, idx first, idx width) {
    const off begin = (off)out_.upper_row.size();
    for (idx k = first; k < first + width; k++)
      for (off p = column_[k + 1].upper_row - column_[k].n_outer; p < column_[k + 1].upper_row; p++) {
        const idx row = upper_row_[p];
        if (mark_[row] == s) continue;
        mark_[row] = s;
        out_.upper_row.push_back(row);
      }
    std::sort(out_.upper_row.begin() + begin, out_.upper_row.end());
    out_.node[s].n_outer = (idx)((off)out_.upper_row.size() - begin);
  }
};

}  // namespace

template <class T>
ColumnNodes<T> compile_nodes(const PermutedPattern& B, const std::vector<idx>& block_ptr, ColumnNodes<T>&& columns) {
  return Compiler<T>(B, block_ptr, std::move(columns)).run();
}

namespace {

// Approximate cycles of one node: fixed, per entry of A, per segment, per multiply-add (vectors of `width`), per row of
// L.
template <class T> double node_cost(const ColumnNodes<T>& f, const RawVector<off>& a_ptr, idx s) {
  const idx first = f.node[s].first, width = f.width(s);
  double cost = 50 + 3.0 * (a_ptr[first + width] - a_ptr[first]) + 4.0 * f.node[s].n_lower * width;
  for (off q = f.node[s].segment; q < f.node[s + 1].segment; q++) {
    const ColumnSegment& segment = f.segment[q];
    const double count = f.node[segment.source + 1].first - segment.first_row;
    cost += 10 + (1 + count) * f.node[segment.source].n_lower;
  }
  return cost;
}

// Every source of a node becomes one of its descendants.
template <class T> std::vector<idx> elimination_tree(const ColumnNodes<T>& f) {
  GrowingTree tree(f.n_nodes());
  Pace pace;
  for (idx s = 0; s < f.n_nodes(); s++, pace.go_on(1 + f.node[s].segment - f.node[s - 1].segment))
    for (off q = f.node[s].segment; q < f.node[s + 1].segment; q++) tree.add_entry(s, f.segment[q].source);
  return std::move(tree.parent);
}

// The longest chain of dependent nodes among those with subtrees larger than a bin.
idx longest_chain(const std::vector<idx>& parent, const std::vector<double>& subtree, double bin_size) {
  std::vector<idx> chain(parent.size());
  idx longest = 0;
  for (std::size_t s = 0; s < parent.size(); s++) {
    if (subtree[s] <= bin_size) continue;
    longest = std::max(longest, ++chain[s]);
    if (parent[s] >= 0) chain[parent[s]] = std::max(chain[parent[s]], chain[s]);
  }
  return longest;
}

constexpr idx above_bins = -1;

struct Bins {
  std::vector<idx> of;  // by node
  idx count = 0;
};

// Fills bins in ascending order with subtrees of no more than a size together; nodes with a larger subtree are above
// them.
Bins fill_bins(const std::vector<idx>& parent, const std::vector<double>& subtree, double size) {
  const idx n = (idx)parent.size();
  Bins bins{std::vector<idx>(n, above_bins)};
  double filled = 0;
  idx open = 0;
  for (idx s = 0; s < n; s++) {
    const bool is_root = subtree[s] <= size && (parent[s] < 0 || subtree[parent[s]] > size);
    if (!is_root) continue;
    if (filled > 0 && filled + subtree[s] > size) open++, filled = 0;
    bins.of[s] = open;
    filled += subtree[s];
  }
  for (idx s = n - 1; s >= 0; s--)
    if (bins.of[s] == above_bins && subtree[s] <= size) bins.of[s] = bins.of[parent[s]];
  bins.count = filled > 0 ? open + 1 : 0;
  return bins;
}

}  // namespace

template <class T> ColumnSchedule schedule_nodes(const ColumnNodes<T>& f, const RawVector<off>& a_ptr, int n_threads) {
  constexpr double bins_per_thread = 8, slack = 1.2;
  constexpr double long_chain = 0.2;  // of the nodes
  const idx n = f.n_nodes();
  ColumnSchedule out;
  out.n_threads = n_threads;
  const std::vector<idx> parent = elimination_tree(f);
  std::vector<double> subtree(n);
  Pace pace;
  for (idx s = 0; s < n; s++) {
    out.work += subtree[s] = node_cost(f, a_ptr, s);
    pace.go_on(1 + f.node[s + 1].segment - f.node[s].segment);
  }
  for (idx s = 0; s < n; s++)
    if (parent[s] >= 0) subtree[parent[s]] += subtree[s];

  // One thread: one bin with all nodes in ascending order. Nodes with a subtree larger than a bin form the pipeline;
  // the subtrees below them fill bins in ascending order. Where the pipeline would be a chain, as for long lines, one
  // bin per thread may make it short.
  double bin_size = n_threads == 1 ? out.work : out.work / (bins_per_thread * n_threads);
  const auto is_chain = [&](double size) { return longest_chain(parent, subtree, size) > long_chain * n; };
  out.chained = n_threads > 1 && is_chain(bin_size);
  if (const double share = slack * out.work / n_threads; out.chained && !is_chain(share)) {
    bin_size = share;
    out.chained = false;
  }
  const Bins bins = fill_bins(parent, subtree, bin_size);
  const std::vector<idx>& bin = bins.of;
  out.n_subtrees = bins.count;

  out.ptr.assign(out.n_subtrees + 1, 0);
  for (idx s = 0; s < n; s++)
    if (bin[s] != above_bins) out.ptr[bin[s] + 1]++;
  std::partial_sum(out.ptr.begin(), out.ptr.end(), out.ptr.begin());
  out.nodes.resize(n);
  std::vector<off> place(out.ptr.begin(), out.ptr.end());
  std::vector<idx> level(n), above;
  for (idx s = 0; s < n; s++) {
    if (bin[s] != above_bins) {
      out.nodes[place[bin[s]]++] = s;
      continue;
    }
    above.push_back(s);
    for (off q = f.node[s].segment; q < f.node[s + 1].segment; q++)
      if (const idx source = f.segment[q].source; bin[source] == above_bins)
        level[s] = std::max(level[s], level[source] + 1);
  }
  // In ascending order, threads would wait for one another: a node often follows the one that it depends on.
  std::stable_sort(above.begin(), above.end(), [&](idx a, idx b) { return level[a] < level[b]; });
  for (const idx s : above) {
    out.nodes[out.ptr.back()] = s;
    out.ptr.push_back(out.ptr.back() + 1);
  }
  return out;
}

namespace {

template <class T> class Divider {
 public:
  explicit Divider(const ColumnNodes<T>& f) : f_(f), node_of_(f.pivot.size()) {
    for (idx s = 0; s < f.n_nodes(); s++)
      std::fill(node_of_.begin() + f.node[s].first, node_of_.begin() + f.node[s + 1].first, s);
  }

  ColumnDivision run() {
    for (const ColumnPhase& phase : f_.phase) {
      out_.parts.emplace_back();
      divide(phase);
    }
    if (out_.most_parts == 0) out_.parts.clear();
    return std::move(out_);
  }

 private:
  // In cycles: least work of a part, and of a block that is divided.
  static constexpr double kLeastPart = 6e3, kLeastBlock = 8e4;
  static constexpr idx kMostParts = 16;
  const ColumnNodes<T>& f_;
  std::vector<idx> node_of_;
  ColumnDivision out_;
  Pace pace_;

  double cost_of_rows(idx s, off rows) const { return rows * (2 + 1.5 * f_.width(s)); }
  // Approximate cycles of a node.
  double cost(idx s) const {
    const idx width = f_.width(s);
    return 24 + width * width + cost_of_rows(s, f_.node[s].n_lower + f_.node[s + 1].upper_row - f_.node[s].upper_row);
  }

  void divide(const ColumnPhase& phase) {
    const idx n = phase.end - phase.begin;
    std::vector<double> subtree(n);
    double work = 0;
    for (idx s = 0; s < n; s++) work += subtree[s] = cost(phase.begin + s);
    out_.cycles += work;
    if (work < kLeastBlock) return;
    const std::vector<idx> parent = tree_of(phase);
    for (idx s = 0; s < n; s++)
      if (parent[s] >= 0) subtree[parent[s]] += subtree[s];
    const Bins bins = fill_bins(parent, subtree, work / std::min<double>(kMostParts, work / kLeastPart));
    if (bins.count < 2) return;
    ColumnParts& parts = out_.parts.back();
    collect_ranges(phase, bins, parts);
    replace_rows(phase, bins, parts);
    collect_runs(phase, bins, parts);
    out_.most_parts = std::max(out_.most_parts, bins.count);
    out_.most_sums = std::max(out_.most_sums, (idx)parts.sum_row.size());
  }

  // Every node of the block that a solve with L or U reads for a node becomes one of its descendants.
  std::vector<idx> tree_of(const ColumnPhase& phase) {
    const idx n = phase.end - phase.begin;
    const auto each_target = [&](idx s, auto&& visit) {
      const ColumnNode& node = f_.node[phase.begin + s];
      pace_.go_on(1 + node.n_lower);
      idx last = -1;
      for (off p = node.lower_row; p < node.lower_row + node.n_lower; p++)
        if (const idx target = node_of_[f_.lower_row[p]] - phase.begin; target != last) visit(last = target);
    };
    std::vector<off> ptr(n + 1);  // sources by target
    for (idx s = 0; s < n; s++) each_target(s, [&](idx target) { ptr[target]++; });
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    std::vector<idx> source(ptr[n]);
    for (idx s = n; s-- > 0;) each_target(s, [&](idx target) { source[--ptr[target]] = s; });
    GrowingTree tree(n);
    for (idx s = 0; s < n; s++) {
      for (off p = ptr[s]; p < ptr[s + 1]; p++) tree.add_entry(s, source[p]);
      for (off q = f_.node[phase.begin + s].segment; q < f_.node[phase.begin + s + 1].segment; q++)
        tree.add_entry(s, f_.segment[q].source - phase.begin);
    }
    return std::move(tree.parent);
  }

  static idx part_of(const Bins& bins, idx s) { return bins.of[s] == above_bins ? bins.count : bins.of[s]; }

  // Concatenates lists of all parts, of the top, and others.
  template <class Int, class Item>
  static void join(const std::vector<std::vector<Item>>& lists, std::vector<Int>& ptr, std::vector<Item>& all) {
    ptr.assign(1, 0);
    for (const std::vector<Item>& list : lists) {
      all.insert(all.end(), list.begin(), list.end());
      ptr.push_back((Int)all.size());
    }
  }

  void collect_ranges(const ColumnPhase& phase, const Bins& bins, ColumnParts& parts) {
    std::vector<std::vector<NodeRange>> ranges(bins.count + 1);
    for (idx s = phase.begin; s < phase.end; s++) {
      std::vector<NodeRange>& its = ranges[part_of(bins, s - phase.begin)];
      if (its.empty() || its.back().end < s) its.push_back({s, s});
      its.back().end++;
      if (bins.of[s - phase.begin] != above_bins) out_.of_parts += cost(s);
    }
    join(ranges, parts.range_ptr, parts.ranges);
  }

  void replace_rows(const ColumnPhase& phase, const Bins& bins, ColumnParts& parts) {
    if (out_.lower_row.empty()) out_.lower_row = f_.lower_row;
    const idx n = (idx)node_of_.size(), first_row = f_.node[phase.begin].first;
    std::vector<idx> sum_of(f_.node[phase.end].first - first_row, -1);  // by row of the block
    parts.sum_ptr.assign(1, 0);
    for (idx part = 0; part < bins.count; part++) {
      for (idx r = parts.range_ptr[part]; r < parts.range_ptr[part + 1]; r++)
        for (idx s = parts.ranges[r].begin; s < parts.ranges[r].end; s++) {
          pace_.go_on(1 + f_.node[s].n_lower);
          for (off p = f_.node[s].lower_row; p < f_.node[s].lower_row + f_.node[s].n_lower; p++) {
            const idx row = f_.lower_row[p];
            if (bins.of[node_of_[row] - phase.begin] != above_bins) continue;
            idx& sum = sum_of[row - first_row];
            if (sum < parts.sum_ptr[part]) {
              sum = (idx)parts.sum_row.size();
              parts.sum_row.push_back(row);
            }
            out_.lower_row[p] = n + sum;
          }
        }
      parts.sum_ptr.push_back((idx)parts.sum_row.size());
    }
  }

  void collect_runs(const ColumnPhase& phase, const Bins& bins, ColumnParts& parts) {
    std::vector<std::vector<ColumnRun>> runs(bins.count + 2);
    for (idx s = phase.end; s-- > phase.begin;) {
      if (bins.of[s - phase.begin] != above_bins) continue;
      pace_.go_on(1 + f_.node[s + 1].upper_row - f_.node[s].upper_row);
      idx last = -1;
      for (off p = f_.node[s].upper_row; p < f_.node[s + 1].upper_row - f_.node[s].n_outer; p++) {
        const idx part = part_of(bins, node_of_[f_.upper_row[p]] - phase.begin);
        if (part != last) runs[part].push_back({p, p, s});
        runs[last = part].back().end++;
        if (part < bins.count) out_.of_parts += cost_of_rows(s, 1);
      }
    }
    for (std::size_t r = parts.ranges.size(); r-- > 0;)  // in the order of one thread
      for (idx s = parts.ranges[r].end; s-- > parts.ranges[r].begin;)
        if (const off end = f_.node[s + 1].upper_row; f_.node[s].n_outer > 0)
          runs.back().push_back({end - f_.node[s].n_outer, end, s});
    join(runs, parts.run_ptr, parts.runs);
  }
};

}  // namespace

template <class T> ColumnDivision divide_for_solves(const ColumnNodes<T>& f) { return Divider<T>(f).run(); }

namespace {

// An upper bound of the number of steps, and the cycles that they take.
struct StepCount {
  double steps, cycles;
};
template <class T> StepCount count_steps(const ColumnNodes<T>& f, off nnz) {
  double steps = 0, lower = 0;
  for (idx s = 0; s < f.n_nodes(); s++) {
    const double width = f.width(s), below = f.node[s].n_lower, inside = width * (width - 1) / 2;
    lower += width * below + inside;
    steps += inside * (below + (width - 2) / 3 + 1);
    for (off q = f.node[s].segment; q < f.node[s + 1].segment; q++) {
      const double count = f.segment[q].width - f.segment[q].skipped;
      steps += width * count * (f.segment[q].n_lower + 0.5 * (count - 1));
    }
  }
  return {steps, 2.0 * steps + 3.0 * (double)nnz + 2.5 * lower + 25.0 * (double)f.pivot.size()};
}

}  // namespace

template <class T> EntrySteps<T> compile_steps(ColumnNodes<T>& f, const PermutedPattern& B, const real_t<T>* row_scale,
                                               const real_t<T>* col_scale) {
  constexpr double most_steps = 1 << 17;  // whose places stay in a cache
  constexpr double worth = 0.9;           // of the cycles of nodes
  const off n_values = (off)f.lower.size();
  const idx n = (idx)f.pivot.size();
  EntrySteps<T> out;
  const StepCount expected = count_steps(f, (off)f.a_row.size());
  if (expected.steps > most_steps || expected.cycles > worth * f.schedule.work) return out;
  if (n_values + n >= std::numeric_limits<idx>::max()) return out;
  out.target.reserve((std::size_t)expected.steps);
  out.a_place.resize(f.a_row.size());
  if (row_scale || col_scale) out.a_scale.resize(f.a_row.size());
  const idx pivots = (idx)n_values, nowhere = pivots + n;
  std::vector<idx> mark(n, -1), place(n);
  for (idx s = 0; s < f.n_nodes(); s++) {
    const ColumnNode &node = f.node[s], &next = f.node[s + 1];
    const idx width = f.width(s), first = node.first;
    const idx block = (idx)node.lower_value, below = block + (width > 1 ? width * width : 0);
    const idx upper = (idx)(f.upper_begin + node.upper_value), n_rows = (idx)(next.upper_row - node.upper_row);
    const auto put = [&](idx row, idx at) { mark[row] = s, place[row] = at; };
    for (idx p = 0; p < n_rows; p++) put(f.upper_row[node.upper_row + p], upper + p * width);
    for (idx p = 0; p < node.n_lower; p++) put(f.lower_row[node.lower_row + p], below + p * width);
    for (idx i = 0; i < width; i++) put(first + i, width > 1 ? block + i * width : pivots + first);
    for (idx c = 0; c < width; c++) {
      const idx k = first + c;
      for (off p = B.ptr[k], q = B.first[k]; p < B.ptr[k + 1]; p++, q++) {
        out.a_place[q] = place[f.a_row[p]] + c;
        if (row_scale) out.a_scale[q] = row_scale[f.a_row[p]] * (col_scale ? col_scale[k] : real_t<T>(1));
        else if (col_scale) out.a_scale[q] = col_scale[k];
      }
      // With column j of `source`; rows that only its other columns have are padding.
      const auto eliminate = [&](idx source, idx j) {
        const ColumnEntries& from = out.column[j];
        if (from.n_lower == 0) return;
        out.run.push_back({place[j] + c, from.lower, from.n_lower, from.stride});
        const auto add = [&](idx row) { out.target.push_back(mark[row] == s ? place[row] + c : nowhere); };
        for (idx i = j + 1; i < f.node[source + 1].first; i++) add(i);
        for (idx p = 0; p < f.node[source].n_lower; p++) add(f.lower_row[f.node[source].lower_row + p]);
      };
      for (off q = node.segment; q < next.segment; q++) {
        const idx source = f.segment[q].source;
        for (idx j = f.segment[q].first_row; j < f.node[source + 1].first; j++) eliminate(source, j);
      }
      for (idx j = first; j < k; j++) eliminate(s, j);
      const bool last = c + 1 == width;
      out.column.push_back({(idx)out.run.size(), place[k] + c, width > 1 ? block + (c + 1) * width + c : block,
                            width - 1 - c + node.n_lower, width, upper, last ? (n_rows - node.n_outer) * width : 0,
                            place[first], last ? width * width : 0});
    }
  }
  f.lower.resize((off)nowhere + 1);
  return out;
}

#define GS_INSTANTIATE(T)                                                                                      \
  template ColumnNodes<T> compile_nodes<T>(const PermutedPattern&, const std::vector<idx>&, ColumnNodes<T>&&); \
  template ColumnSchedule schedule_nodes<T>(const ColumnNodes<T>&, const RawVector<off>&, int);                \
  template ColumnDivision divide_for_solves<T>(const ColumnNodes<T>&);                                         \
  template EntrySteps<T> compile_steps<T>(ColumnNodes<T>&, const PermutedPattern&, const real_t<T>*, const real_t<T>*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
