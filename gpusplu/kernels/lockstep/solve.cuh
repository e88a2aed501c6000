// Arguments of solves with the factors of many systems in lockstep, and the solve with one front: rows in tiles of
// SOLVE_ROWS, a warp each.
//
// y holds the pivots' rows in the plan's order, `sums` the contributions of rows below to the parent. Of a factor M of
// a front, L or the transpose of U, e(i, p) is the entry in row i > p of column p. The arithmetic and its order are the
// same for early and late reads of entries, and for one warp and a team.
#pragma once
#include "lockstep/lanes.cuh"

// How one direction of a solve uses the factor: L or the transpose of U, multiplied by the reciprocals of the pivots or
// not, and conjugated or not.
struct LaneDirection {
  int upper, scaled, conjugate;
};

struct LaneSolveArgs {
  const LockstepFront* fronts;
  const int* below;  // rows of the fronts
  const int* slot;   // of every front: where its tiles of rows begin in item_ptr
  const int* item_ptr;
  const int2* item;  // of b and of sums
  const double* item_scale;
  const LockstepTask* warp_tasks;  // subtrees below the cut and fronts of few rows above, children first
  const int* block_fronts;         // the others, children first
  const int* above;                // of every front: its number among those above the cut and roots, -1 for others
  const unsigned* pending;         // by that number: children's tasks
  const int* perm_out;
  const double* scale_out;
  int warp_count, block_count, above_count;
  int n, groups;
  int sums_size;
  LaneDirection forward, backward;
  long long factor_size;
  const Scalar *factor, *b;
  Scalar *y, *sums;
  const Scalar* base;  // null: x is the solution, else this and the solution, of systems that are active
  Scalar* x;
  const LaneErrors* errors;
  const unsigned* active;              // a word a group, and whether any is; null: all are
  unsigned *tickets, *arrived, *done;  // zero before; a word a group and front above the cut
};

constexpr int S = SOLVE_ROWS, TOGETHER = 4;  // pivots with entries that are loaded together
using Rows = Scalar[S];

using Block = Team<LANE_WARPS>;

// S entries of a factor, `step` apart; those from `count` on do not exist, and stand for zeros.
struct Line {
  const Scalar* from;
  int step, count;
  DEVICE const Scalar* at(int r) const { return from + r * step * WARP_SIZE; }
};

// A front of a group of systems, and the factor that one direction of a solve uses: e(i, p), i < W, at pivots[(i *
// pivot_i + p * pivot_p) * WARP_SIZE], and others after these. Its rows are those of this lane: pivots in y, those
// below in sums.
struct SolvedFront {
  const LaneSolveArgs& args;
  int f, group, W, H, R, first;
  bool scaled, conjugate;
  const Scalar *pivots, *beyond;
  int pivot_i, pivot_p, beyond_i, beyond_p;
  const int* below;  // rows below the pivots
  Scalar *y, *pivot_rows, *rows_below;

  DEVICE SolvedFront(const LaneSolveArgs& args_, int f_, int group_, const LaneDirection& direction)
      : args(args_), f(f_), group(group_), scaled(direction.scaled), conjugate(direction.conjugate) {
    const LockstepFront record = args.fronts[f];
    const bool upper = direction.upper;
    W = record.width, R = record.rows, H = R - W, first = record.first;
    pivots = lane_entries(args.factor, group, args.factor_size) + record.factor * WARP_SIZE;
    pivot_i = upper ? R : 1, pivot_p = upper ? 1 : R;
    beyond = pivots + (upper ? (long long)R * W : W) * WARP_SIZE;
    beyond_i = 1, beyond_p = upper ? H : R;
    below = args.below + record.below;
    y = lane_entries(args.y, group, args.n), pivot_rows = y + (long long)first * WARP_SIZE;
    rows_below = lane_entries(args.sums, group, args.sums_size) + (long long)record.below * WARP_SIZE;
  }
  // Tiles of rows: those of pivots, then those below.
  DEVICE int tiles() const { return (W + S - 1) / S; }
  DEVICE int all_tiles() const { return tiles() + (H + S - 1) / S; }
  DEVICE int count(int t) const { return t < tiles() ? W - t * S : H - (t - tiles()) * S; }  // of rows, or more
  DEVICE int end(int t) const { return min(W, (t + 1) * S); }
  DEVICE Scalar* rows(int t) const {
    return t < tiles() ? pivot_rows + t * S * WARP_SIZE : rows_below + (t - tiles()) * S * WARP_SIZE;
  }

