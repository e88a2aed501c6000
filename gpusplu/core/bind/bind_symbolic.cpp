#include "bind/bind.hpp"

namespace gs {

void bind_symbolic(nb::module_&) {}

}  // namespace gs
