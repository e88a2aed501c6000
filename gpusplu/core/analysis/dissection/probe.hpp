// Chooses between separators and cuts at the coarse levels.
#pragma once
#include <atomic>
#include <vector>

#include "analysis/dissection/graph.hpp"
#include "analysis/dissection/separator.hpp"
#include "analysis/dissection/tasks.hpp"

namespace gs::nd {

// Orders a ball of some thousand vertices by both methods and compares the flops of its factorization. (The size of the
// top separator is no guide.) The two trials and their parts may run on different threads; they have a task queue of
// their own, so that no thread that runs a trial waits for the answer.
class Probe {
 public:
  Probe(const Graph& whole, std::uint64_t seed);
  void help();      // takes part until both trials are done
  Coarse answer();  // the same, and returns the better method

 private:
  double trial(Coarse coarse, Workspace& ws) const;

  std::vector<off> ptr_;
  std::vector<idx> adj_, weight_;
  Graph ball_;
  std::uint64_t seed_;
  double flops_[2] = {0, 0};
  std::atomic<int> begun_{0}, done_{0};
  Tasks tasks_;
};

// Sum of the squared column counts of the Cholesky factor in that order: order[place] is a vertex of the graph.
double factor_flops(const Graph& graph, const std::vector<idx>& order);

}  // namespace gs::nd
