// Prefetch of entries of a front's factor, which do not depend on the values for which a front waits.
//
// A member of a team reads lines in an order that is known (ForwardLines, BackwardLines: that of forward and backward
// in solve.cuh). LINES_AHEAD of them are in shared memory or on their way there; the following ones are prefetched into
// the second-level cache.
#pragma once
#include "lockstep/solve.cuh"

// Lines of tiles (s, u) of rows and pivots: for t = 0, 1, .. those of t and each s > t of this member; where it has the
// next tile of pivots, that tile's own follow at once.
struct ForwardLines {
  const SolvedFront& front;
  Block team;
  int t = -1, s = 0, p = 0, end;
  bool is_own;

  DEVICE ForwardLines(const SolvedFront& front_, const Block& team_)
      : front(front_), team(team_), end(front_.end(0)), is_own(team.rank == 0) {
    if (!is_own) next_tile();
  }
  DEVICE bool more() const { return t < front.tiles(); }
  DEVICE Line line() const { return front.column(s, p); }
  DEVICE void next() {
    if (++p >= end) next_tile();
  }
  DEVICE void next_tile() {
    if (!is_own && t >= 0 && s == t + 1 && s < front.tiles()) {
      is_own = true;
    } else {
      is_own = false;
      s = t < 0 ? front.all_tiles() : s + Block::size;
      while (s >= front.all_tiles()) {
        if (++t >= front.tiles()) return;
        s = first_from(team, t + 1);
      }
    }
    const int u = is_own ? s : t;
    p = u * S, end = front.end(u);
  }
};

// Lines of rows i and tiles s of pivots: rows below first, for each tile of this member; then for t = .., 1 rows of
// tile t, the last first, and each s < t of this member; the tile's own rows where it is the next.
struct BackwardLines {
  const SolvedFront& front;
  Block team;
  int t, s, i, stop = 0;
  bool is_below, is_own = false;

  DEVICE BackwardLines(const SolvedFront& front_, const Block& team_)
      : front(front_), team(team_), t(front_.tiles()), s(team.rank), i(front_.W) {
    is_below = front.H > 0 && s < front.tiles();
    if (!is_below) begin_pivots();
  }
  DEVICE bool more() const { return is_below || t > 0; }
  DEVICE Line line() const { return front.row(i, s); }
  DEVICE void next() {
    if (!is_below) {
      if (--i < stop) next_tile();
    } else if (++i >= front.R) {
      i = front.W, s += Block::size;
      is_below = s < front.tiles();
      if (!is_below) begin_pivots();
    }
  }
  DEVICE void begin_pivots() {
    s = t - 1, is_own = team.rank == s % Block::size;
    if (is_own) i = front.W - 1, stop = s * S;
    else next_tile();
  }
  DEVICE void next_tile() {
    if (!is_own && t < front.tiles() && s == t - 1) {
      is_own = true, i = front.end(s) - 1, stop = s * S;
      return;
    }
    is_own = false;
    s = t == front.tiles() ? -1 : s - Block::size;
    while (s < 0) {
      if (--t < 1) return;
      s = last_until(team, t - 1);
    }
    i = front.end(t) - 1, stop = t * S;
  }
};

// `ring`: LINES_AHEAD lines of this lane.
template <class Lines> struct EntriesAhead {
  Lines lines;
  Scalar* ring;
  int place = 0;  // of the next line that is taken

  DEVICE EntriesAhead(const Lines& lines_, Scalar* ring_) : lines(lines_), ring(ring_) {
#pragma unroll 1
    for (int k = 0; k < LINES_AHEAD; k++) fetch(k);
#pragma unroll 1
    for (Lines later = lines; later.more(); later.next()) {
      const Line line = later.line();
      for_all<S>([&](int r) {
        if (r < line.count) prefetch(line.at(r));
      });
    }
  }
  DEVICE void fetch(int k) {
    if (lines.more()) {
      const Line line = lines.line();
      for_all<S>([&](int r) {
        const bool is_present = r < line.count;
        copy_async<sizeof(Scalar)>(ring + (k * S + r) * WARP_SIZE, line.at(is_present ? r : 0),
                                   is_present ? sizeof(Scalar) : 0);
      });
      lines.next();
    }
    copy_commit();
  }
  DEVICE void take(Rows& e, const Line&) {
    copy_wait<LINES_AHEAD - 1>();
    for_all<S>([&](int r) { e[r] = ring[(place * S + r) * WARP_SIZE]; });
    fetch(place);
    place = place + 1 == LINES_AHEAD ? 0 : place + 1;
  }
};
