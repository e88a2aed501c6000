// Whether kernels are there that this processor can run: a copy may have been made for another one
// (cmake/levels.cmake).
#pragma once

namespace gs {

bool simd_is_available();

}  // namespace gs
