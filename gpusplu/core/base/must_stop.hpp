// must_stop() of base/operation.hpp for kernels, which must not share inline functions with other code.
#pragma once

namespace gs {

// If true, kernels return and leave their work undone.
bool kernel_must_stop() noexcept;

}  // namespace gs
