// Synchronization-free left-looking LU refactorization on a static pattern, owner computes (Zhao, Wen, Luo, Jin, Liu
// and Zhou, SFLU: busy waiting on what a column depends on instead of level barriers).
//
// What differs from the paper: a block owns a group of neighbouring columns, a whole small subtree or a chain
// (core/plan/column_groups.hpp), and keeps their values in shared memory, where its warps, a column each, hand finished
// columns to each other; only between groups does a hop go through the second-level cache. Groups are taken by tickets
// in an order in which nobody waits for a higher ticket, so the kernel cannot hang however blocks are scheduled;
// columns are published by release and acquire, and marked by the number of the launch instead of being cleared.
// Positions come from the plan's maps, or are searched where there are none.
//
// A warp: its column's entries of A, then for every j with U(j, k) != 0, ascending: wait for column j,
// column k -= L(:, j) U(j, k); then the pivot. A pivot below `tiny` is replaced by one of that size and its sign.
// Grid: at most as many blocks as are resident together; block: 512 threads; shared memory: 16 bytes, a word a column
// and the scalars of the largest group that has any room. Sums are in the order of the rows of U: bitwise repeatable.
#include "column_groups.cuh"

struct SfluArgs {
  ColumnArrays columns;
  ColumnTickets tickets;
  const int* source;    // canonical value of a place of L + U, or -1: fill
  const double* scale;  // of canonical values; null: ones
  const Scalar* values;
  Scalar* factor;
  unsigned* done;  // of a column: the launch that finished it
  // Columns from here on are updated by those before only, and left unfactored: the dense corner of crisscross LU.
  // Their `diag` is where rows from here on begin. n: there is none.
  int division;
  int capacity;  // scalars of shared memory; larger groups stay in global memory
  int flags;     // most columns of a group
  Status* status;
  double tiny, singular;  // see FactorArgs
};

