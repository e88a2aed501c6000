#include "numeric/front_assembly.hpp"
#include <algorithm>
#include <cstring>

#include "base/types.hpp"
#include "simd/select.hpp"

namespace gs {
namespace {

template <class T> void zero(T* p, off count) { std::memset(static_cast<void*>(p), 0, count * sizeof(T)); }

constexpr idx worth_vectors = 6;  // mean length of runs of rows above which vectors add them faster than single entries

bool has_long_runs(const idx* rel, idx n_rows) {
  idx runs = 1;
  for (idx i = 1; i < n_rows; i++) runs += rel[i] != rel[i - 1] + 1;
  return n_rows >= worth_vectors * runs;
}

// Same as the kernel of that name, entry by entry.
template <bool assign, class T> void add_columns(idx begin, idx end, idx first_row, bool lower, idx n_rows,
                                                 const idx* rel, const T* from, off ldfrom, T* to, off ldto) {
  for (idx j = begin; j < end; j++) {
    T* const out = to + rel[j] * ldto;
    const T* const in = from + j * ldfrom;
    for (idx i = lower ? std::max(first_row, j) : first_row; i < n_rows; i++)
      out[rel[i]] = assign ? in[i] : out[rel[i]] + in[i];
  }
}

// Ut[rel[j] - W, rel[i]] += from[i, j] for rows i < n_pivot of columns [c_begin, j_end), four rows at a time, so that
// both sides are read and written along their columns.
template <class T> void transpose_add(const FrontBlocks<T>& front, const idx* rel, idx n_pivot, idx c_begin, idx j_end,
                                      idx n_rows, const T* from) {
  const off H = front.shape.H;
  T* Ut = front.Ut - front.shape.W;
  idx i = 0;
  for (; i + 4 <= n_pivot; i += 4) {
    T *to0 = Ut + rel[i] * H, *to1 = Ut + rel[i + 1] * H, *to2 = Ut + rel[i + 2] * H, *to3 = Ut + rel[i + 3] * H;
    for (idx j = c_begin; j < j_end; j++) {
      const T* in = from + i + off(j) * n_rows;
      const idx row = rel[j];
      to0[row] += in[0], to1[row] += in[1], to2[row] += in[2], to3[row] += in[3];
    }
  }
  for (; i < n_pivot; i++) {
    T* to = Ut + rel[i] * H;
    for (idx j = c_begin; j < j_end; j++) to[rel[j]] += from[i + off(j) * n_rows];
  }
}

}  // namespace

template <class T> void clear_front(const FrontBlocks<T>& front, ColumnRange columns, bool keep_c) {
  const auto [W, H, R] = front.shape;
  const idx panel_end = std::min(columns.end, W), c_begin = std::max(columns.begin, W) - W, c_end = columns.end - W;
  if (columns.begin == 0 && columns.end == R) {
    zero(front.L, off(W) * (R + (front.one_triangle ? 0 : H)));
  } else {
    if (columns.begin < panel_end) zero(front.L + off(columns.begin) * R, off(panel_end - columns.begin) * R);
    if (!front.one_triangle && c_begin < c_end)
      for (idx k = 0; k < W; k++) zero(front.Ut + c_begin + off(k) * H, c_end - c_begin);
  }
  if (keep_c || c_begin >= c_end) return;
  if (c_begin == 0 && c_end == H) return zero(front.C.data, size_of_strips(H, front.C.width));
  for (idx j = c_begin, end; j < c_end; j = end) {
    const Strip<T> strip(front.C, j);
    end = std::min(strip.end, c_end);
    zero(strip.at(strip.end - front.C.width, j), (end - j) * strip.ld);
  }
}

template <class T> real_t<T> place_values(const FrontPlan& plan, off begin, off end, const T* values, T* panel) {
  const std::uint32_t* from = plan.entry_source.data();
  const std::uint32_t* to = plan.entry_target.data();
  T* __restrict out = panel;
  real_t<T> largest[4] = {};  // four chains of maxima, for their latency
  auto place = [&](auto value_of) {
    off k = begin;
    for (; k + 4 <= end; k += 4)
      for (int u = 0; u < 4; u++) {
        const T v = value_of(k + u);
        out[to[k + u]] = v;
        largest[u] = std::max(largest[u], abs1(v));
      }
    for (; k < end; k++) {
      const T v = value_of(k);
      out[to[k]] = v;
      largest[0] = std::max(largest[0], abs1(v));
    }
  };
  if (plan.entry_scale.empty()) {
    place([&](off k) { return values[from[k]]; });
  } else {
    // Powers of two are exact in double; the product of row and column scale may leave float's range, the entry does
    // not.
    const double* scale = plan.entry_scale.data();
    place([&](off k) { return scaled(values[from[k]], scale[k]); });
  }
  return std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
}

template <class T> void add_child(const FrontBlocks<T>& front, ColumnRange columns, idx n_rows, const idx* rel,
                                  const Strips<T>& from, bool assign_c) {
  const auto [W, H, R] = front.shape;
  const idx* rel_end = rel + n_rows;
  const idx j_begin = columns.begin == 0 ? 0 : idx(std::lower_bound(rel, rel_end, columns.begin) - rel);
  const idx j_end = columns.end == R ? n_rows : idx(std::lower_bound(rel, rel_end, columns.end) - rel);
  const idx n_pivot = idx(std::lower_bound(rel, rel_end, W) - rel);  // rows and columns that the front eliminates
  const idx p_end = std::min(j_end, n_pivot), c_begin = std::max(j_begin, n_pivot);
  const bool lower = front.one_triangle, by_vectors = has_long_runs(rel, n_rows);
  const auto add = [&](idx begin, idx end, idx first_row, const Strip<T>& in, T* to, off ldto, bool assign) {
    if (by_vectors)
      kernels<T>().add_columns(begin, end, first_row, lower, n_rows, rel, in.origin, in.ld, to, ldto, assign);
    else if (assign) add_columns<true>(begin, end, first_row, lower, n_rows, rel, in.origin, in.ld, to, ldto);
    else add_columns<false>(begin, end, first_row, lower, n_rows, rel, in.origin, in.ld, to, ldto);
  };
  for (idx j = j_begin, end; j < p_end; j = end) {
    const Strip<T> in(from, j);
    end = std::min(in.end, p_end);
    add(j, end, 0, in, front.L, R, false);
  }
  if (!lower) transpose_add(front, rel, n_pivot, c_begin, j_end, n_rows, from.data);
  for (idx j = c_begin, end; j < j_end; j = end) {
    const Strip<T> in(from, j), out(front.C, rel[j] - W);
    end = std::min(in.end, j_end);
    if (rel[end - 1] - W >= out.end) end = idx(std::lower_bound(rel + j, rel + end, out.end + W) - rel);
    add(j, end, n_pivot, in, out.origin - (W + W * out.ld), out.ld, assign_c);
  }
}

#define GS_INSTANTIATE(T)                                                    \
  template void clear_front(const FrontBlocks<T>&, ColumnRange, bool);       \
  template real_t<T> place_values(const FrontPlan&, off, off, const T*, T*); \
  template void add_child(const FrontBlocks<T>&, ColumnRange, idx, const idx*, const Strips<T>&, bool);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
