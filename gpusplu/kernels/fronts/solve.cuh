// Shared by the solve kernels of phases 0 to 2: tickets, waiting, and the sums of the children's contributions.
//
// A ticket is SOLVE_SLOTS consecutive records: one front that the whole block solves (then all of them are the same
// record), or up to SOLVE_SLOTS fronts of a warp each. Forward, tickets count up, children come before their parent,
// and a front waits until its children have arrived; backward they count down and a front waits for its parent. A front
// waits only for a lower ticket (or another warp of its own), so one resident block suffices.
//
// Right-hand sides are solved in groups of NV (1 or SEVERAL), a ticket being worth one group. Work vector (plan order)
// and vector arena hold the NV values of a place together. The plan and the factor of a front do not depend on other
// fronts, so their loads are under way before the front waits.
//
// One right-hand side: values go from front to front as packets (common/exchange.cuh), and each block waits for those
// that it needs. The tag counts solves, in counters[SOLVES]. Several: counters, after the SOLVE_CONTROL words, hold per
// group and front how many children have arrived, then per group and front whether it is solved; forward clears the
// counters of backward and vice versa. Counters, control and packets are zero at the start of the first solve.
//
// A solve can come in parts (core/plan/fronts/solve_schedule.hpp), each with its own launches, slots and `control`.
#pragma once
#include "common/exchange.cuh"
#include "shared/solve.hpp"

constexpr int SEVERAL = solve_rhs_group(sizeof(Scalar));  // right-hand sides of a group where there are several

struct SolveArgs {
  const SolveFront* slots;
  int tickets;
  int groups;          // of NV right-hand sides
  int group_capacity;  // of `counters`
  int front_count;
  const int* below;
  const int* chunk_ptr;  // of every local row of every front; a front's rows begin at first + below
  const GatherChunk* chunks;
  const int *perm_in, *perm_out;
  const double *scale_in, *scale_out;  // null: ones
  const Scalar* factor;
  const Scalar* b;
  Scalar* x;
  long long ld;  // of b and x
  int n, nrhs;
  int conjugate;    // b as it is read and x as it is written
  int places;       // of the vector arena
  Scalar* work;     // groups x n x NV
  Scalar* vectors;  // groups x places x NV
  unsigned* counters;
  unsigned* control;  // tickets of this part
  int ends_solve;     // backward: no launch of this solve comes after this one
  unsigned long long*
      packets;  // n values by plan position, then `places`; several right-hand sides: groups x n x NV; WORDS words each
};

// The NV values of a row, here in registers and there in shared memory.
template <int NV> DEVICE void clear(Scalar (&v)[NV]) {
  for_all<NV>([&](int j) { v[j] = Scalar(0); });
}
template <int NV> DEVICE void share(Scalar* to, const Scalar (&v)[NV], bool some = true) {  // zeros if there is none
  for_all<NV>([&](int j) { to[j] = some ? v[j] : Scalar(0); });
}
template <int NV> DEVICE void take(Scalar (&v)[NV], const Scalar* from) {
  for_all<NV>([&](int j) { v[j] = from[j]; });
}
template <int NV> DEVICE void load_values(const Scalar* from, Scalar (&v)[NV]) {  // of global memory
  for_all<NV>([&](int j) { v[j] = load_l2(from + j); });
}
template <int NV> DEVICE void store_values(Scalar* to, const Scalar (&v)[NV]) {
  for_all<NV>([&](int j) { store_l2(to + j, v[j]); });
}
template <int NV> DEVICE void accumulate(Scalar (&sum)[NV], const Scalar* v) {
  for_all<NV>([&](int j) { sum[j] += v[j]; });
}
template <int NV> DEVICE void subtract(Scalar* from, const Scalar* v) {
  for_all<NV>([&](int j) { from[j] -= v[j]; });
}

