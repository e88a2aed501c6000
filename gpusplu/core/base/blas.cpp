#include "base/blas.hpp"

namespace gs {

void ensure_blas() {}
bool blas_loaded() { return false; }

}  // namespace gs
