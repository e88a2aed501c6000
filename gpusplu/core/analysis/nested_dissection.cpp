// Compression, dissection of what is left as tasks on a team, expansion. What each stage does and where it comes from
// is said in compress.hpp and nd_*.cpp.
#include "analysis/nested_dissection.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <numeric>
#include <optional>

#include "analysis/compress.hpp"
#include "analysis/nd_components.hpp"
#include "analysis/nd_probe.hpp"
#include "analysis/nd_recursion.hpp"
#include "analysis/nd_tasks.hpp"
#include "base/threads.hpp"

namespace gs {
namespace {

// All pieces; the calling thread's part of the team.
void lead(const nd::Context& context, nd::Workspace& ws, std::vector<nd::Piece>& pieces) {
  std::deque<nd::Fork> forks;
  for (std::size_t i = 1; i < pieces.size(); i++) {
    nd::Piece& piece = pieces[i];
    forks.emplace_back(ws.tasks, ws, piece.hierarchy.level[0].n,
                       [&context, &piece](nd::Workspace& other) { nd::dissect(context, other, piece); });
  }
  nd::dissect(context, ws, pieces[0]);
  for (nd::Fork& fork : forks) fork.join(true);
}

std::vector<idx> dissect(const nd::Graph& whole, const DissectionOptions& options) {
  std::vector<idx> order(whole.n), all(whole.n);
  if (whole.n == 0) return order;
  std::iota(all.begin(), all.end(), 0);
  nd::Arena memory;
  std::vector<nd::Piece> pieces = nd::connected_pieces(whole, all.data(), nd::kLeaf, options.seed, memory);
  const bool large = std::any_of(pieces.begin(), pieces.end(),
                                 [](const nd::Piece& piece) { return piece.hierarchy.level[0].n > nd::kLeaf; });
  std::optional<nd::Probe> probe;
  if (large) probe.emplace(whole, options.seed);
  const nd::Context context{whole, order.data(), [&] { return probe->answer(); }};

  nd::Tasks tasks;
  std::exception_ptr error;  // of the calling thread; the others' come to it with their tasks
  run_team(options.threads > 0 ? options.threads : num_threads(), [&](const Team& team) {
    nd::Workspace ws;
    if (team.size > 1) ws.tasks = &tasks;
    if (team.rank > 0) {
      while (probe && probe->help()) {
      }
      return tasks.serve(ws);
    }
    try {
      lead(context, ws, pieces);
    } catch (...) {
      error = std::current_exception();
    }
    tasks.close();
  });
  if (error) std::rethrow_exception(error);
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
