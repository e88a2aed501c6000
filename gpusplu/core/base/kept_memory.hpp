// Keeps freed arrays for later allocations.
//
// A factorization of a few milliseconds spends half of its time on page faults if the previous one returned its memory
// to the system. So gpusplu keeps a small amount of memory, plus large arrays with pages that the system may reclaim.
#pragma once
#include <cstddef>

namespace gs {

// Like std::malloc and std::free, but give_memory needs the requested size. Callable from any thread; lock-free,
// because no lock may be held across a fork.
void* take_memory(std::size_t bytes);
void give_memory(void* memory, std::size_t bytes);
void drop_kept_memory();

// Gives the pages inside a part of an array back to the system. Its contents are lost.
void drop_pages(void* memory, std::size_t bytes);

}  // namespace gs
