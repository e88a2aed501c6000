// Synchronization-free left-looking LU refactorization on a static pattern, owner computes (Zhao, Wen, Luo, Jin, Liu
// and Zhou, SFLU, section III-C, algorithm 2: busy waiting for the dependencies of a column instead of level barriers).
//
// Differences from the paper: a block owns a group of neighbouring columns, a whole small subtree or a chain
// (core/plan/columns/groups.hpp), and keeps their values in shared memory, where its warps, a column each, hand
// finished columns to each other; only transfers between groups go through the second-level cache. Groups are taken by
// tickets in an order in which no block waits for a higher ticket, so the kernel cannot hang for any scheduling of
// blocks; columns are published by release and acquire, and marked by the number of the launch instead of being
// cleared. Places of updates come from the plan's maps, or are searched once for neighbouring columns with the same
// rows.
//
// A warp: its column's entries of A, then for every j with U(j, k) != 0, ascending: wait for column j,
// column k -= L(:, j) U(j, k); then the pivot. A pivot below `tiny` is replaced by one of that size and its sign.
// A whole block processes a long column (columns/long_columns.cuh): after the part that its warps share, one warp goes
// on as above. Grid: at most as many blocks as are resident together; block: COLUMN_THREADS; shared memory: 16 bytes,
// 16 scalars, those of the largest group that fits, a word a column, and without maps 16 bits for every place that a
// warp keeps. Sums are in the order of the rows of U, in long columns in that of the plan: bitwise repeatable.
#pragma once
#include "columns/long_columns.cuh"
#include "columns/trailing_columns.cuh"

