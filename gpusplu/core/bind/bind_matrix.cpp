#include "bind/bind.hpp"

namespace gs {

void bind_matrix(nb::module_&) {}

}  // namespace gs