  DEVICE Line column(int t, int p) const {  // of tile t of rows
    const int i = t < tiles() ? t * S : (t - tiles()) * S;
    return t < tiles() ? Line{pivots + (i * pivot_i + p * pivot_p) * WARP_SIZE, pivot_i, W - i}
                       : Line{beyond + (i * beyond_i + p * beyond_p) * WARP_SIZE, beyond_i, H - i};
  }
  DEVICE Line row(int i, int t) const {  // of the pivots of tile t
    const int p = t * S;
    return i < W ? Line{pivots + (i * pivot_i + p * pivot_p) * WARP_SIZE, pivot_p, W - p}
                 : Line{beyond + ((i - W) * beyond_i + p * beyond_p) * WARP_SIZE, beyond_p, W - p};
  }
  // Entries of pivot p that update the rows of tile t, or backward of row p those that update the pivots of tile t.
  template <bool FORWARD> DEVICE Line line(int p, int t) const { return FORWARD ? column(t, p) : row(p, t); }
  DEVICE void turn(Rows& e) const {
    if constexpr (is_complex)
      if (conjugate) for_all<S>([&](int r) { e[r] = conj(e[r]); });
  }
};

// Entries of a factor, loaded on use.
struct EntriesNow {
  DEVICE void take(Rows& e, const Line& line) const {
    for_all<S>([&](int r) { e[r] = r < line.count ? *line.at(r) : Scalar(0); });
  }
};

DEVICE void load_rows(Rows& rows, const Scalar* from, int count) {
  for_all<S>([&](int r) { rows[r] = r < count ? from[r * WARP_SIZE] : Scalar(0); });
}
DEVICE void store_rows(const Rows& rows, Scalar* to, int count) {
  for_all<S>([&](int r) {
    if (r < count) to[r * WARP_SIZE] = rows[r];
  });
}

// Initial values of tiles of rows, from b and the children's sums: the tiles of this member of the team. Data that do
// not depend on the children are loaded at construction.
struct RowSums {
  const SolvedFront& front;
  Items items;
  int slot, begin = 0, end = 0;
  ItemsInLanes first;

  template <class Member> DEVICE RowSums(const Member& team, const SolvedFront& front_)
      : front(front_),
        items{front.args.item_ptr, front.args.item, front.args.item_scale},
        slot(front.args.slot[front.f]) {
    if (team.rank < front.all_tiles()) prefetch(team.rank);
  }
  DEVICE void prefetch(int t) {
    begin = __ldg(items.ptr + slot + t), end = __ldg(items.ptr + slot + t + 1);
    if (begin < end) first.load(items, begin, end);
  }
  template <class Member> DEVICE void put(const Member& team, Scalar* scratch) {
    const LaneSolveArgs& args = front.args;
    const Scalar *b = lane_entries(args.b, front.group, args.n),
                 *sums = lane_entries(args.sums, front.group, args.sums_size);
    LaneStatus unused;
    for (int t = team.rank; t < front.all_tiles(); t += team.size) {
      if (t > team.rank) prefetch(t);
      assemble<S, true>(items, begin, end, first, b, sums, scratch, unused);
      Rows tile;
      load_rows(tile, scratch, S);
      store_rows(tile, front.rows(t), front.count(t));
    }
  }
};

// The pivots of one tile, from the first on, or backward from the last.
template <bool FORWARD, class Entries>
DEVICE void solve_pivots(const SolvedFront& front, Entries& entries, Rows& x, int t) {
  const int count = front.count(t);
  load_rows(x, front.rows(t), count);
#pragma unroll
  for (int k = 0; k < S; k++) {
    const int p = FORWARD ? k : S - 1 - k;
    if (FORWARD && p >= count) break;
    if (p >= count) continue;
    Rows e;
    entries.take(e, front.line<FORWARD>(t * S + p, t));
    front.turn(e);
    if (front.scaled) x[p] = x[p] * e[p];
    for_all<S>([&](int i) {
      if (FORWARD ? i > p && i < count : i < p) x[i] = mul_sub(e[i], x[p], x[i]);
    });
  }
  store_rows(x, front.rows(t), count);
}

