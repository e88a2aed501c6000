// Whether this build has kernels that this processor can run: it may have been built for another one
// (cmake/levels.cmake).
#pragma once

namespace gs {

bool simd_is_available();

}  // namespace gs
