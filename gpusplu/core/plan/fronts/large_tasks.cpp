#include "plan/fronts/plan.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/threads.hpp"

namespace gs::gpu {
namespace {

// How a front is cut into tiles.
struct Tiling {
  idx width, rows, tile;
  idx pivot_tiles() const { return (width + tile - 1) / tile; }
  idx tiles() const { return pivot_tiles() + (rows - width + tile - 1) / tile; }
  idx of_row(idx r) const { return r < width ? r / tile : pivot_tiles() + (r - width) / tile; }
  idx end_row(idx t) const {
    return t < pivot_tiles() ? std::min(width, (t + 1) * tile) : width + (t + 1 - pivot_tiles()) * tile;
  }
};

idx segment_of(const LargeInput& in, idx f) {
  return (idx)(std::upper_bound(in.segment_ptr.begin(), in.segment_ptr.end(), f) - in.segment_ptr.begin());
}

// Runs body(k) for k < n, several threads where there is enough to do.
template <class Body> void for_each(idx n, off work, Body&& body) {
  const int threads = work < 50000 ? 1 : std::min<off>(num_threads(), work / 25000);
  std::atomic<idx> next{0};
  run_helpers(threads, [&](int) {
    for (idx k; (k = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(k);
  });
}

// A child's rows, cut where the parent's tiles are cut: calls visit(tile, begin, end).
template <class Visit> void for_pieces(const LargeInput& in, const Tiling& parent, idx child, Visit&& visit) {
  const std::uint16_t* place = in.place + in.below_ptr[child];
  const idx height = in.rows[child] - in.width[child];
  for (idx begin = 0; begin < height;) {
    const idx tile = parent.of_row(place[begin]);
    const idx end = (idx)(std::lower_bound(place + begin, place + height, parent.end_row(tile)) - place);
    visit(tile, begin, end);
    begin = end;
  }
}

// Pieces of all tiles of one front from `to` on: counted first, then placed child by child.
void place_pieces(const LargeInput& in, const std::vector<idx>& large_of, idx f, const idx* tile_ptr, LargePiece* to) {
  const idx segment = segment_of(in, f);
  const Tiling tiling{in.width[f], in.rows[f], in.tile};
  std::vector<idx> next(tile_ptr, tile_ptr + tiling.tiles());
  for (idx k = in.child_ptr[f]; k < in.child_ptr[f + 1]; ++k) {
    const idx child = in.child[k];
    const idx large =
        large_of[child] != NOT_LARGE && segment_of(in, child) != segment ? FINISHED_BEFORE : large_of[child];
    for_pieces(in, tiling, child, [&](idx tile, idx begin, idx end) { to[next[tile]++] = {child, begin, end, large}; });
  }
}

// Which tile (row, col) of a front is the only one, the first or the second of a task. Pairs start below the diagonal.
enum class Role { kOnly, kFirst, kSecond };
Role role_of(const Tiling& tiling, bool cholesky, bool pairs, idx row, idx col) {
  const idx above = row - (cholesky ? col + 1 : tiling.pivot_tiles());
  if (!pairs || std::min(row, col) < tiling.pivot_tiles() || above < 0) return Role::kOnly;
  return above % 2 ? Role::kSecond : row + 1 < tiling.tiles() ? Role::kFirst : Role::kOnly;
}

constexpr idx kPairWidth = 64;  // least width of a front whose tasks may be pairs (256: 2% slower)
// Least number of pairs in a contribution block for every block that the front gets (2: 3% slower).
constexpr double kTasksPerBlock = 0.4;

bool has_pairs(const LargeInput& in, const Tiling& tiling, double blocks) {
  const double h = tiling.tiles() - tiling.pivot_tiles();
  return in.scalar == 'd' && large_shape(scalar_bytes(in.scalar), in.shared_kb).tall > 1 &&
         tiling.tile == large_tile(scalar_bytes(in.scalar)) && tiling.width >= kPairWidth &&
         h * (in.cholesky ? h + 1 : 2 * h) / 4 >= kTasksPerBlock * blocks;
}

off count_tasks(const LargeInput& in, const Tiling& tiling, bool pairs) {
  const idx tiles = tiling.tiles(), h = tiles - tiling.pivot_tiles();
  const off all = in.cholesky ? (off)tiles * (tiles + 1) / 2 : (off)tiles * tiles;
  if (!pairs) return all;
  off seconds = in.cholesky ? 0 : (off)h * (h / 2);
  for (idx below = 0; in.cholesky && below < h; ++below) seconds += below / 2;
  return all - seconds;
}

// Sorts the entries of front f by tile, stable, and gives every task its range: counted first, then placed.
void place_entries(const LargeInput& in, idx f, const Tiling& tiling, LargeTask* tasks, off count) {
  const off first = in.entry_ptr[f], n = in.entry_ptr[f + 1] - first, tiles = tiling.tiles();
  std::vector<std::uint16_t> tile_of(in.rows[f]);
  for (idx r = 0; r < in.rows[f]; ++r) tile_of[r] = (std::uint16_t)tiling.of_row(r);
  struct Entry {
    idx source;
    std::uint32_t place;
    double scale;
  };
  std::vector<Entry> unsorted(n);
  std::vector<idx> end((std::size_t)(tiles * tiles) + 1, 0);  // of the entries of a tile, once they are placed
  const auto tile = [&](std::uint32_t place) { return tile_of[place & 0xffff] * tiles + tile_of[place >> 16]; };
  for (off k = 0; k < n; ++k) {
    const std::uint32_t place = in.entry_place[first + k];
    unsorted[k] = {in.entry_source[first + k], place, in.entry_scale ? in.entry_scale[first + k] : 1.0};
    ++end[tile(place) + 1];
  }
  std::partial_sum(end.begin(), end.end(), end.begin());
  for (const Entry& entry : unsorted) {
    const off to = first + end[tile(entry.place)]++;
    in.entry_source[to] = entry.source;
    in.entry_place[to] = entry.place;
    if (in.entry_scale) in.entry_scale[to] = entry.scale;
  }
  for (LargeTask* task = tasks; task < tasks + count; ++task) {
    const off own = (off)task->row * tiles + task->col;
    task->entry_begin = own > 0 ? end[own - 1] : 0;
    task->entry_count = end[own] - task->entry_begin;
  }
}

constexpr int kTimeBits = 22, kDigitBits = 11;  // of a due time, and of a digit in sorting

// Order of `keys` ascending, stable: two passes of a radix sort.
std::vector<idx> order_of(const std::vector<std::uint32_t>& keys) {
  std::vector<idx> order(keys.size()), before(keys.size());
  std::iota(before.begin(), before.end(), 0);
  for (int shift = 0; shift < kTimeBits; shift += kDigitBits) {
    std::vector<idx> next((1 << kDigitBits) + 1, 0);
    const auto digit = [&](idx k) { return keys[k] >> shift & ((1 << kDigitBits) - 1); };
    for (std::size_t k = 0; k < keys.size(); ++k) ++next[digit((idx)k) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const idx k : before) order[next[digit(k)]++] = k;
    before.swap(order);
  }
  return before;
}

// Tasks of one front in the order of (row, col), and when they are due. A task at distance from the diagonal is due a
// quarter of a step later a tile (measured: anything from 0 to 0.75 is within 5%, and the diagonal must run ahead), a
// pair with its second tile.
void list_front(const LargeInput& in, idx f, idx large, idx first_tile, double start, double duration, double end,
                bool pairs, LargeTask* tasks, std::uint32_t* time) {
  const Tiling tiling{in.width[f], in.rows[f], in.tile};
  const idx pivots = tiling.pivot_tiles(), tiles = tiling.tiles();
  const auto due = [&](idx step, idx far) { return step + 0.25 * (far - step); };
  const double last = std::max(due(std::min(pivots, tiles - 1), tiles - 1), 1.0);
  idx k = 0;
  for (idx i = 0; i < tiles; ++i)
    for (idx j = 0; j < (in.cholesky ? i + 1 : tiles); ++j) {
      const Role role = role_of(tiling, in.cholesky, pairs, i, j);
      if (role == Role::kFirst) continue;
      const idx row = role == Role::kSecond ? i - 1 : i;
      tasks[k] = {f, large, row, j, 0, 0, first_tile + row, first_tile + j, role == Role::kSecond ? 2 : 1};
      const idx step = std::min({i, j, pivots});
      const double at = start + duration * (due(step, std::max(i, j)) / last);
      time[k++] = (std::uint32_t)(at / end * ((1 << kTimeBits) - 1));
    }
  place_entries(in, f, tiling, tasks, k);
}

}  // namespace

void list_large(Plan& plan) {
  plan.large = make_large_tasks({.nf = plan.nf,
                                 .cholesky = plan.cholesky,
                                 .scalar = plan.parameters.scalar,
                                 .tile = plan.parameters.large_tile,
                                 .multiprocessors = plan.parameters.multiprocessors,
                                 .shared_kb = plan.parameters.shared_memory_bytes / 1024,
                                 .costs = plan.parameters.costs.tiles,
                                 .width = plan.width.data(),
                                 .rows = plan.rows.data(),
                                 .parent = plan.parent.data(),
                                 .phase = plan.phase.data(),
                                 .below_ptr = plan.below_ptr.data(),
                                 .place = plan.place.data(),
                                 .child_ptr = plan.child_ptr.data(),
                                 .child = plan.child.data(),
                                 .segment_ptr = plan.segment_ptr,
                                 .entry_ptr = plan.entry_ptr.data(),
                                 .entry_source = plan.entry_source.data(),
                                 .entry_place = plan.entry_place.data(),
                                 .entry_scale = plan.entry_scale.empty() ? nullptr : plan.entry_scale.data()});
}

LargeTasks make_large_tasks(const LargeInput& in) {
  LargeTasks out;
  std::vector<idx> large, large_of(in.nf, NOT_LARGE);
  for (idx f = 0; f < in.nf; ++f)
    if (in.phase[f] == 3) {
      large_of[f] = (idx)large.size();
      large.push_back(f);
    }
  const idx n = (idx)large.size();
  out.fronts.resize(n);
  const LargeSchedule schedule = schedule_large(in, large);
  out.seconds = schedule.seconds;
  std::vector<off> task_ptr(n + 1, 0);
  std::vector<char> pairs(n);
  std::vector<idx> first_tile(n);
  idx tiles = 0;
  const idx n_segments = std::max<idx>(1, (idx)in.segment_ptr.size() - 1);
  out.counters = LARGE_CONTROL * n_segments;
  for (idx k = 0; k < n; ++k) {
    const idx f = large[k];
    const idx own_control = LARGE_CONTROL * std::max<idx>(1, segment_of(in, f));  // where that of its segment ends
    const Tiling tiling{in.width[f], in.rows[f], in.tile};
    const idx t = tiling.tiles(), h = t - tiling.pivot_tiles();
    out.fronts[k] = {out.counters - own_control, in.cholesky ? h * (h + 1) / 2 : h * h};
    first_tile[k] = tiles;
    tiles += t;
    out.counters += 1 + (in.cholesky ? t : 2 * t);
    pairs[k] = has_pairs(in, tiling, schedule.blocks[k]);
    task_ptr[k + 1] = task_ptr[k] + count_tasks(in, tiling, pairs[k]);
  }

  out.piece_ptr.assign(tiles + 1, 0);
  for_each(n, 32 * (off)tiles, [&](idx k) {
    const idx f = large[k];
    const Tiling tiling{in.width[f], in.rows[f], in.tile};
    idx* count = out.piece_ptr.data() + first_tile[k] + 1;
    for (idx c = in.child_ptr[f]; c < in.child_ptr[f + 1]; ++c)
      for_pieces(in, tiling, in.child[c], [&](idx tile, idx, idx) { ++count[tile]; });
  });
  std::partial_sum(out.piece_ptr.begin(), out.piece_ptr.end(), out.piece_ptr.begin());
  out.pieces.resize(out.piece_ptr.back());
  for_each(n, 32 * (off)tiles, [&](idx k) {
    place_pieces(in, large_of, large[k], out.piece_ptr.data() + first_tile[k], out.pieces.data());
  });

  std::vector<LargeTask> tasks(task_ptr[n]);
  std::vector<std::uint32_t> time(tasks.size());
  off entries = 0;
  for (const idx f : large) entries += in.entry_ptr[f + 1] - in.entry_ptr[f];
  for_each(n, 8 * task_ptr[n] + 2 * entries, [&](idx k) {
    list_front(in, large[k], k, first_tile[k], schedule.start[k], schedule.duration[k], schedule.seconds, pairs[k],
               tasks.data() + task_ptr[k], time.data() + task_ptr[k]);
  });
  // Tasks of the same time stay in plan order and in the order of (row, col), which is topological.
  const std::vector<idx> order = order_of(time);
  out.tasks.resize(tasks.size());
  const idx chunk = 4096;
  for_each((idx)((order.size() + chunk - 1) / chunk), 8 * (off)order.size(), [&](idx c) {
    const std::size_t stop = std::min(order.size(), (std::size_t)(c + 1) * chunk);
    for (std::size_t k = (std::size_t)c * chunk; k < stop; ++k) out.tasks[k] = tasks[order[k]];
  });
  if (in.segment_ptr.size() > 2)
    std::stable_sort(out.tasks.begin(), out.tasks.end(), [&](const LargeTask& a, const LargeTask& b) {
      return segment_of(in, a.front) < segment_of(in, b.front);
    });
  return out;
}

}  // namespace gs::gpu