// Subtracts from the rows of tile s the terms of the pivots of tile t, with solutions in y.
template <bool FORWARD, class Entries>
DEVICE void subtract_pivots(const SolvedFront& front, Entries& entries, int s, int t) {
  constexpr int STEP = FORWARD ? 1 : -1;
  const int count = FORWARD ? front.count(s) : S, begin = t * S, end = front.end(t);
  Rows tile;
  load_rows(tile, front.rows(s), count);
#pragma unroll 1
  for (int first = FORWARD ? begin : end - 1; FORWARD ? first < end : first >= begin; first += STEP * TOGETHER) {
    Scalar e[TOGETHER][S], x[TOGETHER];
    for_all<TOGETHER>([&](int q) {
      const int p = first + STEP * q;
      const bool some = FORWARD ? p < end : p >= begin;
      x[q] = some ? front.pivot_rows[p * WARP_SIZE] : Scalar(0);
      if (some) {
        entries.take(e[q], front.line<FORWARD>(p, s));
      } else {
        for_all<S>([&](int i) { e[q][i] = Scalar(0); });
      }
      front.turn(e[q]);
    });
    for_all<TOGETHER, S>([&](int q, int i) { tile[i] = mul_sub(e[q][i], x[q], tile[i]); });
  }
  store_rows(tile, front.rows(s), count);
}

template <class Member, class Entries>
DEVICE void forward(const Member& team, const SolvedFront& front, Entries& entries, RowSums& sums, Scalar* scratch) {
  const int tiles = front.tiles(), all = front.all_tiles();
  sums.put(team, scratch);
  const auto solve = [&](int t) {
    Rows x;
    solve_pivots<true>(front, entries, x, t);
  };
  if (team.rank == 0) solve(0);
  team.sync();
#pragma unroll 1
  for (int t = 0; t < tiles; t++) {
#pragma unroll 1
    for (int s = t + 1 + (team.rank + team.size - (t + 1) % team.size) % team.size; s < all; s += team.size) {
      subtract_pivots<true>(front, entries, s, t);
      if (s == t + 1 && s < tiles) solve(s);  // other tiles need it next
    }
    team.sync();
  }
}

// Subtracts from the pivots of tile t the terms of the rows below, with solutions in y.
template <class Entries> DEVICE void subtract_below(const SolvedFront& front, Entries& entries, int t) {
  const int count = front.count(t);
  Scalar* pivots = front.rows(t);
  Rows tile;
  load_rows(tile, pivots, count);
  for (int first = 0; first < front.H; first += WARP_SIZE) {
    const int mine = __ldg(front.below + min(first + lane_of(), front.H - 1)), some = min(WARP_SIZE, front.H - first);
#pragma unroll 4
    for (int k = 0; k < some; k++) {
      const Scalar x = front.y[(long long)shuffle(mine, k) * WARP_SIZE];
      Rows e;
      entries.take(e, front.row(front.W + first + k, t));
      front.turn(e);
      for_all<S>([&](int p) {
        if (p < count) tile[p] = mul_sub(e[p], x, tile[p]);
      });
    }
  }
  store_rows(tile, pivots, count);
}

// Copies solutions of the pivots of tile t to the caller's array.
DEVICE void put_solution(const SolvedFront& front, const Rows& x, int t) {
  const LaneSolveArgs& args = front.args;
  const bool writes = !args.base || args.errors[front.group * WARP_SIZE + lane_of()].active;
#pragma unroll
  for (int r = 0; r < S; r++) {
    if (r >= front.count(t)) break;
    const int row = __ldg(args.perm_out + front.first + t * S + r);
    const Real scale = args.scale_out ? (Real)__ldg(args.scale_out + row) : (Real)1;
    const long long at = (long long)row * WARP_SIZE;
    Scalar value = scale * x[r];
    if (args.base) value += lane_entries(args.base, front.group, args.n)[at];
    if (writes) lane_entries(args.x, front.group, args.n)[at] = value;
  }
}

// Calls done(x, t) with the solutions of a tile.
template <class Member, class Entries, class Done>
DEVICE void backward(const Member& team, const SolvedFront& front, Entries& entries, Done&& done) {
  const int tiles = front.tiles();
  const auto solve = [&](int t) {
    Rows x;
    solve_pivots<false>(front, entries, x, t);
    done(x, t);
  };
  if (front.H > 0)
    for (int t = team.rank; t < tiles; t += team.size) subtract_below(front, entries, t);
  if (team.rank == (tiles - 1) % team.size) solve(tiles - 1);
  team.sync();
#pragma unroll 1
  for (int t = tiles - 1; t > 0; t--) {
#pragma unroll 1
    for (int s = t - 1 - (t - 1 + team.size - team.rank) % team.size; s >= 0; s -= team.size) {
      subtract_pivots<false>(front, entries, s, t);
      if (s == t - 1) solve(s);
    }
    team.sync();
  }
}
