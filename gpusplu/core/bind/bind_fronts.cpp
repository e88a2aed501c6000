#include "bind/bind.hpp"

namespace gs {

void bind_fronts(nb::module_&) {}

}  // namespace gs
