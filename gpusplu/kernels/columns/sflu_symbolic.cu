// The pattern of L + U for pivots on the diagonal, column by column without synchronization (Zhao, Wen, Luo, Jin, Liu
// and Zhou, SFLU, section III-B, algorithm 1: the symbolic phase waits for columns as the numeric one does).
//
// The pattern of column k is that of A's, joined with L(:, j) for every j < k in it. A warp owns a column and a bitmap
// of its rows in shared memory, with a summary of one bit for every 32 words; every lane waits for a column of its own
// and joins it, in any order, until there is nothing new. Corrections and additions to the paper: tickets and release
// and acquire, as in columns/sflu.cu; of L(:, j) only the rows up to the first r with U(j, r) != 0 are joined, because
// L(:, r) has the others (symmetric pruning, Eisenstat and Liu, SIAM J. Matrix Anal. Appl. 13 (1992)); a warp that
// comes before that r is known joins all of L(:, j). Grid: any; block: 32 threads; shared memory: bitmap_words(n)
// words. Columns lie in `rows` wherever there was space: only their order there differs from run to run.
#include "common/device.cuh"
#include "shared/columns.hpp"

struct SymbolicArgs {
  const long long* ptr;  // canonical A by columns
  const int* ind;
  const int *inverse_row, *col_perm;  // B = A[row_perm][:, col_perm]
  int n;
  long long capacity;        // of rows
  int* rows;                 // ascending, the diagonal included
  unsigned long long* used;  // of rows; more than `capacity`: the result is incomplete
  long long* begin;          // of each column in `rows`
  int *upper, *lower;        // rows above and below its diagonal
  int* suffice;              // of the rows below: those that have to be joined, up to the r above; 0 where no space was
  unsigned* done;
  unsigned* tickets;  // the next column; zero at first, like `used` and `done`
};

namespace {

struct Bitmap {
  unsigned *words, *summary;
  int chunks;  // words of the summary, 1024 rows each
  DEVICE explicit Bitmap(int n) {
    chunks = bitmap_chunks(n);
    summary = (unsigned*)shared_memory;
    words = summary + summary_words(n);
    for (int w = threadIdx.x; w < bitmap_words(n); w += 32) summary[w] = 0;
    __syncwarp();
  }
  DEVICE void set(int row) {
    const unsigned bit = 1u << (row & 31);
    if (words[row >> 5] & bit) return;
    atomicOr(words + (row >> 5), bit);
    atomicOr(summary + (row >> 10), 1u << (row >> 5 & 31));
  }
};

struct Column {
  const SymbolicArgs& args;
  Bitmap& map;
  int k, lane;

  DEVICE void start() {
    const int column = __ldg(args.col_perm + k);
    const long long end = __ldg(args.ptr + column + 1);
    for (long long p = __ldg(args.ptr + column) + lane; p < end; p += 32)
      map.set(__ldg(args.inverse_row + __ldg(args.ind + p)));
    if (lane == 0) map.set(k);
    __syncwarp();
  }

  // Joins L(:, j) for one j a lane, or for none (-1): short ones by the lane, long ones by the warp.
  DEVICE void join(int j) {
    constexpr int SHORT = 4;
    const int* from = nullptr;
    int count = 0;
    if (j >= 0) {
      while (!load_acquire(args.done + j)) {
      }
      count = __ldcg(args.suffice + j);
      from = args.rows + __ldcg(args.begin + j) + __ldcg(args.upper + j) + 1;
      // Pruned by a later column than this one, the L of which is not part of this one's.
      if (count && __ldcg(from + count - 1) >= k) count = __ldcg(args.lower + j);
      for (int e = 0; e < min(count, SHORT); e++) map.set(__ldcg(from + e));
    }
    for (unsigned left = __ballot_sync(~0u, count > SHORT); left; left &= left - 1) {
      const int owner = __ffs(left) - 1, many = __shfl_sync(~0u, count, owner);
      const int* rest = (const int*)__shfl_sync(~0u, (unsigned long long)from, owner);
      for (int e = SHORT + lane; e < many; e += 32) map.set(__ldcg(rest + e));
    }
    __syncwarp();
  }

