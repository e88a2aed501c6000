// Forward and backward solve with L + U of a column engine, without synchronization between blocks: one launch.
//
//   N: L y = Dr b by rows of L, U z = y by rows of U, x = Dc z      T, H: U^T y = Dc b by columns of U, L^T z = y, ..
// (right-hand side and solution permuted to and from the order of the pivots). A warp owns an unknown and gathers its
// terms, so sums are in a fixed order: bitwise repeatable. Blocks take groups of unknowns (columns/column_groups.cuh)
// by tickets, first those of the forward sweep, then the same groups in reverse. Unknowns are packets
// (common/exchange.cuh), value and readiness in one word: in shared memory inside a group, in global memory between
// groups.
//
// Grid: at most as many blocks as are resident together; block: COLUMN_THREADS; shared memory: 16 bytes, and the
// packets of the largest group. The tag of packets in global memory is the epoch, in shared memory the ticket.
#include "columns/column_groups.cuh"
#include "common/exchange.cuh"

struct ColumnSolveArgs {
  ColumnArrays columns;
  const long long* row_diag;  // where the diagonal lies in a row
  ColumnTickets tickets;      // two for every group and NV right-hand sides
  int group_count;
  int most_columns;  // of a group
  const Scalar* factor;
  const int *perm_in, *perm_out;
  const double *scale_in, *scale_out;  // by A's rows and columns; null: ones
  const Scalar* b;
  Scalar* x;
  long long ld;
  int nrhs, conjugate;
  unsigned long long* packets;  // of both sweeps: n NV values each, for every NV right-hand sides
  // Another solver solves for unknowns from here on between the sweeps, in `trailing`: n - division rows, nrhs columns.
  // `row_diag` and `diag` of theirs are where the trailing block begins. n: there are none.
  int division;
  Scalar* trailing;
};

