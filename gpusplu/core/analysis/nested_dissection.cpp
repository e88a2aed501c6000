// Compression, dissection of what is left as tasks on a team, expansion. What each stage does and where it comes from
// is said in compress.hpp and nd_*.cpp.
#include "analysis/nested_dissection.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>

#include "analysis/compress.hpp"
#include "analysis/nd_components.hpp"
#include "analysis/nd_probe.hpp"
#include "analysis/nd_recursion.hpp"
#include "base/threads.hpp"

namespace gs {
namespace {

using nd::Piece;

// Pieces to be ordered, the largest first.
class Tasks {
 public:
  void push(Piece&& piece) {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(piece));
    std::push_heap(waiting_.begin(), waiting_.end(), smaller);
    open_++;
    changed_.notify_one();
  }
  // Blocks until there is a task; none when all are done or one has failed.
  std::optional<Piece> pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || open_ == 0 || error_; });
    if (waiting_.empty() || error_) return std::nullopt;
    std::pop_heap(waiting_.begin(), waiting_.end(), smaller);
    Piece piece = std::move(waiting_.back());
    waiting_.pop_back();
    return piece;
  }
  void done() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--open_ == 0) changed_.notify_all();
  }
  void fail(std::exception_ptr error) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = error;
    changed_.notify_all();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static idx size(const Piece& piece) { return piece.hierarchy.level[0].n; }
  static bool smaller(const Piece& a, const Piece& b) { return size(a) < size(b); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Piece> waiting_;
  std::size_t open_ = 0;  // waiting or being worked on
  std::exception_ptr error_;
};

std::vector<idx> dissect(const nd::Graph& whole, const DissectionOptions& options) {
  std::vector<idx> order(whole.n), all(whole.n);
  std::iota(all.begin(), all.end(), 0);
  Tasks tasks;
  bool large = false;
  for (Piece& piece : nd::connected_pieces(whole, all.data(), nd::kLeaf, options.seed)) {
    large |= piece.hierarchy.level[0].n > nd::kLeaf;
    tasks.push(std::move(piece));
  }
  std::optional<nd::Probe> probe;
  if (large) probe.emplace(whole, options.seed);

  nd::Context context{whole, order.data(), [&] { return probe->answer(); },
                      [&](Piece&& piece) { tasks.push(std::move(piece)); }};
  run_team(options.threads > 0 ? options.threads : num_threads(), [&](const Team& team) {
    try {
      if (team.rank > 0 && probe)
        while (probe->help()) {
        }
      nd::Recursion recursion(context);
      while (std::optional<Piece> piece = tasks.pop()) {
        recursion.dissect(*piece);
        tasks.done();
      }
    } catch (...) {
      tasks.fail(std::current_exception());
    }
  });
  tasks.rethrow();
  return order;
}

}  // namespace

std::vector<idx> nested_dissection(PatternView graph, const DissectionOptions& options) {
  const CompressedGraph reduced = compress(graph);
  const nd::Graph whole{reduced.n(),
                        reduced.ptr.data(),
                        reduced.ind.data(),
                        reduced.weight.data(),
                        nullptr,
                        std::accumulate(reduced.weight.begin(), reduced.weight.end(), off(0))};
  return reduced.expand(dissect(whole, options));
}

}  // namespace gs
