#include "base/blas.hpp"

namespace gs {

void ensure_blas() {}

}  // namespace gs
