#include "bind/bind.hpp"

namespace gs {

void bind_matching(nb::module_&) {}

}  // namespace gs
