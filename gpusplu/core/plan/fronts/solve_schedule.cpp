#include "plan/fronts/solve_schedule.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/types.hpp"
#include "plan/fronts/over_fronts.hpp"

namespace gs::gpu {
namespace {

// Microseconds of a front on the path from a leaf to the root: waiting and the latencies of its own, panels, the factor
// through one multiprocessor.
double solve_time(const Plan& plan, idx f) {
  const TicketCosts& costs = plan.parameters.costs.tickets;
  const double W = plan.width[f], R = plan.rows[f];
  if (plan.phase[f] == 0) return costs.warp;
  return costs.front + costs.panel * ((W + PANEL - 1) / PANEL) + R * W * plan.parameters.scalar_bytes() * costs.byte;
}

// Fronts of phases 0 to 2 in forward order.
std::vector<idx> forward_order(const Plan& plan) {
  std::vector<double> path(plan.nf);  // from the start of the front to the end of its root
  std::vector<idx> order;
  for (idx f = plan.nf - 1; f >= 0; f--) {
    if (plan.phase[f] == LARGE_PHASE) continue;
    const idx above = plan.parent[f];
    path[f] = solve_time(plan, f) + (above >= 0 && plan.phase[above] < LARGE_PHASE ? path[above] : 0);
    order.push_back(f);
  }
  std::reverse(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(), [&](idx f, idx g) { return path[f] > path[g]; });
  return order;
}

// Which unit solves each front: a warp those of phase 0, and those of up to WARP_SOLVE_ROWS rows where there are more
// of them than the device holds blocks; but blocks, which are faster for a single front, solve those nearest to the
// root.
std::vector<SolveKind> solve_kinds(const Plan& plan, const std::vector<idx>& order) {
  std::vector<SolveKind> kind(plan.nf, SOLVE_BLOCK);
  int blocks = 4 * plan.parameters.multiprocessors;  // that are left
  for (auto f = order.rbegin(); f != order.rend(); ++f) {
    if (plan.phase[*f] == 0) kind[*f] = SOLVE_TINY;
    else if (plan.rows[*f] <= WARP_SOLVE_ROWS && --blocks < 0) kind[*f] = SOLVE_WARP;
  }
  return kind;
}

void cut_gathers(const Plan& plan, SolveSchedule& schedule) {
  const auto rows_of = [&](idx f) { return plan.first[f] + plan.below_ptr[f]; };  // the front's first one
  const auto chunks_of = [&](off row) { return (plan.gather_ptr[row + 1] - plan.gather_ptr[row] + 3) / 4; };
  const off work = (off)plan.gather_ptr.size() + (off)plan.gather_source.size();
  std::vector<off> begin(plan.nf + 1);  // chunks of a front
  over_fronts(plan, work, [&](idx first_front, idx last_front) {
    for (idx f = first_front; f < last_front; f++)
      for (off i = rows_of(f); i < rows_of(f) + plan.rows[f]; i++) begin[f + 1] += chunks_of(i);
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  if (begin.back() > 0x7fffffff) throw std::length_error("more than 2147483647 pieces of gathers");
  schedule.chunk_ptr.resize(plan.gather_ptr.size());
  schedule.chunk_ptr.back() = (std::int32_t)begin.back();
  schedule.chunks.resize(begin.back());
  over_fronts(plan, work, [&](idx first_front, idx last_front) {
    for (idx f = first_front; f < last_front; f++) {
      off chunk = begin[f];
      for (off i = rows_of(f); i < rows_of(f) + plan.rows[f]; i++) {
        schedule.chunk_ptr[i] = (std::int32_t)chunk;
        for (off at = plan.gather_ptr[i]; at < plan.gather_ptr[i + 1]; at += 4, chunk++)
          for (off k = 0; k < 4; k++)
            schedule.chunks[chunk].place[k] = at + k < plan.gather_ptr[i + 1] ? plan.gather_source[at + k] : -1;
      }
    }
  });
}

SolveFront empty_slot() {
  SolveFront r{};
  r.kind = SOLVE_EMPTY, r.parent = -1;
  return r;
}

SolveFront record(const Plan& plan, const SolveSchedule& schedule, idx f, SolveKind kind) {
  SolveFront r;
  r.width = plan.width[f], r.rows = plan.rows[f], r.first = plan.first[f], r.front = f;
  r.kind = kind;
  const idx above = plan.parent[f];
  r.parent = above >= 0 && plan.phase[above] < LARGE_PHASE ? above : -1;
  r.children = plan.child_ptr[f + 1] - plan.child_ptr[f];
  r.below = (std::int32_t)plan.below_ptr[f];
  const off first = plan.first[f] + plan.below_ptr[f];
  r.gather_begin = schedule.chunk_ptr[first];
  r.gather_count = schedule.chunk_ptr[first + r.rows] - r.gather_begin;
  r.factor = plan.factor_offset[f];
  return r;
}

// Which fronts of a warp go into one ticket: those that take about the same time, since a block waits for all of its
// warps before it takes the next one. Counted in rounds of loads of 8 columns and 32 rows.
constexpr int kTicketClasses = 4;
int ticket_class(const Plan& plan, idx f, SolveKind kind) {
  if (kind == SOLVE_BLOCK) return -1;  // has a ticket of its own
  if (kind == SOLVE_TINY) return 0;
  const idx rounds = (plan.width[f] + 7) / 8 * ((plan.rows[f] + 31) / 32);
  return rounds <= 2 ? 1 : rounds <= 6 ? 2 : 3;
}

// Number of parts, and the part of every front.
idx part_count(const Plan& plan) { return plan.streamed + (plan.streamed + 1 < (idx)plan.segment_ptr.size() ? 1 : 0); }
std::vector<idx> parts_of(const Plan& plan) {
  std::vector<idx> part(plan.nf, plan.streamed);
  for (idx s = 0; s < plan.streamed; s++)
    std::fill(part.begin() + plan.segment_ptr[s], part.begin() + plan.segment_ptr[s + 1], s);
  return part;
}

struct TimedTask {
  idx part;
  double time;  // in tiles: from the pivots of one to those of the next
  LargeSolveTask task;
};
// The tasks by part and time, and where those of each part begin.
std::vector<LargeSolveTask> sorted(std::vector<TimedTask>& timed, idx parts, std::vector<std::int32_t>& part_ptr) {
  std::stable_sort(timed.begin(), timed.end(), [](const TimedTask& a, const TimedTask& b) {
    return a.part != b.part ? a.part < b.part : a.time < b.time;
  });
  std::vector<LargeSolveTask> tasks(timed.size());
  std::transform(timed.begin(), timed.end(), tasks.begin(), [](const TimedTask& t) { return t.task; });
  part_ptr.assign(parts + 1, 0);
  for (const TimedTask& t : timed) part_ptr[t.part + 1]++;
  std::partial_sum(part_ptr.begin(), part_ptr.end(), part_ptr.begin());
  return tasks;
}

void list_large_tasks(const Plan& plan, const std::vector<idx>& part, idx parts, SolveSchedule& schedule) {
  const idx tile = plan.parameters.large_tile;
  const auto tiles = [&](idx rows) { return (rows + tile - 1) / tile; };
  std::vector<idx> large, number(plan.nf, -1);
  for (idx f = 0; f < plan.nf; f++)
    if (plan.phase[f] == LARGE_PHASE) {
      number[f] = (idx)large.size();
      large.push_back(f);
    }
  schedule.large.resize(large.size());
  std::vector<double> above(large.size(), 0);  // from the end of the front, forward, to the end of its root
  std::vector<TimedTask> forward, backward;
  for (idx k = (idx)large.size() - 1; k >= 0; k--) {
    const idx f = large[k], W = plan.width[f], parent = plan.parent[f], up = parent < 0 ? -1 : number[parent];
    const auto time = [&](idx front) { return tiles(plan.width[front]) + 2.0; };
    if (up >= 0) above[k] = above[up] + time(parent);
    LargeSolveFront& r = schedule.large[k];
    r = {.width = W,
         .rows = plan.rows[f],
         .first = plan.first[f],
         .below = (std::int32_t)plan.below_ptr[f],
         .parent = up,
         .arrivals = 0,
         .factor = plan.factor_offset[f]};
    for (idx q = plan.child_ptr[f]; q < plan.child_ptr[f + 1]; q++)
      if (number[plan.child[q]] >= 0) r.arrivals += tiles(plan.height(plan.child[q]));
    const idx pivots = tiles(W), all = pivots + tiles(plan.height(f));
    for (idx i = all - 1; i >= 0; i--) forward.push_back({part[f], std::min(i, pivots) - above[k] - time(f), {k, i}});
    for (idx j = pivots - 1; j >= 0; j--) backward.push_back({part[f], pivots - 1 - j + above[k], {k, j}});
  }
  std::reverse(forward.begin(), forward.end());  // children first
  schedule.large_forward = sorted(forward, parts, schedule.forward_ptr);
  schedule.large_backward = sorted(backward, parts, schedule.backward_ptr);
}

// Tickets of these fronts, in this order.
void list_tickets(const Plan& plan, const std::vector<idx>& order, const std::vector<SolveKind>& kind,
                  SolveSchedule& schedule) {
  std::vector<char> open(plan.nf, 0);  // in a ticket that is being filled
  std::vector<idx> filling[kTicketClasses];
  const auto class_of = [&](idx f) { return ticket_class(plan, f, kind[f]); };
  const auto close = [&](int k) {
    for (const idx f : filling[k]) {
      schedule.slots.push_back(record(plan, schedule, f, kind[f]));
      open[f] = 0;
    }
    if (!filling[k].empty()) schedule.slots.insert(schedule.slots.end(), SOLVE_SLOTS - filling[k].size(), empty_slot());
    filling[k].clear();
  };
  for (const idx f : order) {
    for (idx q = plan.child_ptr[f]; q < plan.child_ptr[f + 1]; q++)
      if (const idx child = plan.child[q]; open[child] && class_of(child) != class_of(f)) close(class_of(child));
    if (kind[f] == SOLVE_BLOCK) {
      schedule.slots.insert(schedule.slots.end(), SOLVE_SLOTS, record(plan, schedule, f, SOLVE_BLOCK));
      continue;
    }
    const int own = class_of(f);
    filling[own].push_back(f);
    open[f] = 1;
    if (filling[own].size() == SOLVE_SLOTS) close(own);
  }
  for (int k = 0; k < kTicketClasses; k++) close(k);
}

}  // namespace

SolveSchedule make_solve_schedule(const Plan& plan) {
  return make_solve_schedule(plan, parts_of(plan), part_count(plan));
}

SolveSchedule make_solve_schedule(const Plan& plan, const std::vector<idx>& part, idx parts) {
  require((idx)part.size() == plan.nf, "every front has to have a part");
  for (idx f = 0; f < plan.nf; f++) {
    const idx above = plan.parent[f];
    require(0 <= part[f] && part[f] < parts, "there is no such part");
    require(above < 0 || part[f] == part[above] || (part[f] < part[above] && plan.phase[above] == LARGE_PHASE),
            "a front is in an earlier part than a child of it, or in another one though it is not large");
  }
  SolveSchedule schedule;
  cut_gathers(plan, schedule);
  list_large_tasks(plan, part, parts, schedule);
  const std::vector<idx> order = forward_order(plan);
  const std::vector<SolveKind> kind = solve_kinds(plan, order);
  std::vector<std::vector<idx>> by_part(parts);
  for (const idx f : order) by_part[part[f]].push_back(f);
  schedule.ticket_ptr = {0};
  for (const std::vector<idx>& fronts : by_part) {
    list_tickets(plan, fronts, kind, schedule);
    schedule.ticket_ptr.push_back(schedule.tickets());
  }
  return schedule;
}

}  // namespace gs::gpu
