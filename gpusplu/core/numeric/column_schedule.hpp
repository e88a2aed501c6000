// How a team of threads divides a refactorization: independent subtrees first, then the nodes above them as a pipeline.
#pragma once
#include <vector>

#include "numeric/column_nodes.hpp"

namespace gs {

// Time: nearly O(segments).
template <class T> ColumnSchedule schedule_nodes(const ColumnNodes<T>& f, const RawVector<off>& a_ptr, int n_threads);

}  // namespace gs
