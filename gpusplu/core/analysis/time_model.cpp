#include "analysis/time_model.hpp"

#include <algorithm>
#include <cmath>

namespace gs {

double column_seconds(idx n, const OrderingCost& cost, int threads) {
  const double serial = 15e-9 * n + 2.5e-9 * (double)cost.lnz + cost.flops / 1.2e9;
  return serial / (serial > 1e-4 ? std::min(threads, 4) * 0.75 + 0.25 : 1.0);
}

double front_seconds(idx n, const OrderingCost& cost, int threads) {
  // wide fronts run near the rate of matrix multiplication, narrow ones at that of vector updates
  const double width = std::sqrt(cost.flops / std::max<double>(1.0, (double)cost.lnz));
  const double rate = 2e9 + 0.4e9 * std::min(60.0, width);
  const double serial = 60e-9 * n + 3e-9 * (double)cost.lnz + cost.flops / rate;
  return serial / (serial > 1e-4 ? 0.8 * threads + 0.2 : 1.0);
}

}  // namespace gs
