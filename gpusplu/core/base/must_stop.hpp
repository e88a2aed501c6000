// must_stop() of base/operation.hpp for kernels, which may not have inline functions in common with other code.
#pragma once

namespace gs {

// Where it holds, they leave their work undone.
bool kernel_must_stop() noexcept;

}  // namespace gs
