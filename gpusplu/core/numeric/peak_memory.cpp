#include "numeric/peak_memory.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/host_memory.hpp"
#include "base/threads.hpp"
#include "numeric/block_limit.hpp"
#include "numeric/front_memory.hpp"
#include "numeric/front_plan.hpp"
#include "numeric/ldlt_front.hpp"
#include "numeric/strips.hpp"
#include "simd/column_kernels.hpp"

namespace gs {
namespace {

// Threads that run the tasks of a plan as UpwardWalk does, at the speed that the plan models.
class SimulatedWalk {
 public:
  SimulatedWalk(const Symbolic& symbolic, const FrontPlan& plan, std::size_t scalar_bytes, int threads)
      : symbolic_(symbolic),
        plan_(plan),
        scalar_bytes_(scalar_bytes),
        limit_(symbolic, plan, scalar_bytes),
        tasks_(plan, limit_),
        places_((std::size_t)limit_.bytes()),
        place_(symbolic.nsuper()),
        pools_(threads) {
    for (const FrontTask& task : plan.tasks) waiting_.push_back(task.n_dependencies);
    places_.extend(0, BlockPlaces::kNone);
  }

  // Bytes of contribution blocks at the end, when all pages of the pools and of the range have been touched.
  std::size_t contributions() {
    const int threads = (int)pools_.size();
    std::vector<Position> position(threads);
    for (int rank = 0; rank < threads; rank++) events_.emplace(0.0, rank);
    while (!events_.empty()) {
      const auto [time, rank] = events_.top();
      events_.pop();
      time_ = time;
      Position& at = position[rank];
      const bool assembled = at.assembles;
      if (assembled) give_children(rank, at.front);
      else if (!advances(at)) idle_.push_back(rank);
      else take(rank, at.front);
      if (at.task < 0) continue;
      at.assembles = !assembled;
      const auto [assembly, elimination] = front_work(symbolic_, at.front);
      events_.emplace(time + (assembled ? elimination : assembly) / threads_of(at, position), rank);
    }
    std::size_t bytes = places_.most_resident();
    for (const Pool& pool : pools_) bytes += pool.cut;
    return bytes;
  }

 private:
  using Event = std::pair<double, int>;  // when a thread ends an assembly or an elimination
  struct Position {
    idx task = -1, front = -1;
    bool assembles = false;  // this front; or eliminates it
  };
  struct Pool {
    std::size_t cut = 0;
    std::vector<idx> free = std::vector<idx>(BlockPool::kClasses);
  };

  // Threads that work on a front: idle ones are divided among the large fronts.
  double threads_of(const Position& at, const std::vector<Position>& position) const {
    const auto is_large = [&](const Position& p) { return p.task >= 0 && plan_.tasks[p.task].is_large; };
    if (!is_large(at)) return 1;
    return 1 + (double)idle_.size() / std::count_if(position.begin(), position.end(), is_large);
  }

  // The next front of this thread; false if there is none at the moment.
  bool advances(Position& at) {
    if (at.task >= 0) {
      if (at.front++ < plan_.tasks[at.task].last) return true;
      const idx parent = plan_.tasks[at.task].parent;
      const bool is_last = parent >= 0 && --waiting_[parent] == 0;
      tasks_.end(at.task, is_last ? parent : -1);
      for (const int rank : idle_) events_.emplace(time_, rank);
      idle_.clear();
    }
    at.task = tasks_.next();
    if (at.task < 0) return false;
    at.front = plan_.tasks[at.task].first;
    return true;
  }

  std::size_t size(idx s) const {
    return contribution_size(FrontShape(symbolic_, s).H, symbolic_.one_triangle()) * scalar_bytes_;
  }
  void take(int rank, idx s) {
    const std::size_t bytes = size(s);
    if (bytes == 0) return;
    if (BlockMemory::is_small(bytes)) {
      const auto [size_class, rounded] = BlockPool::round_up(bytes);
      Pool& pool = pools_[rank];
      if (pool.free[size_class] > 0) pool.free[size_class]--;
      else pool.cut += rounded;
    } else {
      place_[s] = places_.take(BlockMemory::rounded(bytes), [](std::size_t, std::size_t) {});
    }
  }
  void give_children(int rank, idx s) {
    for (idx c = plan_.child_ptr[s]; c < plan_.child_ptr[s + 1]; c++) {
      const idx child = plan_.child[c];
      const std::size_t bytes = size(child);
      if (bytes == 0) continue;
      if (BlockMemory::is_small(bytes)) pools_[rank].free[BlockPool::round_up(bytes).first]++;
      else places_.give(place_[child], BlockMemory::rounded(bytes));
    }
  }

