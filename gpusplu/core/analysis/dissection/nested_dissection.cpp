// Compression, dissection of the reduced graph as tasks on a team, expansion. compress.hpp and the files of this folder
// document the stages and their sources.
#include "analysis/dissection/nested_dissection.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>

#include "analysis/compress.hpp"
#include "analysis/dissection/components.hpp"
#include "analysis/dissection/probe.hpp"
#include "analysis/dissection/recursion.hpp"
#include "analysis/dissection/tasks.hpp"
#include "base/threads.hpp"

namespace gs {
namespace {

constexpr idx kTwice = 3000;  // up to this size, both partitioning methods are tried on the whole graph
constexpr int kProbers = 4;   // threads that take part in a probe; the others find work in the graph itself

// One order of a graph with known connected components.
struct Attempt {
  std::vector<idx> order;
  std::vector<nd::Component> components;
  nd::Context context;
  double flops = 0;

  Attempt(const nd::Graph& whole, const std::vector<nd::Component>& components, std::function<nd::Coarse()> coarse)
      : order(whole.n), components(components), context{whole, order.data(), std::move(coarse)} {}

  void run(nd::Workspace& ws) {
    std::deque<nd::Fork> forks;
    for (std::size_t i = 1; i < components.size(); i++) {
      nd::Component& component = components[i];
      forks.emplace_back(ws.tasks, ws, component.hierarchy.level[0].n,
                         [this, &component](nd::Workspace& other) { nd::dissect(context, other, component); });
    }
    nd::dissect(context, ws, components[0]);
    for (nd::Fork& fork : forks) fork.join(true);
  }
};

// The attempts with their flops, where there are two; the calling thread's part of the team.
void lead(nd::Workspace& ws, std::deque<Attempt>& attempts) {
  if (attempts.size() == 1) return attempts[0].run(ws);
  const auto judged = [](Attempt& attempt, nd::Workspace& own) {
    attempt.run(own);
    attempt.flops = nd::factor_flops(attempt.context.whole, attempt.order);
  };
  nd::Fork other(ws.tasks, ws, attempts[1].context.whole.n, [&](nd::Workspace& own) { judged(attempts[1], own); });
  judged(attempts[0], ws);
  other.join(true);
}

std::vector<idx> dissect(const nd::Graph& whole, const DissectionOptions& options) {
  std::vector<idx> all(whole.n);
  if (whole.n == 0) return all;
  std::iota(all.begin(), all.end(), 0);
  nd::Arena memory;
  std::vector<nd::Component> components = nd::connected_components(whole, all.data(), nd::kLeaf, options.seed, memory);
  const bool large = std::any_of(components.begin(), components.end(), [](const nd::Component& component) {
    return component.hierarchy.level[0].n > nd::kLeaf;
  });
  std::optional<nd::Probe> probe;
  std::deque<Attempt> attempts;
  if (large && whole.n <= kTwice) {
    for (const nd::Coarse coarse : {nd::Coarse::separators, nd::Coarse::cuts})
      attempts.emplace_back(whole, components, [coarse] { return coarse; });
  } else {
    if (large) probe.emplace(whole, options.seed);
    attempts.emplace_back(whole, components, [&] { return probe->answer(); });
  }

  const int threads = std::min(num_threads(), options.threads > 0 ? options.threads : num_threads());
  nd::Tasks tasks;
  run_helpers(threads, [&](const Team& team) {
    const int rank = team.rank;
    if (rank > 0 && rank <= kProbers && probe) probe->help();
    nd::Workspace ws;
    if (threads > 1) ws.tasks = &tasks;
    if (rank > 0) return tasks.serve(ws);
    tasks.try_to([&](nd::Workspace& own) { lead(own, attempts); }, ws);
    tasks.close();
  });
  tasks.rethrow();
  const bool second = attempts.size() > 1 && attempts[1].flops < attempts[0].flops;
  return std::move(attempts[second].order);
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
