// Memory that arrays have left, kept for the next ones.
//
// A factorization of a few milliseconds spends half of them on the system's work on fresh pages: what the one before it
// has freed went back to the system. So some of it is kept, no more than anybody notices, and large arrays of which the
// system may take the pages.
#pragma once
#include <cstddef>

namespace gs {

// As std::malloc and std::free, but that whoever gives memory back says how much he asked for. For any thread, and
// without a lock: nothing can be held across a fork.
void* take_memory(std::size_t bytes);
void give_memory(void* memory, std::size_t bytes);

void drop_kept_memory();

}  // namespace gs