  DEVICE void close() {
    for (int chunk = 0; chunk <= k >> 10; chunk++) {
      if (!map.summary[chunk]) continue;
      const int word = 32 * chunk + lane;
      const unsigned above = word < k >> 5 ? ~0u : word == k >> 5 ? (1u << (k & 31)) - 1 : 0u;
      for (unsigned joined = 0;;) {
        const unsigned left = map.words[word] & above & ~joined;
        if (!__any_sync(~0u, left != 0)) break;
        join(left ? 32 * word + __ffs(left) - 1 : -1);
        joined |= left & -left;
      }
    }
  }

  // Sum of the lanes before this one; all: of all lanes.
  DEVICE int before(int count, int& all) const {
    int sum = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    all = __shfl_sync(~0u, sum, 31);
    return sum - count;
  }

  // Calls visit(chunk) for every chunk that has rows.
  template <class F> DEVICE void for_chunks(F visit) {
    for (int first = 0; first < map.chunks; first += 32) {
      const bool some = first + lane < map.chunks && map.summary[first + lane];
      for (unsigned left = __ballot_sync(~0u, some); left; left &= left - 1) visit(first + __ffs(left) - 1);
    }
  }

  // Moves the bitmap to global memory and clears it.
  DEVICE void store() {
    int total = 0, all;
    for_chunks([&](int chunk) { total += __popc(map.words[32 * chunk + lane]); });
    before(total, all);
    long long begin = 0;
    if (lane == 0) begin = (long long)atomicAdd(args.used, (unsigned long long)all);
    begin = __shfl_sync(~0u, begin, 0);
    const bool fits = begin + all <= args.capacity;
    int at = 0, upper = 0;
    for_chunks([&](int chunk) {
      int n_bits;
      unsigned word = map.words[32 * chunk + lane];
      int to = at + before(__popc(word), n_bits);
      for (; word; word &= word - 1, to++) {
        const int row = 32 * (32 * chunk + lane) + __ffs(word) - 1;
        upper += row < k;
        if (fits) __stcg(args.rows + begin + to, row);
      }
      at += n_bits;
      map.words[32 * chunk + lane] = 0;
      __syncwarp();
      if (lane == 0) map.summary[chunk] = 0;
    });
    before(upper, upper);
    if (lane == 0) {
      __stcg(args.begin + k, fits ? begin : 0ll);
      __stcg(args.upper + k, upper);
      __stcg(args.lower + k, all - upper - 1);
      __stcg(args.suffice + k, fits ? all - upper - 1 : 0);
    }
    __syncwarp();
    if (lane == 0) store_release(args.done + k, 1);
    if (fits) prune(args.rows + begin, upper);
  }

  // Where L(k, j) is an entry too, the rows of L(:, j) below row k are in L(:, k).
  DEVICE void prune(const int* above, int count) {
    for (int e = lane; e < count; e += 32) {
      const int j = __ldcg(above + e), most = __ldcg(args.suffice + j);
      const int* below = args.rows + __ldcg(args.begin + j) + __ldcg(args.upper + j) + 1;
      const int from = bisect(0, most, [&](int i) { return __ldcg(below + i) < k; });
      if (from < most && __ldcg(below + from) == k) atomicMin(args.suffice + j, from + 1);
    }
    __syncwarp();
  }
};

}  // namespace

GPUSPLU_KERNEL(sflu_symbolic, SymbolicArgs, WARP_SIZE, 8) {
  Bitmap map(args.n);
  const int lane = threadIdx.x;
  for (;;) {
    const int k = warp_ticket(args.tickets);
    if (k >= args.n) break;
    Column column = {args, map, k, lane};
    column.start();
    column.close();
    column.store();
  }
}
