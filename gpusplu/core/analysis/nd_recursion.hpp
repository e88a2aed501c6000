// The recursion of nested dissection on one thread.
#pragma once
#include <functional>

#include "analysis/nd_separator.hpp"
#include "analysis/nd_split.hpp"

namespace gs::nd {

inline constexpr idx kLeaf = 240;  // pieces up to this size are ordered by minimum degree

struct Context {
  Graph whole;
  idx* order;                          // places -> vertices of the whole graph
  std::function<Coarse()> coarse;      // which partitions suit the coarse levels
  std::function<void(Piece&&)> defer;  // takes large pieces to be ordered elsewhere; none: all are ordered here
};

// What a thread needs for the recursion.
struct Recursion {
  const Context& context;
  Workspace ws;
  std::vector<idx> place;  // for the leaves

  explicit Recursion(const Context& c) : context(c), place(c.whole.n, 0) {}
  void dissect(Piece& piece);
};

}  // namespace gs::nd
