#include "bind/bind.hpp"

namespace gs {

void bind_column_lu(nb::module_&) {}

}  // namespace gs
