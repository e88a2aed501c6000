// Forward and backward solve with L + U of a column engine, without synchronization between blocks: one launch.
//
//   N: L y = Dr b by rows of L, U z = y by rows of U, x = Dc z      T, H: U^T y = Dc b by columns of U, L^T z = y, ..
// (right-hand side and solution permuted to and from the order of the pivots). A warp owns an unknown and gathers what
// it needs, so sums are in a fixed order: bitwise repeatable. Blocks take groups of unknowns (column_groups.cuh) by
// tickets, first those of the forward sweep, then the same groups the other way round. Inside a group unknowns go
// through shared memory; between groups they are mail (solve_mail.cuh), value and readiness in one word.
//
// Grid: at most as many blocks as are resident together; block: 512 threads; shared memory: 16 bytes, and for every
// column of the largest group a word and NV scalars. The tag of the mail is the epoch.
#pragma once
#include "column_groups.cuh"
#include "solve_mail.cuh"

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
  unsigned long long* mail;  // of both sweeps: n NV values each, for every NV right-hand sides
  // Unknowns from here on are solved for between the sweeps, by others, in `corner`: n - division rows, nrhs columns.
  // `row_diag` and `diag` of theirs are where the corner begins. n: there are none.
  int division;
  Scalar* corner;
};

namespace {

template <int NV, bool TRANSPOSED> struct Sweep {
  static constexpr int TOGETHER = NV == 1 ? 4 : 1;  // entries of a row that a lane loads at a time
  const ColumnSolveArgs& args;
  bool backward;
  int rhs;         // first right-hand side
  int first, end;  // unknowns of the group
  unsigned tag;
  unsigned* flags;
  Scalar* values;  // of the group's unknowns
  Word* mail;      // of the sweep

  __device__ __forceinline__ Word* mail_of(int unknown) const { return mail + (long long)unknown * (NV * WORDS); }
  __device__ __forceinline__ bool take_mail(const Word* from, Scalar (&v)[NV]) const {
    bool all = true;
#pragma unroll
    for (int c = 0; c < NV; c++) {
      Mail letter;
      letter.load(from + c * WORDS);
      all = all && letter.has(tag);
      v[c] = letter.value();
    }
    return all;
  }
  __device__ __forceinline__ bool take(int unknown, Scalar (&v)[NV]) const {
    if (unknown < first || unknown >= end) return take_mail(mail_of(unknown), v);
    if (!load_acquire_block(flags + (unknown - first))) return false;
#pragma unroll
    for (int c = 0; c < NV; c++) v[c] = values[(unknown - first) * NV + c];
    return true;
  }

  // sum -= row times unknowns, for the lane's entries among some of a row.
  __device__ __forceinline__ void add_entries(long long p, long long last, Scalar (&sum)[NV]) const {
    const ColumnArrays& m = args.columns;
    int unknown[TOGETHER];
    Scalar entry[TOGETHER], v[TOGETHER][NV];
    unsigned missing = 0;
#pragma unroll
    for (int r = 0; r < TOGETHER; r++, p += 32)
      if (p < last) {
        unknown[r] = __ldg((TRANSPOSED ? m.row : m.col) + p);
        entry[r] = load_constant(args.factor + (TRANSPOSED ? p : __ldg(m.place + p)));
        missing |= 1u << r;
      }
    const unsigned some = missing;
    for (;;) {
#pragma unroll
      for (int r = 0; r < TOGETHER; r++)
        if (missing >> r & 1 && take(unknown[r], v[r])) missing &= ~(1u << r);
      if (!__any_sync(~0u, missing)) break;
      before_looking_again(mail, false);
    }
#pragma unroll
    for (int r = 0; r < TOGETHER; r++)
      if (some >> r & 1) {
        const Scalar a = args.conjugate ? conj(entry[r]) : entry[r];
#pragma unroll
        for (int c = 0; c < NV; c++) sum[c] = mul_sub(a, v[r][c], sum[c]);
      }
  }

  __device__ __forceinline__ Scalar* corner_entry(int k, int column) const {
    return args.corner + (k - args.division) + (long long)column * (args.columns.n - args.division);
  }

  // The right-hand side of unknown k: forward that of the caller, backward what the forward sweep left.
  __device__ __forceinline__ void start(int k, Scalar (&v)[NV]) const {
    if (backward && k >= args.division) {
#pragma unroll
      for (int c = 0; c < NV; c++) v[c] = *corner_entry(k, min(rhs + c, args.nrhs - 1));
      return;
    }
    if (backward) {
      const Word* from = mail_of(k) - (long long)args.columns.n * (NV * WORDS);
      while (!take_mail(from, v)) before_looking_again(from, false);
      return;
    }
    const int at = __ldg(args.perm_in + k);
    const Real scale = args.scale_in ? (Real)__ldg(args.scale_in + at) : Real(1);
#pragma unroll
    for (int c = 0; c < NV; c++) v[c] = scale * args.b[at + min(rhs + c, args.nrhs - 1) * args.ld];
  }

  __device__ __forceinline__ void give(int k, const Scalar (&v)[NV]) const {
    if (!backward && k >= args.division) {
#pragma unroll
      for (int c = 0; c < NV; c++)
        if (rhs + c < args.nrhs) *corner_entry(k, rhs + c) = v[c];
      return;
    }
#pragma unroll
    for (int c = 0; c < NV; c++) values[(k - first) * NV + c] = v[c];
    store_release_block(flags + (k - first), 1);
#pragma unroll
    for (int c = 0; c < NV; c++) mail_value(mail_of(k) + c * WORDS, v[c], tag);
    if (!backward) return;
    const int at = __ldg(args.perm_out + k);
    const Real scale = args.scale_out ? (Real)__ldg(args.scale_out + at) : Real(1);
#pragma unroll
    for (int c = 0; c < NV; c++)
      if (rhs + c < args.nrhs) args.x[at + (rhs + c) * args.ld] = scale * v[c];
  }

  __device__ __forceinline__ void run(int k) const {
    const ColumnArrays& m = args.columns;
    const int lane = threadIdx.x & 31;
    const long long* ptr = TRANSPOSED ? m.col_ptr : m.row_ptr;
    const long long diagonal = __ldg((TRANSPOSED ? m.diag : args.row_diag) + k);
    const bool in_corner = k >= args.division;
    const long long from = backward ? diagonal + 1 : __ldg(ptr + k);
    const long long last = !backward ? diagonal : in_corner ? from : __ldg(ptr + k + 1);
    Scalar sum[NV], inverse(1);
#pragma unroll
    for (int c = 0; c < NV; c++) sum[c] = Scalar(0);
    if (lane == 0) {
      start(k, sum);
      if (TRANSPOSED != backward && !in_corner) {
        const Scalar pivot = load_constant(args.factor + (TRANSPOSED ? diagonal : __ldg(m.diag + k)));
        inverse = reciprocal(args.conjugate ? conj(pivot) : pivot);
      }
    }
    for (long long p = from; p < last; p += 32 * TOGETHER) add_entries(p + lane, last, sum);
#pragma unroll
    for (int c = 0; c < NV; c++)
#pragma unroll
      for (int step = 16; step; step /= 2) sum[c] += shuffle_xor(sum[c], step);
    if (lane == 0) {
#pragma unroll
      for (int c = 0; c < NV; c++) sum[c] = sum[c] * inverse;
      give(k, sum);
    }
    __syncwarp();
  }
};

template <int NV, bool TRANSPOSED> __device__ __forceinline__ void solve_columns(const ColumnSolveArgs& args) {
  ColumnControl& control = *(ColumnControl*)shared_memory;
  Scalar* values = (Scalar*)(shared_memory + sizeof(ColumnControl));
  unsigned* flags = (unsigned*)(values + args.most_columns * NV);
  const int rhs_groups = (args.nrhs + NV - 1) / NV, n = args.columns.n;
  for (begin_tickets(args.tickets, control); next_ticket(args.tickets, control);) {
    const int step = control.ticket / rhs_groups, rhs_group = control.ticket % rhs_groups;
    const bool backward = step >= args.group_count;
    const int2 range = args.tickets.groups[backward ? 2 * args.group_count - 1 - step : step];
    const Sweep<NV, TRANSPOSED> sweep = {
        args,    backward, rhs_group * NV,
        range.x, range.y,  control.epoch,
        flags,   values,   args.mail + (2ll * rhs_group + backward) * n * (NV * WORDS)};
    for (int c = threadIdx.x; c < range.y - range.x; c += blockDim.x) flags[c] = 0;
    __syncthreads();
    for (;;) {
      const int c = next_column(control);
      if (c >= range.y - range.x) break;
      sweep.run(backward ? range.y - 1 - c : range.x + c);
    }
  }
  end_tickets(args.tickets, control);
}

}  // namespace