namespace {

constexpr int IN_FLIGHT = 4, HALF = IN_FLIGHT / 2;  // loads of a lane that are under way together

// Of shared memory: a scalar a warp, values of the group.
DEVICE Scalar* warp_scalars() { return (Scalar*)(shared_memory + sizeof(ColumnControl)); }
DEVICE Scalar* group_values() { return warp_scalars() + COLUMN_WARPS; }

struct Group {
  int first, end;   // columns
  long long base;   // place of the first one
  unsigned* flags;  // finished columns of the group
  unsigned epoch;
};

// L(:, j) as the update of a column needs it. Few registers: with more the compiler moves loads under way from one to
// another, and waits for them.
template <bool MAPS> struct Source {
  // Its place, from the group's first one on: matrices with maps have less than 2^31 entries, and as many places in the
  // maps.
  Choice<MAPS, int, long long> lower;
  int map;  // where the 16-bit map has its places
  int column, count;
  int follows;  // the entry above in U is that of j - 1, and their rows are the same
  int entry;    // of U in the column, where some are left out
};

// An entry of L(:, j) on its way to column k. Loads are unconditional, and nothing is computed from the loaded values
// before it is needed: a warp waits for a load where its value is first used, be it to leave it as it was. Loads
// through the read-only cache are avoided here: the compiler moves those down to where they are used.
struct Term {
  Scalar value;
  int place;  // in column k, from the map
  bool some;
};

// MAPS: places come from the 16-bit map. Else they are searched and kept, by their distance from the end of L(:, j), as
// long as the columns j of U that follow have the same rows. LISTED: only some entries of U are left to be applied,
// with maps.
template <bool IN_SHARED, bool MAPS, bool LISTED = false> struct Column {
  using Source = ::Source<MAPS>;
  const SfluArgs& args;
  const Group& group;
  int k, lane;
  int begin, diagonal, end;  // places relative to the group's
  const int* list;           // of entries of U
  int uppers;                // that are applied

  DEVICE Column(const SfluArgs& args_, const Group& group_, int k_)
      : args(args_), group(group_), k(k_), lane(threadIdx.x & 31) {
    const ColumnArrays& c = args.columns;
    begin = (int)(__ldg(c.col_ptr + k) - group.base);
    diagonal = (int)(__ldg(c.diag + k) - group.base);
    end = (int)(__ldg(c.col_ptr + k + 1) - group.base);
    uppers = diagonal - begin;
  }
  DEVICE Column(const SfluArgs& args_, const Group& group_, const LongColumn& part)
      : Column(args_, group_, group_.first) {
    list = args.longs.rest + part.rest;
    uppers = part.rest_count;
  }

  // Values of the group.
  DEVICE Scalar* work() const { return IN_SHARED ? group_values() : args.factor + group.base; }

  // By `threads` threads.
  DEVICE void assemble(int thread, int threads) const {
    assemble_places<int>(args, group.base, begin + thread, end, threads, work());
  }

  // Number i of the entries of U that are applied.
  DEVICE Source source_of(int i) const {
    const ColumnArrays& c = args.columns;
    Source s = {0, 0, 0, 0, 0, 0};
    if (i >= uppers) return s;
    const int u = LISTED ? __ldg(list + i) : i;
    s.entry = u;
    const int* row = c.row + group.base + begin + u;
    s.column = __ldg(row);
    const long long lower = __ldg(c.diag + s.column) + 1;
    s.count = (int)(__ldg(c.col_ptr + s.column + 1) - lower);
    if (!MAPS) s.follows = u > 0 && __ldg(row - (u > 0)) == s.column - 1 && __ldg(args.follows + s.column);
    if (s.count == 0) return s;  // addresses stay inside
    if (MAPS) s.map = (int)__ldg(c.map_ptr + __ldg(c.u_ptr + k) + u);
    s.lower = lower - group.base;
    return s;
  }

  DEVICE bool finished(int j) const {
    if (j >= group.first) return load_acquire_block(group.flags + (j - group.first)) != 0;
    return load_relaxed(args.done + j) == group.epoch && load_acquire(args.done + j) == group.epoch;
  }

  DEVICE Source source_from(const Source& s, int from) const {
    return {__shfl_sync(~0u, s.lower, from), MAPS ? shuffle(s.map, from) : 0, 0, shuffle(s.count, from), 0, 0};
  }
  // Entry of U of which lane t has the source.
  DEVICE int entry_of(const Source& own, int u0, int t) const { return LISTED ? shuffle(own.entry, t) : u0 + t; }

  // Entry e of L(:, j), if there is one.
  DEVICE void load_place(Term& term, const Source& s, int e) const {
    term.some = e < s.count;
    if (MAPS) term.place = load_short(args.columns.map + (s.map + max(min(e, s.count - 1), 0)));
  }
  // Values made visible by the acquire of `finished`: plain loads.
  DEVICE void load_value(Term& term, const Source& s, int e) const {
    const Scalar* values = IN_SHARED && s.lower >= 0 ? work() : args.factor + group.base;
    term.value = values[s.lower + max(min(e, s.count - 1), 0)];
  }

  // Without maps: where a warp keeps places.
  DEVICE unsigned short* kept() const {
    return (unsigned short*)(group.flags + flag_words(args.flags)) + (threadIdx.x >> 5) * args.places;
  }
  DEVICE const int* rows_of(const Source& s) const { return args.columns.row + group.base + s.lower; }
  // Place of entry e of L(:, j), the rows of which begin at `rows`.
  DEVICE int search(const int* rows, int count, int e, int above) const {
    const int last = end - begin - (count - e);
    return find_row(args.columns.row + group.base + begin, __ldg(rows + e), above + 1, last);
  }
  // Before the update by the column that lane t has; the places of the one before are not needed any more.
  DEVICE void find_places(const Source& own, int u0, int t) const {
    if (MAPS) return;
    const Source s = source_from(own, t);
    const bool kept_before = __shfl_sync(~0u, own.follows, t) && s.count < args.places;
    if (kept_before || s.count > args.places) return;
    unsigned short* to = kept();
    for (int e = lane; e < s.count; e += 32)
      to[s.count - 1 - e] = (unsigned short)search(rows_of(s), s.count, e, u0 + t);
    __syncwarp();
  }

  // Entry e of L(:, j), of which lane t has the source.
  DEVICE void apply(const Term& term, const Source& own, int count, int e, int u0, int t, Scalar x) const {
    int place = term.place;
    if (!MAPS && count > args.places) {
      const int* rows = rows_of(source_from(own, t));
      if (term.some) place = search(rows, count, e, u0 + t);
    } else if (!MAPS && term.some) {
      place = kept()[count - 1 - e];
    }
    if (!term.some) return;
    Scalar* to = work() + begin + place;
    *to = mul_sub(term.value, x, *to);
  }

  DEVICE void update() const {
    for (int u0 = 0; u0 < uppers; u0 += 32) {
      const Source own = source_of(u0 + lane);
      const int batch = min(32, uppers - u0);
      const bool all_short = __all_sync(~0u, own.count <= 32);
      bool mine = lane >= batch || finished(own.column);
      unsigned ready = __ballot_sync(~0u, mine);
      __syncwarp();
      for (int t = 0; t < batch;) {
        const int run = min((__ffs(~(ready >> t)) - 1) & 63, batch - t);
        if (!run) apply_awaited(own, u0, t, mine, ready);
        else if (MAPS && all_short) apply_short(own, u0, t, t + run);
        else apply_long(own, u0, t, t + run);
        t += max(run, 1);
      }
    }
  }

  // Columns that lanes t .. last - 1 have, of at most 32 entries each.
  DEVICE void apply_short(const Source& own, int u0, int t, int last) const {
    Term term[IN_FLIGHT];
    auto load = [&](Term& to, int from) {
      const Source s = source_from(own, min(from, last - 1));
      load_place(to, s, lane);
      load_value(to, s, lane);
    };
    for_all<IN_FLIGHT>([&](int r) { load(term[r], t + r); });
    for (;; t += IN_FLIGHT) {
#pragma unroll
      for (int r = 0; r < IN_FLIGHT; r++) {
        __syncwarp();
        if (t + r >= last) return;
        apply(term[r], own, 0, lane, u0, t + r, work()[begin + entry_of(own, u0, t + r)]);
        load(term[r], t + r + IN_FLIGHT);
      }
    }
  }

  // The same for any: a lane has some entries and loads the next.
  DEVICE void apply_long(const Source& own, int u0, int t, int last) const {
    Term term[2][HALF];
    int next = t, e = lane;  // the entry to load next
    Source s = source_from(own, t);
    Scalar x(0);
    auto load = [&](Term(&to)[HALF]) {
      for_all<HALF>([&](int r) { load_place(to[r], s, e + 32 * r), load_value(to[r], s, e + 32 * r); });
      e += 32 * HALF;
      if (e - lane < s.count) return;
      e = lane;
      s = source_from(own, min(++next, last - 1));
    };
    load(term[0]);
    int count = 0, at = lane;
    for (bool begins = true;;) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        if (begins) {
          __syncwarp();
          if (t == last) return;
          x = work()[begin + entry_of(own, u0, t)];
          at = lane;
          if (!MAPS) count = shuffle(own.count, t);
          find_places(own, u0, t);
        }
        const int of = t;
        begins = next != t;
        t = next;
        load(term[1 - half]);
        for_all<HALF>([&](int r) { apply(term[half][r], own, count, at + 32 * r, u0, of, x); });
        at += 32 * HALF;
      }
    }
  }

  // The column of lane t, which may not be finished: data that do not depend on it are loaded before the wait.
  DEVICE void apply_awaited(const Source& own, int u0, int t, bool& mine, unsigned& ready) const {
    const Source s = source_from(own, t);
    const Scalar x = work()[begin + entry_of(own, u0, t)];
    Term term[IN_FLIGHT];
    for_all<IN_FLIGHT>([&](int r) { load_place(term[r], s, lane + 32 * r); });
    find_places(own, u0, t);
    do {
      if (!mine) mine = finished(own.column);
      ready = __ballot_sync(~0u, mine);
    } while (!(ready >> t & 1));
    __syncwarp();
    for_all<IN_FLIGHT>([&](int r) { load_value(term[r], s, lane + 32 * r); });
    for (int e = lane;; e += 32 * IN_FLIGHT) {
      const bool more = e - lane + 32 * IN_FLIGHT < s.count;  // loads for nothing would be waited for
      for_all<IN_FLIGHT>([&](int r) {
        apply(term[r], own, s.count, e + 32 * r, u0, t, x);
        if (!more) return;
        load_place(term[r], s, e + 32 * (IN_FLIGHT + r));
        load_value(term[r], s, e + 32 * (IN_FLIGHT + r));
      });
      if (!more) break;
    }
    __syncwarp();
  }

  // The reciprocal of the pivot, which is replaced where it is too small.
  DEVICE Scalar pivot_reciprocal() const {
    const ColumnPivots pivots(args.tiny);
    const Scalar pivot = work()[diagonal];
    if (magnitude_bits(pivot) >= NAN_BITS && lane == 0) atomicAdd(&args.status->not_finite, 1);
    if (!pivots.small(pivot)) return reciprocal(pivot);
    __syncwarp();
    if (lane == 0) {
      atomicAdd(&args.status->n_perturbed, 1);
      atomicAdd(&args.status->n_tiny, 1);
      work()[diagonal] = pivots.replaced(pivot);
    }
    return pivots.inverse(pivot);
  }

  // Entries from .. last - 1 for all, by `threads` threads.
  DEVICE void store(int from, int last, int thread, int threads) const {
    if (!IN_SHARED) return;
    Scalar* to = args.factor + group.base;
    for (int p = from + thread; p < last; p += threads) store_l2(to + p, work()[p]);
  }

  // The pivot and the column of L; first for the group, then for all. No warp waits for the column of U.
  DEVICE void finish() const {
    const Scalar inverse = pivot_reciprocal();
    unsigned multiplier_bits = 0;
#pragma unroll 4
    for (int p = diagonal + 1 + lane; p < end; p += 32) {
      const Scalar x = work()[p] * inverse;
      work()[p] = x;
      multiplier_bits = max(multiplier_bits, magnitude_bits(x));
    }
    __syncwarp();
    if (lane == 0) store_release_block(group.flags + (k - group.first), 1);
    store(diagonal, end, lane, 32);
    __syncwarp();
    if (lane == 0) store_release(args.done + k, group.epoch);
    report_growth(multiplier_bits, args.status);
  }

  DEVICE void run() const {
    assemble(lane, 32);
    __syncwarp();
    update();
    finish();
    store(begin, diagonal, lane, 32);
  }

  // A long column, by all warps.
  DEVICE void run_long(const LongColumn& part) const {
    const int thread = threadIdx.x;
    assemble(thread, blockDim.x);
    const int* rows = args.columns.row + group.base;
    for (int i = thread; i < part.shallow_count; i += blockDim.x) {
      const int j = __ldg(rows + __ldg(args.longs.shallow + part.shallow + i));
      while (!finished(j)) continue;
    }
    __syncthreads();
    const LongSums sums = {args.longs, part, args.factor, work(), warp_scalars()};
    sums.solve_shallow();
    sums.sum_deep();
    if (thread < 32) update();
    __syncthreads();
    if (thread < 32) finish();
    else store(begin, diagonal, thread - 32, blockDim.x - 32);
  }
};