namespace {

template <int NV, bool TRANSPOSED> struct Sweep {
  static constexpr int TOGETHER = NV == 1 ? 4 : 1;  // entries of a row that a lane loads at a time
  const ColumnSolveArgs& args;
  bool backward;
  int rhs;         // first right-hand side
  int first, end;  // unknowns of the group
  unsigned tag, group_tag;
  Word* packets;  // of the sweep

  // Entries of a row that a lane has.
  struct Entries {
    int unknown[TOGETHER];
    Scalar value[TOGETHER];
  };

  DEVICE Word* group_packets(int unknown) const {
    return (Word*)(shared_memory + sizeof(ColumnControl)) + (unknown - first) * (NV * WORDS);
  }
  DEVICE Word* packet_of(int unknown) const { return packets + (long long)unknown * (NV * WORDS); }
  // The values of an unknown, if all of them have arrived.
  template <bool SHARED = false> DEVICE bool take_packets(const Word* from, unsigned tag_, Scalar (&v)[NV]) const {
    bool all = true;
#pragma unroll  // no lambda: it costs registers
    for (int c = 0; c < NV; c++) {
      Packet packet;
      packet.load<SHARED>(from + c * WORDS);
      all = all && packet.has(tag_);
      v[c] = packet.value();
    }
    return all;
  }
  DEVICE bool take(int unknown, Scalar (&v)[NV]) const {
    if (unknown < first || unknown >= end) return take_packets(packet_of(unknown), tag, v);
    return take_packets<true>(group_packets(unknown), group_tag, v);
  }

  // From place p of the row or column on, which is before `last`; values after places, so that others load in between.
  DEVICE void load_places(Entries& entries, long long (&place)[TOGETHER], long long p, long long last) const {
    const ColumnArrays& m = args.columns;
    for_all<TOGETHER>([&](int r) {
      const long long at = min(p + (threadIdx.x & 31) + 32 * r, last - 1);
      entries.unknown[r] = __ldg((TRANSPOSED ? m.row : m.col) + at);
      place[r] = TRANSPOSED ? at : __ldg(m.place + at);
    });
  }
  DEVICE void load_values(Entries& entries, const long long (&place)[TOGETHER]) const {
    for_all<TOGETHER>([&](int r) { entries.value[r] = load_constant(args.factor + place[r]); });
  }

  // sum -= entries times unknowns, of which a lane has those of its entries before `last`.
  DEVICE void subtract(const Entries& entries, long long p, long long last, Scalar (&sum)[NV]) const {
    Scalar v[TOGETHER][NV];
    unsigned some = 0;
    for_all<TOGETHER>([&](int r) { some |= p + (threadIdx.x & 31) + 32 * r < last ? 1u << r : 0u; });
    for (unsigned missing = some; __any_sync(~0u, missing);) {
      before_looking_again(packets, false);  // no pause; the emulator lets other warps run
#pragma unroll
      for (int r = 0; r < TOGETHER; r++)
        if (missing >> r & 1 && take(entries.unknown[r], v[r])) missing &= ~(1u << r);
    }
    for_all<TOGETHER>([&](int r) {
      if (!(some >> r & 1)) return;
      const Scalar a = args.conjugate ? conj(entries.value[r]) : entries.value[r];
      for_all<NV>([&](int c) { sum[c] = mul_sub(a, v[r][c], sum[c]); });
    });
  }

  DEVICE Scalar* trailing_entry(int k, int column) const {
    return args.trailing + (k - args.division) + (long long)column * (args.columns.n - args.division);
  }

  // The value of unknown k after the forward sweep, or after the solve with the trailing block.
  DEVICE void start_backward(int k, Scalar (&v)[NV]) const {
    if (k >= args.division) {
      for_all<NV>([&](int c) { v[c] = *trailing_entry(k, min(rhs + c, args.nrhs - 1)); });
      return;
    }
    const Word* from = packet_of(k) - (long long)args.columns.n * (NV * WORDS);
    while (!take_packets(from, tag, v)) before_looking_again(from, false);
  }

  DEVICE void give(int k, int at, Real scale, const Scalar (&v)[NV]) const {
    if (!backward && k >= args.division) {
      for_all<NV>([&](int c) {
        if (rhs + c < args.nrhs) *trailing_entry(k, rhs + c) = v[c];
      });
      return;
    }
    for_all<NV>([&](int c) { Packet(v[c], group_tag).store<true>(group_packets(k) + c * WORDS); });
    for_all<NV>([&](int c) { send_value(packet_of(k) + c * WORDS, v[c], tag); });
    if (!backward) return;
    for_all<NV>([&](int c) {
      if (rhs + c < args.nrhs) args.x[at + (rhs + c) * args.ld] = scale * v[c];
    });
  }

  DEVICE void run(int k) const {
    const ColumnArrays& m = args.columns;
    const int lane = threadIdx.x & 31;
    const long long* ptr = TRANSPOSED ? m.col_ptr : m.row_ptr;
    const long long diagonal = __ldg((TRANSPOSED ? m.diag : args.row_diag) + k);
    const bool is_trailing = k >= args.division, divides = TRANSPOSED != backward && !is_trailing;
    const long long from = backward ? diagonal + 1 : __ldg(ptr + k);
    const long long last = !backward ? diagonal : is_trailing ? from : __ldg(ptr + k + 1);
    const long long pivot_place = TRANSPOSED || !divides ? diagonal : __ldg(m.diag + k);
    const int at = __ldg((backward ? args.perm_out : args.perm_in) + k);
    const double* scales = backward ? args.scale_out : args.scale_in;
    Entries entries, more;
    long long place[TOGETHER];
    if (from < last) load_places(entries, place, from, last);
    const Real scale = scales ? (Real)__ldg(scales + at) : Real(1);
    Scalar sum[NV], pivot(1);
    for_all<NV>([&](int c) { sum[c] = backward ? Scalar(0) : args.b[at + min(rhs + c, args.nrhs - 1) * args.ld]; });
    if (divides) pivot = load_constant(args.factor + pivot_place);
    if (from < last) load_values(entries, place);
    if (backward && lane == 0) start_backward(k, sum);
    for_all<NV>([&](int c) { sum[c] = lane == 0 ? backward ? sum[c] : scale * sum[c] : Scalar(0); });
    const Scalar inverse = divides ? reciprocal(args.conjugate ? conj(pivot) : pivot) : pivot;
    for (long long p = from; p < last; p += 32 * TOGETHER) {
      if (p > from) load_values(entries, place);
      if (p + 32 * TOGETHER < last) load_places(more, place, p + 32 * TOGETHER, last);
      subtract(entries, p, last, sum);
      for_all<TOGETHER>([&](int r) { entries.unknown[r] = more.unknown[r]; });
    }
    for_all<NV>([&](int c) { sum[c] = warp_sum(sum[c]); });
    if (lane == 0) {
      for_all<NV>([&](int c) { sum[c] = sum[c] * inverse; });
      give(k, at, scale, sum);
    }
    __syncwarp();
  }
};

template <int NV, bool TRANSPOSED> DEVICE void solve_columns(const ColumnSolveArgs& args) {
  ColumnControl& control = *(ColumnControl*)shared_memory;
  Word* group_packets = (Word*)(shared_memory + sizeof(ColumnControl));
  const int rhs_groups = (args.nrhs + NV - 1) / NV, n = args.columns.n;
  for (int w = threadIdx.x; w < args.most_columns * (NV * WORDS); w += blockDim.x) group_packets[w] = 0;
  for (begin_tickets(args.tickets, control); next_ticket(args.tickets, control);) {
    const int step = control.ticket / rhs_groups, rhs_group = control.ticket % rhs_groups;
    const bool backward = step >= args.group_count;
    const int2 range = args.tickets.groups[backward ? 2 * args.group_count - 1 - step : step];
    const Sweep<NV, TRANSPOSED> sweep = {
        args,    backward,      rhs_group * NV,      range.x,
        range.y, control.epoch, control.ticket + 1u, args.packets + (2ll * rhs_group + backward) * n * (NV * WORDS)};
    for (;;) {
      const int c = next_column(control);
      if (c >= range.y - range.x) break;
      sweep.run(backward ? range.y - 1 - c : range.x + c);
    }
  }
  end_tickets(args.tickets, control);
}

}  // namespace

// One right-hand side, or four at a time.
constexpr int RESIDENT = is_complex ? 1 : COLUMN_BLOCKS;

GPUSPLU_KERNEL(solve_columns_1, ColumnSolveArgs, COLUMN_THREADS, RESIDENT) { solve_columns<1, false>(args); }
GPUSPLU_KERNEL(solve_columns_4, ColumnSolveArgs, COLUMN_THREADS, RESIDENT) { solve_columns<RHS_GROUP, false>(args); }
GPUSPLU_KERNEL(solve_columns_transposed_1, ColumnSolveArgs, COLUMN_THREADS, RESIDENT) { solve_columns<1, true>(args); }
GPUSPLU_KERNEL(solve_columns_transposed_4, ColumnSolveArgs, COLUMN_THREADS, RESIDENT) {
  solve_columns<RHS_GROUP, true>(args);
}
