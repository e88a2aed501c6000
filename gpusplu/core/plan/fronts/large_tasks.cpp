#include "plan/fronts/large_tasks.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

#include "plan/fronts/plan.hpp"
#include "plan/team.hpp"

namespace gs::gpu {

// A list schedule of the large fronts, front by front: which of them share the device, and when they start. It
// determines only the order of tasks; the kernel is dynamic.

namespace {

constexpr double kLeastCrowd = 0.35;  // least share that a front gets of the blocks with which its chain bounds it

struct FrontCost {
  double work, chain;  // block seconds; shortest time with any number of blocks [s]
};

FrontCost front_cost(const Plan& plan, const TileTimes& times, idx f) {
  const double tile = plan.parameters.large_tile, W = plan.width[f], R = plan.rows[f], H = R - W;
  const double pivots = std::ceil(W / tile), tiles = pivots + std::ceil(H / tile);
  const double n_tasks = plan.one_triangle() ? tiles * (tiles + 1) / 2 : tiles * tiles;
  const double flops =
      (plan.one_triangle() ? 1 : 2) * (plan.parameters.is_complex() ? 4 : 1) * (R * R * R - H * H * H) / 3;
  return {n_tasks * times.task + flops * times.flop * times.blocks,
          times.front + pivots * times.pivot + times.column * pivots};
}

}  // namespace

TileTimes tile_times(const Plan& plan) {
  const TileCosts& costs = plan.parameters.costs.tiles;
  const char scalar = plan.parameters.scalar;
  const double flop = scalar == 'D' ? costs.flop_D : scalar == 'F' ? costs.flop : costs.flop_d;
  const double blocks = (double)plan.parameters.multiprocessors * plan.parameters.large_shape().blocks;
  return {costs.front, costs.task, plan.cholesky ? costs.pivot_cholesky : costs.pivot, costs.column, flop, blocks};
}

LargeSchedule schedule_large(const Plan& plan, const std::vector<idx>& large) {
  const idx n = (idx)large.size();
  LargeSchedule out;
  out.start.assign(n, 0);
  out.duration.assign(n, 0);
  out.blocks.assign(n, 0);
  const TileTimes times = tile_times(plan);
  const double blocks = times.blocks;
  std::vector<idx> parent(n, -1), waiting(n, 0);
  std::vector<FrontCost> cost(n);
  std::vector<double> path(n, 0);  // from the start of the front to the end of its root
  for (idx k = n - 1; k >= 0; --k) {
    cost[k] = front_cost(plan, times, large[k]);
    const idx p = plan.parent[large[k]];
    if (const auto at = std::lower_bound(large.begin(), large.end(), p); at != large.end() && *at == p) {
      parent[k] = (idx)(at - large.begin());
      ++waiting[parent[k]];
    }
    path[k] = std::max(cost[k].chain, cost[k].work / blocks) + (parent[k] >= 0 ? path[parent[k]] : 0);
  }

  // Blocks of a front that waits for its chain are wasted where work bounds the device: then more fronts share it.
  double work = 0;
  for (const FrontCost& c : cost) work += c.work;
  const double longest = n ? *std::max_element(path.begin(), path.end()) : 0;
  const double crowd = std::clamp(longest * blocks / std::max(work, 1e-9), kLeastCrowd, 1.0);

  struct Running {
    double end;
    idx front;
    double blocks;
    bool operator<(const Running& other) const { return end != other.end ? end > other.end : front > other.front; }
  };
  const auto later = [&](idx a, idx b) { return path[a] != path[b] ? path[a] < path[b] : a > b; };
  std::priority_queue<idx, std::vector<idx>, decltype(later)> ready(later);
  std::priority_queue<Running> running;
  for (idx k = 0; k < n; ++k)
    if (!waiting[k]) ready.push(k);
  double now = 0, free = blocks;
  while (!ready.empty() || !running.empty()) {
    while (!ready.empty()) {
      const idx k = ready.top();
      const double wanted = std::clamp(crowd * cost[k].work / cost[k].chain, 1.0, blocks);
      if (free < wanted / 2 && !running.empty()) break;
      ready.pop();
      const double given = std::min(wanted, free);
      out.start[k] = now;
      out.duration[k] = cost[k].work / given;
      out.blocks[k] = given;
      running.push({now + out.duration[k], k, given});
      free -= given;
    }
    const Running first = running.top();
    running.pop();
    now = first.end;
    free += first.blocks;
    const idx p = parent[first.front];
    if (p >= 0 && --waiting[p] == 0) ready.push(p);
  }
  out.seconds = now;
  return out;
}

namespace {

// How a front is cut into tiles.
struct Tiling {
  idx width, rows, tile;
  Tiling(const Plan& plan, idx f) : width(plan.width[f]), rows(plan.rows[f]), tile(plan.parameters.large_tile) {}
  idx pivot_tiles() const { return (width + tile - 1) / tile; }
  idx tiles() const { return pivot_tiles() + (rows - width + tile - 1) / tile; }
  idx of_row(idx r) const { return r < width ? r / tile : pivot_tiles() + (r - width) / tile; }
  idx end_row(idx t) const {
    return t < pivot_tiles() ? std::min(width, (t + 1) * tile) : width + (t + 1 - pivot_tiles()) * tile;
  }
};

// Runs body(k) for k < n, several threads where there is enough to do.
template <class Body> void for_each(idx n, off work, Body&& body) {
  over_tasks(work < 50000 ? 1 : std::min<off>(num_threads(), work / 25000), n, body);
}

// A child's rows, cut where the parent's tiles are cut: calls visit(tile, begin, end).
template <class Visit> void for_chunks(const Plan& plan, const Tiling& parent, idx child, Visit&& visit) {
  const std::uint16_t* place = plan.place.data() + plan.below_ptr[child];
  const idx height = plan.height(child);
  for (idx begin = 0; begin < height;) {
    const idx tile = parent.of_row(place[begin]);
    const idx end = (idx)(std::lower_bound(place + begin, place + height, parent.end_row(tile)) - place);
    visit(tile, begin, end);
    begin = end;
  }
}

// Chunks of all tiles of one front from `to` on: counted first, then placed child by child.
void place_chunks(const Plan& plan, const std::vector<idx>& large_of, idx f, const idx* tile_ptr, LargeChunk* to) {
  const idx segment = plan.segment_of(f);
  const Tiling tiling(plan, f);
  std::vector<idx> next(tile_ptr, tile_ptr + tiling.tiles());
  for (idx k = plan.child_ptr[f]; k < plan.child_ptr[f + 1]; ++k) {
    const idx child = plan.child[k];
    const idx large =
        large_of[child] != NOT_LARGE && plan.segment_of(child) != segment ? FINISHED_BEFORE : large_of[child];
    for_chunks(plan, tiling, child, [&](idx tile, idx begin, idx end) {
      to[next[tile]++] = {child, begin, end, large};
    });
  }
}

// Which tile (row, col) of a front is the only one, the first or the second of a task. Pairs start below the diagonal.
enum class Role { kOnly, kFirst, kSecond };
Role role_of(const Tiling& tiling, bool one_triangle, bool pairs, idx row, idx col) {
  const idx above = row - (one_triangle ? col + 1 : tiling.pivot_tiles());
  if (!pairs || std::min(row, col) < tiling.pivot_tiles() || above < 0) return Role::kOnly;
  return above % 2 ? Role::kSecond : row + 1 < tiling.tiles() ? Role::kFirst : Role::kOnly;
}

constexpr idx kPairWidth = 64;  // least width of a front with pairs as tasks (256: 2% slower)
// Least number of pairs in a contribution block for every block that the front gets (2: 3% slower).
constexpr double kTasksPerBlock = 0.4;

bool has_pairs(const Plan& plan, const Tiling& tiling, double blocks) {
  const double h = tiling.tiles() - tiling.pivot_tiles();
  return plan.parameters.scalar == 'd' && plan.parameters.large_shape().tall > 1 &&
         tiling.tile == large_tile(plan.parameters.scalar_bytes()) && tiling.width >= kPairWidth &&
         h * (plan.one_triangle() ? h + 1 : 2 * h) / 4 >= kTasksPerBlock * blocks;
}

off count_tasks(const Plan& plan, const Tiling& tiling, bool pairs) {
  const idx tiles = tiling.tiles(), h = tiles - tiling.pivot_tiles();
  const off all = plan.one_triangle() ? (off)tiles * (tiles + 1) / 2 : (off)tiles * tiles;
  if (!pairs) return all;
  off seconds = plan.one_triangle() ? 0 : (off)h * (h / 2);
  for (idx below = 0; plan.one_triangle() && below < h; ++below) seconds += below / 2;
  return all - seconds;
}

// Sorts the entries of front f by tile, stable, and gives every task its range: counted first, then placed.
void sort_entries(Plan& plan, idx f, const Tiling& tiling, LargeTask* tasks, off count) {
  const off first = plan.entry_ptr[f], n = plan.entry_ptr[f + 1] - first, tiles = tiling.tiles();
  std::vector<std::uint16_t> tile_of(plan.rows[f]);
  for (idx r = 0; r < plan.rows[f]; ++r) tile_of[r] = (std::uint16_t)tiling.of_row(r);
  struct Entry {
    idx source;
    std::uint32_t place;
    double scale;
  };
  std::vector<Entry> unsorted(n);
  std::vector<idx> end((std::size_t)(tiles * tiles) + 1, 0);  // of the entries of a tile, once they are placed
  const auto tile = [&](std::uint32_t place) { return tile_of[place & 0xffff] * tiles + tile_of[place >> 16]; };
  for (off k = 0; k < n; ++k) {
    const std::uint32_t place = plan.entry_place[first + k];
    unsorted[k] = {plan.entry_source[first + k], place, plan.entry_scale.empty() ? 1.0 : plan.entry_scale[first + k]};
    ++end[tile(place) + 1];
  }
  std::partial_sum(end.begin(), end.end(), end.begin());
  for (const Entry& entry : unsorted) {
    const off to = first + end[tile(entry.place)]++;
    plan.entry_source[to] = entry.source;
    plan.entry_place[to] = entry.place;
    if (!plan.entry_scale.empty()) plan.entry_scale[to] = entry.scale;
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

// Tasks of one front in the order of (row, col), and when they are due. A task is due a quarter of a step later per
// tile of distance from the diagonal (measured: anything from 0 to 0.75 is within 5%, and the diagonal must run ahead),
// a pair with its second tile.
void list_front(Plan& plan, idx f, idx large, idx first_tile, double start, double duration, double end, bool pairs,
                LargeTask* tasks, std::uint32_t* time) {
  const Tiling tiling(plan, f);
  const idx pivots = tiling.pivot_tiles(), tiles = tiling.tiles();
  const auto due = [&](idx step, idx far) { return step + 0.25 * (far - step); };
  const double last = std::max(due(std::min(pivots, tiles - 1), tiles - 1), 1.0);
  idx k = 0;
  for (idx i = 0; i < tiles; ++i)
    for (idx j = 0; j < (plan.one_triangle() ? i + 1 : tiles); ++j) {
      const Role role = role_of(tiling, plan.one_triangle(), pairs, i, j);
      if (role == Role::kFirst) continue;
      const idx row = role == Role::kSecond ? i - 1 : i;
      tasks[k] = {f, large, row, j, 0, 0, first_tile + row, first_tile + j, role == Role::kSecond ? 2 : 1};
      const idx step = std::min({i, j, pivots});
      const double at = start + duration * (due(step, std::max(i, j)) / last);
      time[k++] = (std::uint32_t)(at / end * ((1 << kTimeBits) - 1));
    }
  sort_entries(plan, f, tiling, tasks, k);
}

}  // namespace

void list_large(Plan& plan) {
  LargeTasks& out = plan.large;
  std::vector<idx> large, large_of(plan.nf, NOT_LARGE);
  for (idx f = 0; f < plan.nf; ++f)
    if (plan.phase[f] == LARGE_PHASE) {
      large_of[f] = (idx)large.size();
      large.push_back(f);
    }
  const idx n = (idx)large.size();
  out.fronts.resize(n);
  const LargeSchedule schedule = schedule_large(plan, large);
  std::vector<off> task_ptr(n + 1, 0);
  std::vector<char> pairs(n);
  std::vector<idx> first_tile(n);
  idx tiles = 0;
  out.counters = LARGE_CONTROL * ((idx)plan.segment_ptr.size() - 1);
  for (idx k = 0; k < n; ++k) {
    const idx f = large[k];
    const idx own_control = LARGE_CONTROL * (plan.segment_of(f) + 1);  // where that of its segment ends
    const Tiling tiling(plan, f);
    const idx t = tiling.tiles(), h = t - tiling.pivot_tiles();
    out.fronts[k] = {out.counters - own_control, plan.one_triangle() ? h * (h + 1) / 2 : h * h};
    first_tile[k] = tiles;
    tiles += t;
    out.counters += 1 + (plan.one_triangle() ? t : 2 * t);
    pairs[k] = has_pairs(plan, tiling, schedule.blocks[k]);
    task_ptr[k + 1] = task_ptr[k] + count_tasks(plan, tiling, pairs[k]);
  }

  out.chunk_ptr.assign(tiles + 1, 0);
  for_each(n, 32 * (off)tiles, [&](idx k) {
    const idx f = large[k];
    const Tiling tiling(plan, f);
    idx* count = out.chunk_ptr.data() + first_tile[k] + 1;
    for (idx c = plan.child_ptr[f]; c < plan.child_ptr[f + 1]; ++c)
      for_chunks(plan, tiling, plan.child[c], [&](idx tile, idx, idx) { ++count[tile]; });
  });
  std::partial_sum(out.chunk_ptr.begin(), out.chunk_ptr.end(), out.chunk_ptr.begin());
  out.chunks.resize(out.chunk_ptr.back());
  for_each(n, 32 * (off)tiles, [&](idx k) {
    place_chunks(plan, large_of, large[k], out.chunk_ptr.data() + first_tile[k], out.chunks.data());
  });

  std::vector<LargeTask> tasks(task_ptr[n]);
  std::vector<std::uint32_t> time(tasks.size());
  off entries = 0;
  for (const idx f : large) entries += plan.entry_ptr[f + 1] - plan.entry_ptr[f];
  for_each(n, 8 * task_ptr[n] + 2 * entries, [&](idx k) {
    list_front(plan, large[k], k, first_tile[k], schedule.start[k], schedule.duration[k], schedule.seconds, pairs[k],
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
  if (plan.segment_ptr.size() > 2)
    std::stable_sort(out.tasks.begin(), out.tasks.end(), [&](const LargeTask& a, const LargeTask& b) {
      return plan.segment_of(a.front) < plan.segment_of(b.front);
    });
}

}  // namespace gs::gpu