// NV right-hand sides in one direction of a solve: their values at plan position `at`, and at a place of the arena.
template <int NV> struct Group {
  const SolveArgs& args;
  int number;
  unsigned tag;  // of the packets

  DEVICE unsigned* arrivals(int front) const {
    return args.counters + SOLVE_CONTROL + (long long)number * args.front_count + front;
  }
  DEVICE unsigned* solved(int front) const {
    return args.counters + SOLVE_CONTROL + (long long)(args.group_capacity + number) * args.front_count + front;
  }
  DEVICE const Scalar* factor(const SolveFront& f) const { return args.factor + f.factor; }
  DEVICE Scalar* work(int at) const { return args.work + (long long)number * args.n * NV + (long long)at * NV; }
  DEVICE Scalar* vectors(int place) const {
    return args.vectors + (long long)number * args.places * NV + (long long)place * NV;
  }
  DEVICE Word* packet(int at, int side = 0) const {  // one right-hand side is one group
    return args.packets + (NV == 1 ? at : ((long long)number * args.n + at) * NV + side) * WORDS;
  }
  DEVICE Word* place_packet(int place) const { return args.packets + ((long long)args.n + place) * WORDS; }

  // b and x of the pivot at `at`, in the caller's numbering.
  DEVICE void load_b(int at, Scalar (&y)[NV]) const {
    const int row = __ldg(args.perm_in + at);
    const Real scale = args.scale_in ? (Real)__ldg(args.scale_in + row) : (Real)1;
    for_all<NV>([&](int j) {
      const Scalar b = args.b[min(number * NV + j, args.nrhs - 1) * args.ld + row];
      y[j] = scale * (args.conjugate ? conj(b) : b);
    });
  }
  DEVICE void store_one_x(int at, int side, Scalar x) const {
    const int row = __ldg(args.perm_out + at), column = number * NV + side;
    const Real scale = args.scale_out ? (Real)__ldg(args.scale_out + row) : (Real)1;
    if (column < args.nrhs) args.x[column * args.ld + row] = scale * (args.conjugate ? conj(x) : x);
  }
  DEVICE void store_x(int at, const Scalar (&x)[NV]) const {
    for_all<NV>([&](int j) { store_one_x(at, j, x[j]); });
  }

  // x, given to the fronts below and taken by them.
  DEVICE void give_x(int at, const Scalar (&x)[NV]) const {
    if constexpr (NV == 1) send_value(packet(at), x[0], tag);
    else store_values<NV>(work(at), x);
  }
  DEVICE void take_x(int at, Scalar (&x)[NV]) const {
    if constexpr (NV == 1) x[0] = wait_value(packet(at), tag);
    else load_values<NV>(work(at), x);
  }
  // Local row `row` after forward: a pivot, to the work vector, or a contribution to a row of the parent.
  DEVICE void give_row(const SolveFront& f, int row, const Scalar (&y)[NV]) const {
    const int place = f.below + row - f.width;
    if (row < f.width) store_values<NV>(work(f.first + row), y);
    else if (row >= f.rows) return;
    else if constexpr (NV == 1) send_value(place_packet(place), y[0], tag);
    else store_values<NV>(vectors(place), y);
  }
};

// Calls solve(position, group) for `count` tickets of every group, forward or backward. The words of both directions
// are neighbours; each clears the other's. The backward launch that ends the solve counts it, by the block that takes
// the first ticket past the end: blocks that still work have read the number, later ones do nothing.
template <bool FORWARD, int NV, class Solve>
DEVICE void for_tickets(const SolveArgs& args, int forward_ticket, int count, Solve&& solve) {
  allow_next_kernel(), wait_for_previous_kernel();
  unsigned* const control = args.control + forward_ticket;
  const unsigned tag = 2 * *(const volatile unsigned*)(args.counters + SOLVES) + (FORWARD ? 1 : 2);
  for (;;) {
    const int ticket = block_ticket(control + (FORWARD ? 0 : 1));
    if (!FORWARD && ticket == count * args.groups && args.ends_solve && threadIdx.x == 0)
      args.counters[SOLVES] = tag / 2;
    if (ticket >= count * args.groups) return;
    if (ticket == 0 && threadIdx.x == 0) control[FORWARD ? 1 : 0] = 0;
    const int position = ticket / args.groups;
    solve(position, Group<NV>{args, ticket - position * args.groups, tag});
  }
}

