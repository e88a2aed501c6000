#include "bind/bind.hpp"

namespace gs {

void bind_dense(nb::module_&) {}

}  // namespace gs
