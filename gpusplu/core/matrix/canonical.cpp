#include "matrix/canonical.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/parallel.hpp"
#include "matrix/index_arrays.hpp"

namespace gs {
namespace {

// Entries grouped by one index (`major`), with the other one (`minor`) and the source of the value.
struct Grouped {
  std::vector<off> ptr;
  RawVector<idx> minor;
  std::vector<off> source;
};

// Groups a stream of entries by their major index; entries of a group keep the stream's order. `stream(visit)` calls
// visit(major, minor, source) for every entry. Every thread reads the stream and keeps its slice of the groups.
template <class Stream> Grouped group(idx n, off nnz, const Stream& stream) {
  Grouped out{std::vector<off>((std::size_t)n + 1), RawVector<idx>(nnz), std::vector<off>(nnz)};
  std::vector<off> next(n);
  run_pass(threads_for(nnz), [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    stream([&, begin = begin, end = end](idx major, idx, off) {
      if (major >= begin && major < end) next[major]++;
    });
  });
  for (idx j = 0; j < n; j++) {
    out.ptr[j + 1] = out.ptr[j] + next[j];
    next[j] = out.ptr[j];
  }
  run_pass(threads_for(nnz), [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    stream([&, begin = begin, end = end](idx major, idx minor, off source) {
      if (major < begin || major >= end) return;
      const off k = next[major]++;
      out.minor[k] = minor;
      out.source[k] = source;
    });
  });
  return out;
}

// The same entries grouped by the other index; groups come out sorted.
Grouped transpose(const Grouped& in) {
  const idx n = (idx)in.ptr.size() - 1;
  return group(n, in.ptr[n], [&](auto&& visit) {
    Pace pace;
    for (idx major = 0; major < n && !pace.must_stop(1 + in.ptr[major + 1] - in.ptr[major]); major++)
      for (off k = in.ptr[major]; k < in.ptr[major + 1]; k++) visit(in.minor[k], major, in.source[k]);
  });
}

// Columns with ascending rows, equal rows adjacent -> canonical.
Canonical sum_duplicates(Grouped&& columns) {
  const idx n = (idx)columns.ptr.size() - 1;
  off distinct = 0;
  for (idx j = 0; j < n; j++)
    for (off k = columns.ptr[j]; k < columns.ptr[j + 1]; k++)
      distinct += k == columns.ptr[j] || columns.minor[k] != columns.minor[k - 1];
  Canonical out;
  out.nvalues = columns.ptr[n];
  out.source = std::move(columns.source);
  if (distinct == columns.ptr[n]) {
    out.pattern = {n, std::move(columns.ptr), std::move(columns.minor)};
    return out;
  }
  go_on();
  out.pattern = {n, std::vector<off>((std::size_t)n + 1), RawVector<idx>(distinct)};
  out.source_ptr.resize(distinct + 1);
  off last = -1;
  for (idx j = 0; j < n; j++) {
    for (off k = columns.ptr[j]; k < columns.ptr[j + 1]; k++) {
      if (k == columns.ptr[j] || columns.minor[k] != columns.minor[k - 1]) {
        out.pattern.ind[++last] = columns.minor[k];
        out.source_ptr[last] = k;
      }
    }
    out.pattern.ptr[j + 1] = last + 1;
  }
  out.source_ptr[distinct] = columns.ptr[n];
  return out;
}

template <class I> void check_pointers(idx n, const I* ptr, off available) {
  if (ptr[0] != 0) throw std::invalid_argument("indptr must start with 0, got " + std::to_string(ptr[0]));
  for (idx j = 0; j < n; j++)
    if (ptr[j + 1] < ptr[j])
      throw std::invalid_argument("indptr must not decrease: indptr[" + std::to_string(j + 1) + "] is " +
                                  std::to_string(ptr[j + 1]) + " after " + std::to_string(ptr[j]));
  if ((off)ptr[n] > available)
    throw std::invalid_argument("indptr ends with " + std::to_string(ptr[n]) + " but there are only " +
                                std::to_string(available) + " indices");
}

template <class I> void check_indices(idx n, const I* ind, off nnz, const char* what) {
  std::atomic<bool> valid{true};
  over_range(nnz, nnz, [&](off begin, off end) {
    bool inside = true;
    for (off p = begin; p < end; p++) inside &= (ind[p] >= 0) & (ind[p] < n);
    if (!inside) valid.store(false);
  });
  if (valid.load()) return;
  off p = 0;
  while (ind[p] >= 0 && ind[p] < n) p++;
  throw std::invalid_argument(std::string(what) + " index " + std::to_string(ind[p]) + " at position " +
                              std::to_string(p) + " is outside of 0 .. " + std::to_string((off)n - 1));
}

// Wherever an index is not above the previous one, a column must begin: both are counted, descents without reading the
// columns.
template <class I> bool is_canonical(idx n, const I* ptr, const I* ind) {
  std::atomic<bool> canonical{true};
  over_range(n, ptr[n], [&](idx begin, idx end) {
    off descents = 0;
    for (off p = (off)ptr[begin] + 1; p < (off)ptr[end]; p++) descents += ind[p] <= ind[p - 1];
    off expected = 0;
    bool inside = true;
    for (idx j = begin; j < end; j++) {
      const I first = ptr[j], last = ptr[j + 1] - 1;
      if (first > last) continue;
      inside &= ind[first] >= 0 && ind[last] < n;
      expected += first > ptr[begin] && ind[first] <= ind[first - 1];
    }
    if (!inside || descents != expected) canonical.store(false, std::memory_order_relaxed);
  });
  return canonical.load();
}

template <class I> Canonical copy_of(idx n, const I* ptr, const I* ind) {
  Canonical out;
  out.nvalues = (off)ptr[n];
  out.identity = true;
  out.pattern = {n, std::vector<off>(ptr, ptr + n + 1), RawVector<idx>((std::size_t)ptr[n])};
  over_range((off)ptr[n], ptr[n],
             [&](off begin, off end) { std::copy(ind + begin, ind + end, out.pattern.ind.begin() + begin); });
  return out;
}

template <class P, class I> auto compressed_stream(idx n, const P* ptr, const I* ind) {
  return [=](auto&& visit) {
    Pace pace;
    for (idx outer = 0; outer < n && !pace.must_stop(1 + (off)ptr[outer + 1] - (off)ptr[outer]); outer++)
      for (off p = (off)ptr[outer]; p < (off)ptr[outer + 1]; p++) visit((idx)ind[p], outer, p);
  };
}

}  // namespace

template <class I> Canonical canonical_from_columns(idx n, const I* ptr, const I* ind, off available) {
  begin_phase("canonicalize");
  check_pointers(n, ptr, available);
  if (is_canonical(n, ptr, ind)) return copy_of(n, ptr, ind);
  check_indices(n, ind, ptr[n], "row");
  return sum_duplicates(transpose(group(n, ptr[n], compressed_stream(n, ptr, ind))));
}

template <class I> Canonical canonical_from_rows(idx n, const I* ptr, const I* ind, off available) {
  begin_phase("canonicalize");
  check_pointers(n, ptr, available);
  check_indices(n, ind, ptr[n], "column");
  return sum_duplicates(group(n, ptr[n], compressed_stream(n, ptr, ind)));
}

template <class I> Canonical canonical_from_coordinates(idx n, const I* row, const I* col, off nnz) {
  begin_phase("canonicalize");
  check_indices(n, row, nnz, "row");
  check_indices(n, col, nnz, "column");
  return sum_duplicates(transpose(group(n, nnz, [&](auto&& visit) {
    Pace pace;
    for (off k = 0; k < nnz && !pace.must_stop(); k++) visit((idx)row[k], (idx)col[k], k);
  })));
}

Triangle stored_triangle(PatternView A) {
  bool lower = true, upper = true;
  for (idx j = 0; j < A.n && (lower || upper); j++) {
    if (A.ptr[j] == A.ptr[j + 1]) continue;
    lower &= A.ind[A.ptr[j]] >= j;
    upper &= A.ind[A.ptr[j + 1] - 1] <= j;
  }
  if (lower == upper) return Triangle::full;
  return lower ? Triangle::lower : Triangle::upper;
}

// Column j of the full matrix is column j of the upper triangle followed by column j of the lower one, the diagonal
// once; one triangle is given and the other is its transpose.
Canonical mirror_triangle(const Canonical& given, Triangle triangle, bool hermitian) {
  if (triangle == Triangle::full) return given;
  const PatternView half = given.pattern.view();
  const Grouped mirrored = group(half.n, half.nnz(), compressed_stream(half.n, half.ptr, half.ind));
  Canonical out;
  out.nvalues = given.nvalues;
  out.pattern.n = half.n;
  out.pattern.ptr.assign((std::size_t)half.n + 1, 0);
  out.pattern.ind.reserve(2 * half.nnz());
  out.source.reserve(2 * half.nnz());
  if (!given.source_ptr.empty()) out.source_ptr.push_back(0);
  const auto append = [&](idx row, off k, bool conjugate) {
    out.pattern.ind.push_back(row);
    const off begin = given.source_ptr.empty() ? k : given.source_ptr[k];
    const off end = given.source_ptr.empty() ? k + 1 : given.source_ptr[k + 1];
    for (off p = begin; p < end; p++) {
      const off source = given.identity ? p : given.source[p];
      out.source.push_back(conjugate ? ~source : source);
    }
    if (!given.source_ptr.empty()) out.source_ptr.push_back((off)out.source.size());
  };
  const auto append_given = [&](idx j) {
    for (off k = half.ptr[j]; k < half.ptr[j + 1]; k++) append(half.ind[k], k, false);
  };
  const auto append_mirrored = [&](idx j) {
    for (off k = mirrored.ptr[j]; k < mirrored.ptr[j + 1]; k++)
      if (mirrored.minor[k] != j) append(mirrored.minor[k], mirrored.source[k], hermitian);
  };
  Pace pace;
  for (idx j = 0; j < half.n; j++, pace.go_on(8)) {
    if (triangle == Triangle::upper) append_given(j);
    append_mirrored(j);
    if (triangle == Triangle::lower) append_given(j);
    out.pattern.ptr[j + 1] = (off)out.pattern.ind.size();
  }
  return out;
}

template Canonical canonical_from_columns(idx, const std::int32_t*, const std::int32_t*, off);
template Canonical canonical_from_columns(idx, const std::int64_t*, const std::int64_t*, off);
template Canonical canonical_from_rows(idx, const std::int32_t*, const std::int32_t*, off);
template Canonical canonical_from_rows(idx, const std::int64_t*, const std::int64_t*, off);
template Canonical canonical_from_coordinates(idx, const std::int32_t*, const std::int32_t*, off);
template Canonical canonical_from_coordinates(idx, const std::int64_t*, const std::int64_t*, off);

// Not inline: at the optimization level of the bindings these visit every byte once more.
IndexCopy::IndexCopy(const IndexArrays& given) : of_(given), bytes_(given.bytes()) {
  for (const int k : {0, 1})
    if (given.size[k]) std::memcpy(bytes_.data() + (k ? given.size[0] : 0), given.data[k], given.size[k]);
}

IndexCopy::~IndexCopy() = default;

namespace {

bool is_canonical(const Pattern& pattern) {
  for (idx j = 0; j < pattern.n; j++) {
    idx previous = -1;
    for (off p = pattern.ptr[j]; p < pattern.ptr[j + 1]; previous = pattern.ind[p++])
      if (pattern.ind[p] <= previous || pattern.ind[p] >= pattern.n) return false;
  }
  return true;
}

}  // namespace

void validate(const Canonical& c) {
  const off nnz = (off)c.pattern.ind.size();
  require(c.pattern.n >= 0 && ascends(c.pattern.ptr, c.pattern.n, nnz),
          "a pickled pattern is damaged: its column pointers do not ascend to the number of entries");
  require(is_canonical(c.pattern), "a pickled pattern is damaged: rows of a column do not ascend within the matrix");
  if (c.identity)
    return require(c.nvalues == nnz && c.source.empty() && c.source_ptr.empty(),
                   "a pickled pattern is damaged: it says that values lie in order, and where they lie");
  require(c.source_ptr.empty() ? (off)c.source.size() == nnz : ascends(c.source_ptr, nnz, (off)c.source.size(), true),
          "a pickled pattern is damaged: sources of its values are missing");
  bool inside = c.nvalues >= 0;
  for (const off source : c.source) inside &= (source ^ (source >> 63)) < c.nvalues;  // ~source when negative
  require(inside, "a pickled pattern is damaged: a value comes from outside of the caller's values");
}

}  // namespace gs