template <int TEAM> DEVICE void team_barrier() {
  if (TEAM == 32) __syncwarp();
  else __syncthreads();
}
template <int TEAM> DEVICE int team_rank() { return TEAM == 32 ? threadIdx.x & 31 : threadIdx.x; }

// Waits until `*flag` is at least `value`; the team sees what was written before it was set.
template <int TEAM> DEVICE void wait_until(const unsigned* flag, unsigned value) {
  if (team_rank<TEAM>() == 0)
    while (load_acquire(flag) < value) {
    }
  team_barrier<TEAM>();
}

// Several right-hand sides: until all children of the front have arrived, which makes it unsolved for the backward
// solve, or backward until its parent is solved.
template <bool FORWARD, int TEAM, int NV> DEVICE void wait_for(const Group<NV>& group, const SolveFront& f) {
  if constexpr (NV == 1) return;
  if (!FORWARD) {
    if (f.parent >= 0) wait_until<TEAM>(group.solved(f.parent), 1u);
    return;
  }
  unsigned* count = group.arrivals(f.front);
  if (f.children) wait_until<TEAM>(count, (unsigned)f.children);
  if (team_rank<TEAM>() == 0) *count = 0, *group.solved(f.front) = 0;
}
// The writes of the front are complete: the parent may continue, or backward the children.
template <bool FORWARD, int TEAM, int NV> DEVICE void signal(const Group<NV>& group, const SolveFront& f) {
  if constexpr (NV == 1) return;
  team_barrier<TEAM>();
  if (team_rank<TEAM>() > 0) return;
  if (!FORWARD) store_release(group.solved(f.front), 1u);
  else if (f.parent >= 0) add_acquire_release(group.arrivals(f.parent), 1u);
}

// Sums every v[k] over the warp; lane l ends with that of k = l / (32 / COUNT) in v[0].
template <int COUNT, int NV, int HALF = COUNT / 2> DEVICE void fold_columns(Scalar (&v)[COUNT][NV]) {
  constexpr int mask = HALF * (32 / COUNT);
  const bool upper = threadIdx.x & mask;
  for_all<HALF, NV>([&](int k, int j) {
    const Scalar give = upper ? v[k][j] : v[k + HALF][j], keep = upper ? v[k + HALF][j] : v[k][j];
    v[k][j] = keep + shuffle_xor(give, mask);
  });
  if constexpr (HALF > 1) fold_columns<COUNT, NV, HALF / 2>(v);
  else for_all<NV>([&](int j) { v[0][j] = warp_sum<32 / COUNT>(v[0][j]); });
}

