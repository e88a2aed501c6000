// Chooses between separators and cuts at the coarse levels.
#pragma once
#include <atomic>
#include <exception>
#include <vector>

#include "analysis/nd_graph.hpp"
#include "analysis/nd_separator.hpp"

namespace gs::nd {

// Orders a ball of some thousand vertices both ways and compares the flops of its factorization. (The size of the top
// separator does not tell.) The two trials may run on different threads.
class Probe {
 public:
  Probe(const Graph& whole, std::uint64_t seed);
  bool help();      // runs a trial that nobody has begun; false: there is none
  Coarse answer();  // runs what nobody has begun, waits for the rest

 private:
  double trial(Coarse coarse) const;

  std::vector<off> ptr_;
  std::vector<idx> adj_, weight_;
  Graph ball_;
  std::uint64_t seed_;
  double flops_[2] = {0, 0};
  std::exception_ptr error_[2];
  std::atomic<int> begun_{0}, done_{0};
};

}  // namespace gs::nd
