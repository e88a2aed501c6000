// Predicted seconds of a refactorization on this machine's processors, from what an ordering costs.
#pragma once
#include "analysis/column_counts.hpp"

namespace gs {

// Constants fitted on the real matrices (asv_bench/peers/methods.py prints measured against predicted).
double column_seconds(idx n, const OrderingCost& cost, int threads);
double front_seconds(idx n, const OrderingCost& cost, int threads);

}  // namespace gs