// Sums of the children's contributions. Every row has a run of chunks, each of up to 4 places; one thread sums each
// chunk, then the row's thread, or its warp where they are many, sums the chunks. The plan fixes the order of all
// additions. A thread has ROWS rows, TEAM apart.
template <int TEAM, int NV, int ROWS = 1> struct Gather {
  static constexpr int SCALARS = TEAM * NV, MANY = 8;
  const Group<NV>& group;
  int first, count;            // chunks
  int begin[ROWS], end[ROWS];  // those of this thread's rows, after the first one
  int4 ahead;                  // this thread's chunk of the next window of TEAM chunks

  // This thread's first row is `row` of chunk_ptr, and the front's last one row + rows - 1.
  DEVICE Gather(const Group<NV>& group_, int first_, int count_, long long row, int rows)
      : group(group_), first(first_), count(count_) {
    for_all<ROWS>([&](int q) { begin[q] = end[q] = 0; });
    if (count == 0) return;
    load_window(0);
    const int* chunk_ptr = group.args.chunk_ptr + row;
    for_all<ROWS>([&](int q) {
      if (q * TEAM >= rows) return;
      begin[q] = __ldg(chunk_ptr + q * TEAM) - first;
      end[q] = __ldg(chunk_ptr + q * TEAM + 1) - first;
    });
  }
  // `row`: the first local one of this thread.
  DEVICE Gather(const Group<NV>& group_, const SolveFront& f, int row)
      : Gather(group_, f.gather_begin, f.gather_count, (long long)f.first + f.below + row, f.rows - row) {}

  DEVICE void load_window(int window) {
    ahead = __ldg((const int4*)group.args.chunks + first + min(window + team_rank<TEAM>(), count - 1));
  }
  DEVICE void add(Scalar* partial, Scalar (&y)[NV]) {
    Scalar row[1][NV];
    take<NV>(row[0], y);
    add(partial, row);
    take<NV>(y, row[0]);
  }
  // The values at the places of `ahead`, zero for empty ones.
  DEVICE void load_places(Scalar (&v)[4][NV]) {
    const int places[4] = {ahead.x, ahead.y, ahead.z, ahead.w};  // the first always is one
    if constexpr (NV == 1) {
      const Word* from[4];
      Scalar one[4];
      for_all<4>([&](int k) { from[k] = group.place_packet(places[k] < 0 ? places[0] : places[k]); });
      wait_values<4>(from, group.tag, one);
      for_all<4>([&](int k) { v[k][0] = one[k]; });
    } else {
      for_all<4>([&](int k) { load_values<NV>(group.vectors(max(places[k], 0)), v[k]); });
    }
    for_all<4>([&](int k) {
      if (places[k] < 0) clear<NV>(v[k]);
    });
  }
  // y += the sums of this thread's rows; `partial`: SCALARS
  DEVICE void add(Scalar* partial, Scalar (&y)[ROWS][NV]) {
    const int rank = team_rank<TEAM>(), lane = rank & 31;
    for (int window = 0; window < count; window += TEAM) {
      Scalar v[4][NV];
      load_places(v);
      if (window + TEAM < count) load_window(window + TEAM);
      for_all<NV>([&](int j) { partial[rank * NV + j] = (v[0][j] + v[1][j]) + (v[2][j] + v[3][j]); });
      team_barrier<TEAM>();
      for_all<ROWS>([&](int i) {
        const int from = min(max(begin[i] - window, 0), TEAM), to = min(max(end[i] - window, 0), TEAM);
        const bool many = to - from > MANY;
        if (!many)
          for (int c = from; c < to; c++) accumulate<NV>(y[i], partial + c * NV);
        for (unsigned rows = __ballot_sync(~0u, many); rows; rows &= rows - 1) {
          const int owner = __ffs(rows) - 1, last = shuffle(to, owner);
          Scalar s[NV];
          clear<NV>(s);
          for (int c = shuffle(from, owner) + lane; c < last; c += 32) accumulate<NV>(s, partial + c * NV);
          for_all<NV>([&](int j) {
            s[j] = warp_sum(s[j]);
            if (lane == owner) y[i][j] += s[j];
          });
        }
      });
      team_barrier<TEAM>();
    }
  }
};

// Forward until the children's contributions to local row `row` have been added to b, or to zero below the pivots;
// load() requests what the caller needs next.
template <int TEAM, int NV, class Load> DEVICE void start_forward(const Group<NV>& group, const SolveFront& f, int row,
                                                                  Scalar* partial, Scalar (&y)[NV], Load&& load) {
  Gather<TEAM, NV> gather(group, f, row);
  group.load_b(f.first + min(row, f.width - 1), y);
  if (row >= f.width) clear<NV>(y);
  load();
  wait_for<true, TEAM>(group, f);
  gather.add(partial, y);
}
