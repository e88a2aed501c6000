// Free memory of the host.
#pragma once
#include <new>

#include "base/types.hpp"

namespace gs {

// Bytes that this process may still use: available memory and free swap space, the limits of its control groups
// (version 2: memory.max) and of its address space. The largest number where the system does not say it.
off free_host_memory();

// Thrown before memory is allocated that the host does not have.
struct HostMemoryShort : std::bad_alloc {
  off needed, free;  // [bytes]
  HostMemoryShort(off needed, off free) : needed(needed), free(free) {}
  const char* what() const noexcept override { return "the factorization needs more memory than is free"; }
};

}  // namespace gs