namespace {

constexpr int IN_FLIGHT = 4;  // loads of a lane that are under way together

struct Group {
  int first, end;   // columns
  long long base;   // place of the first one
  unsigned* flags;  // finished columns of the group
  unsigned epoch;
};

// L(:, j) as the update of a column needs it.
struct Source {
  const Scalar* values;  // in shared memory if j is of the group
  long long places;      // where the map, or without one its rows, begin
  int column, count;
};

__device__ __forceinline__ Source shuffle(const Source& s, int lane) {
  return {(const Scalar*)__shfl_sync(~0u, (unsigned long long)s.values, lane), __shfl_sync(~0u, s.places, lane),
          __shfl_sync(~0u, s.column, lane), __shfl_sync(~0u, s.count, lane)};
}

// An entry of L(:, j) on its way to column k. Nothing is computed from what is loaded before it is needed: a warp waits
// for a load where its value is first used.
struct Piece {
  Scalar value;
  int place;  // its place in column k, or its row; negative: none
  int guess;  // without a map: the row where it would be if both columns ended alike
  int last;   // and that place
};

// MAPS: positions come from the 16-bit map, else they are searched.
template <bool IN_SHARED, bool MAPS> struct Column {
  const SfluArgs& args;
  const Group& group;
  int k, lane;
  int begin, diagonal, end;  // places relative to the group's

  __device__ __forceinline__ Column(const SfluArgs& args_, const Group& group_, int k_)
      : args(args_), group(group_), k(k_), lane(threadIdx.x & 31) {
    const ColumnArrays& c = args.columns;
    begin = (int)(__ldg(c.col_ptr + k) - group.base);
    diagonal = (int)(__ldg(c.diag + k) - group.base);
    end = (int)(__ldg(c.col_ptr + k + 1) - group.base);
  }

  // Values of the group.
  __device__ __forceinline__ Scalar* work() const {
    if (IN_SHARED) return (Scalar*)(shared_memory + sizeof(ColumnControl) + 4 * (args.flags + 3 & ~3));
    return args.factor + group.base;
  }

  __device__ __forceinline__ void assemble() const {
    for (int p0 = begin + lane; p0 < end; p0 += 32 * IN_FLIGHT) {
      int source[IN_FLIGHT];
      Scalar value[IN_FLIGHT];
      Real scale[IN_FLIGHT];
#pragma unroll
      for (int r = 0; r < IN_FLIGHT; r++) source[r] = __ldg(args.source + group.base + min(p0 + 32 * r, end - 1));
#pragma unroll
      for (int r = 0; r < IN_FLIGHT; r++) {
        value[r] = load_constant(args.values + max(source[r], 0));
        scale[r] = args.scale ? (Real)__ldg(args.scale + max(source[r], 0)) : Real(1);
      }
#pragma unroll
      for (int r = 0; r < IN_FLIGHT; r++)
        if (p0 + 32 * r < end) work()[p0 + 32 * r] = source[r] < 0 ? Scalar(0) : scale[r] * value[r];
    }
    __syncwarp();
  }

  __device__ __forceinline__ Source source_of(int u) const {  // u: entry of U in this column
    const ColumnArrays& c = args.columns;
    Source s = {args.factor, 0, 0, 0};
    if (u < diagonal - begin) {
      s.column = __ldg(c.row + group.base + begin + u);
      const long long lower = __ldg(c.diag + s.column) + 1;
      s.count = (int)(__ldg(c.col_ptr + s.column + 1) - lower);
      s.places = MAPS ? __ldg(c.map_ptr + __ldg(c.u_ptr + k) + u) : lower;
      s.values = IN_SHARED && s.column >= group.first ? work() + (int)(lower - group.base) : args.factor + lower;
    }
    return s;
  }

  __device__ __forceinline__ bool finished(int j) const {
    if (j >= group.first) return load_acquire_block(group.flags + (j - group.first)) != 0;
    return load_acquire(args.done + j) == group.epoch;
  }

  // Entry e of L(:, j), if there is one.
  __device__ __forceinline__ void load_place(Piece& piece, const Source& s, int e) const {
    const ColumnArrays& c = args.columns;
    piece.place = -1;
    if (MAPS) {
      if (e < s.count) piece.place = __ldg(c.map16 + s.places + e);
      return;
    }
    piece.last = end - begin - (s.count - e);
    if (e < s.count) {
      piece.place = __ldg(c.row + s.places + e);
      piece.guess = __ldg(c.row + group.base + begin + piece.last);
    }
  }
  // What the acquire of `finished` made visible: a load like any other.
  __device__ __forceinline__ void load_value(Piece& piece, const Source& s, int e) const {
    if (e < s.count) piece.value = s.values[e];
  }

  // `above`: entries of U above that of j.
  __device__ __forceinline__ void apply(const Piece& piece, int above, Scalar x) const {
    if (piece.place < 0) return;
    int place = piece.place;
    if (!MAPS) {
      place = piece.last;
      if (piece.place != piece.guess)
        place = find_row(args.columns.row + group.base + begin, piece.place, above + 1, piece.last);
    }
    Scalar* to = work() + begin + place;
    *to = mul_sub(piece.value, x, *to);
  }

  __device__ __forceinline__ void update() const {
    const int uppers = diagonal - begin;
    for (int u0 = 0; u0 < uppers; u0 += 32) {
      const Source own = source_of(u0 + lane);
      const int here = min(32, uppers - u0);
      bool mine = lane >= here || finished(own.column);
      unsigned ready = __ballot_sync(~0u, mine);
      __syncwarp();
      for (int t = 0; t < here;) {
        const int run = min((__ffs(~(ready >> t)) - 1) & 63, here - t);
        if (run) apply_finished(own, u0, t, t + run);
        else apply_late(own, u0, t, mine, ready);
        t += max(run, 1);
      }
    }
  }

  // Columns of entries u0 + t .. u0 + last - 1 of U, which lanes t .. last - 1 have: a stream of 32 entries at a time.
  __device__ __forceinline__ void apply_finished(const Source& own, int u0, int t, int last) const {
    Piece piece[IN_FLIGHT];
    int entry[IN_FLIGHT];  // of U, where a column begins; -1: the same column, -2: the end
    Source s = shuffle(own, t);
    int e = lane;
    Scalar x(0);
    auto load = [&](Piece& to, int& of) {
      of = -2;
      if (t == last) return;
      of = e < 32 ? u0 + t : -1;
      load_place(to, s, e);
      load_value(to, s, e);
      e += 32;
      if (e - lane < s.count) return;
      e = lane;
      if (++t < last) s = shuffle(own, t);
    };
#pragma unroll
    for (int r = 0; r < IN_FLIGHT; r++) load(piece[r], entry[r]);
    for (int above = 0;;) {
#pragma unroll
      for (int r = 0; r < IN_FLIGHT; r++) {
        if (entry[r] == -2) return __syncwarp();
        if (entry[r] >= 0) {
          __syncwarp();
          above = entry[r];
          x = work()[begin + above];
        }
        apply(piece[r], above, x);
        load(piece[r], entry[r]);
      }
    }
  }

  // The column of entry u0 + t of U, which has to be waited for: what does not depend on it is loaded before.
  __device__ __forceinline__ void apply_late(const Source& own, int u0, int t, bool& mine, unsigned& ready) const {
    const Source s = shuffle(own, t);
    const Scalar x = work()[begin + u0 + t];
    Piece piece[IN_FLIGHT];
#pragma unroll
    for (int r = 0; r < IN_FLIGHT; r++) load_place(piece[r], s, lane + 32 * r);
    do {
      if (!mine) mine = finished(own.column);
      ready = __ballot_sync(~0u, mine);
    } while (!(ready >> t & 1));
    __syncwarp();
#pragma unroll
    for (int r = 0; r < IN_FLIGHT; r++) load_value(piece[r], s, lane + 32 * r);
    for (int e = lane + 32 * IN_FLIGHT;; e += 32 * IN_FLIGHT) {
#pragma unroll
      for (int r = 0; r < IN_FLIGHT; r++) {
        apply(piece[r], u0 + t, x);
        load_place(piece[r], s, e + 32 * r);
        load_value(piece[r], s, e + 32 * r);
      }
      if (e - lane >= s.count) break;
    }
    __syncwarp();
  }

  // The reciprocal of the pivot, which is replaced where it is too small.
  __device__ __forceinline__ Scalar pivot_reciprocal() const {
    const Scalar pivot = work()[diagonal];
    const Real tiny = (Real)fmax(args.tiny, LEAST_NORMAL);
    const unsigned bits = magnitude_bits(pivot);
    if (bits >= NAN_BITS && lane == 0) atomicAdd(&args.status->not_finite, 1);
    if (bits >= magnitude_bits(tiny)) return reciprocal(pivot);
    __syncwarp();
    if (lane == 0) {
      atomicAdd(&args.status->n_perturbed, 1);
      if (bits < magnitude_bits((Real)args.singular)) atomicAdd(&args.status->n_tiny, 1);
      work()[diagonal] = replaced_reciprocal(pivot, tiny);
    }
    return replaced_reciprocal(pivot, reciprocal(tiny));
  }

  __device__ __forceinline__ void store() const {
    if (!IN_SHARED) return;
    Scalar* to = args.factor + group.base;
    for (int p = begin + lane; p < end; p += 32) store_shared_level(to + p, work()[p]);
  }

  // The pivot and the column of L; first for the group, then for all.
  __device__ __forceinline__ void finish() const {
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
    store();
    __syncwarp();
    if (lane == 0) store_release(args.done + k, group.epoch);
    report_growth(multiplier_bits, args.status);
  }

  __device__ __forceinline__ void run() const {
    assemble();
    update();
    // Rows from `division` on of a column of the corner are a column of the Schur complement.
    if (k < args.division) finish();
    else store();
  }
};

template <bool MAPS>
__device__ __forceinline__ void factor_group(const SfluArgs& args, const Group& group, ColumnControl& control) {
  const bool in_shared = __ldg(args.columns.col_ptr + group.end) - group.base <= args.capacity;
  for (;;) {
    const int k = group.first + next_column(control);
    if (k >= group.end) break;
    if (in_shared) Column<true, MAPS>(args, group, k).run();
    else Column<false, MAPS>(args, group, k).run();
  }
}

}  // namespace

GPUSPLU_KERNEL(factor_sflu, SfluArgs, 512, sizeof(Scalar) == 16 ? 1 : 2) {
  ColumnControl& control = *(ColumnControl*)shared_memory;
  unsigned* flags = (unsigned*)(shared_memory + sizeof(ColumnControl));
  for (begin_tickets(args.tickets, control); next_ticket(args.tickets, control);) {
    const int2 range = args.tickets.groups[control.ticket];
    const Group group = {range.x, range.y, __ldg(args.columns.col_ptr + range.x), flags, control.epoch};
    for (int c = threadIdx.x; c < group.end - group.first; c += blockDim.x) flags[c] = 0;
    __syncthreads();
    if (args.columns.map16) factor_group<true>(args, group, control);
    else factor_group<false>(args, group, control);
  }
  end_tickets(args.tickets, control);
}
