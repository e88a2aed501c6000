#include "bind/bind.hpp"

namespace gs {

void bind_factor(nb::module_&) {}

}  // namespace gs