// TRAILING: the last tickets are columns of the trailing block.
template <bool MAPS, bool TRAILING> DEVICE void factor_groups(const SfluArgs& args) {
  ColumnControl& control = *(ColumnControl*)shared_memory;
  unsigned* flags = (unsigned*)(group_values() + args.capacity);
  begin_tickets(args.tickets, control);
  bool more = next_ticket(args.tickets, control);
  for (; more; more = next_ticket(args.tickets, control)) {
    const int2 range = args.tickets.groups[control.ticket];
    if (TRAILING && range.x >= args.division) break;
    const Group group = {range.x, range.y, __ldg(args.columns.col_ptr + range.x), flags, control.epoch};
    for (int c = threadIdx.x; c < group.end - group.first; c += blockDim.x) flags[c] = 0;
    __syncthreads();
    const bool in_shared = __ldg(args.columns.col_ptr + group.end) - group.base <= args.capacity;
    if (MAPS && args.longs.of_ticket) {
      const int index = __ldg(args.longs.of_ticket + control.ticket);
      if (index >= 0) {
        const LongColumn& part = args.longs.parts[index];
        if (in_shared) Column<true, true, true>(args, group, part).run_long(part);
        else Column<false, true, true>(args, group, part).run_long(part);
        continue;
      }
    }
    for (;;) {
      const int k = group.first + next_column(control);
      if (k >= group.end) break;
      if (in_shared) Column<true, MAPS>(args, group, k).run();
      else Column<false, MAPS>(args, group, k).run();
    }
  }
  for (; TRAILING && more; more = next_ticket(args.tickets, control)) {
    const int k = args.tickets.groups[control.ticket].x;
    TrailingColumn(args, control.epoch, k, shared_memory + sizeof(ColumnControl)).run();
  }
  end_tickets(args.tickets, control);
}

constexpr int RESIDENT = sizeof(Scalar) == 16 ? 1 : COLUMN_BLOCKS;

}  // namespace
