#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "shared/costs.hpp"

namespace gs {

void bind_costs(nb::module_& m) {
  nb::class_<Costs>(m, "Costs", "Constants of predicted seconds; see kernels/shared/costs.hpp.")
      .def(
          "__init__",
          [](Costs* self, In<double> constants) {
            require(take_numbers(constants, *self), "constants must be as many as there are, finite and not negative");
          },
          "constants"_a);
}

}  // namespace gs
