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

// The address space of freed contribution blocks is kept for later ones too, within the same bound: one block, and the
// first pages of it.
// Pages are used from the start on, up to `touched` at most.
struct AddressSpace {
  std::byte* start = nullptr;
  std::size_t size = 0, touched = 0;  // [bytes]
};

AddressSpace take_space(std::size_t bytes);  // at least so many bytes; null if none are kept
void give_space(AddressSpace space);

// Returns the pages from `touched` on to the system.
void give_pages_from(AddressSpace& space, std::size_t touched);

}  // namespace gs
