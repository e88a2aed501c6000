#include <algorithm>
#include <cmath>
#include <cstring>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "shared/costs.hpp"

namespace gs {

static_assert(std::is_trivially_copyable_v<Costs>);

void bind_costs(nb::module_& m) {
  nb::class_<Costs>(m, "Costs", "Constants of predicted seconds; see kernels/shared/costs.hpp.")
      .def(
          "__init__",
          [](Costs* self, In<double> constants) {
            require_length(constants, sizeof(Costs) / sizeof(double), "constants");
            const double *begin = constants.data(), *end = begin + constants.shape(0);
            require(std::all_of(begin, end, [](double c) { return std::isfinite(c) && c >= 0; }),
                    "constants must be finite and not negative");
            std::memcpy(self, begin, sizeof(Costs));
          },
          "constants"_a);
}

}  // namespace gs