  const Symbolic& symbolic_;
  const FrontPlan& plan_;
  const std::size_t scalar_bytes_;
  const BlockLimit limit_;
  BlockLimit::Tasks tasks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int> idle_;  // ranks
  double time_ = 0;
  std::vector<idx> waiting_;  // children that are not done, by task
  BlockPlaces places_;
  std::vector<std::size_t> place_;  // by front
  std::vector<Pool> pools_;         // by thread
};

off bytes_of_fronts(const Symbolic& symbolic, off scalar_bytes, int threads) {
  const off n = symbolic.n;
  const FrontPlan plan(symbolic);
  threads = (int)std::min<double>(threads, 1 + plan.total_work / symbolic.costs.threads.factor);
  const off entries = symbolic.one_triangle() ? (symbolic.nnz + n) / 2 : symbolic.nnz;
  off bytes = plan.panel_ptr.back() * scalar_bytes + plan.bytes();
  bytes += entries * off(2 * sizeof(std::uint32_t) + (symbolic.row_scale.empty() ? 0 : sizeof(double)));
  bytes += n * off(sizeof(idx)) + symbolic.nsuper() * off(sizeof(void*));
  // The C library keeps what each thread of nested dissection has freed, about an index per row.
  if (symbolic.ordering == "nd") bytes += (threads - 1) * std::min<off>(n, 1 << 20) * off(sizeof(idx));
  if (symbolic.ldlt) {
    idx tallest = 0;
    for (idx s = 0; s < symbolic.nsuper(); s++) tallest = std::max(tallest, FrontShape(symbolic, s).R);
    bytes += (2 * n + ldlt_scratch(tallest)) * scalar_bytes;  // of several threads, most is not touched
  }
  return bytes + (off)SimulatedWalk(symbolic, plan, scalar_bytes, threads).contributions();
}

off bytes_of_columns(const Symbolic& symbolic, off scalar_bytes) {
  const off n = symbolic.n, fill = std::max<off>(symbolic.lnz - n, 0);
  const off triangles = 2 * fill * (scalar_bytes + sizeof(idx)) + n * off(sizeof(ColumnNode) + 2 * scalar_bytes);
  const off pattern = 2 * n * off(sizeof(off)) + 2 * symbolic.nnz * off(sizeof(idx)) + 4 * n * off(sizeof(idx));
  const off scales = symbolic.row_scale.empty() ? 0 : n * off(sizeof(double) + 2 * scalar_bytes);
  const off search = n * off(12 * sizeof(idx) + sizeof(off) + scalar_bytes);
  return triangles + pattern + scales + search;
}

}  // namespace

off peak_bytes(const Symbolic& symbolic, Dtype dtype, int threads) {
  const off scalar_bytes = with_scalar(dtype, []<class T>(T) { return (off)sizeof(T); });
  const off values = symbolic.nnz * scalar_bytes;
  return values + (symbolic.method == Method::front ? bytes_of_fronts(symbolic, scalar_bytes, threads)
                                                    : bytes_of_columns(symbolic, scalar_bytes));
}

off analysis_bytes(const Symbolic& symbolic, int threads) {
  // Measured. With fronts: of nested dissection, on one thread and on 16.
  constexpr off of_columns = 60, of_fronts = 250, of_others = 160;  // per row
  const off per_row = symbolic.method == Method::column ? of_columns : of_fronts + of_others * (threads - 1) / threads;
  return symbolic.nnz * off(sizeof(double)) + symbolic.n * per_row;
}

void require_host_memory(const Symbolic& symbolic, Dtype dtype) {
  constexpr off least = off(64) << 20;  // smaller factors are not checked
  constexpr off most_entries = 4;       // an entry of L needs less than so many, with U, zeros and blocks
  const off factor = symbolic.lnz * with_scalar(dtype, []<class T>(T) { return (off)sizeof(T); });
  if (factor < least) return;
  const off free = free_host_memory();
  if (most_entries * factor < free / 2) return;
  const off needed = peak_bytes(symbolic, dtype, num_threads());
  if (needed > free) throw HostMemoryShort(needed, free);
}

}  // namespace gs
