#include "bind/bind.hpp"

namespace gs {

void bind_ordering(nb::module_&) {}

}  // namespace gs
