// The recursion of nested dissection.
#pragma once
#include <functional>

#include "analysis/dissection/separator.hpp"
#include "analysis/dissection/split.hpp"

namespace gs::nd {

inline constexpr idx kLeaf = 240;  // components up to this size are ordered by minimum degree

struct Context {
  Graph whole;
  idx* order;                      // places -> vertices of the whole graph
  std::function<Coarse()> coarse;  // partition type of the coarse levels
};

void dissect(const Context& context, Workspace& ws, Component& component);

}  // namespace gs::nd
