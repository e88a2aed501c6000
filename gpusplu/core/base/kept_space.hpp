// Keeps the address space of freed contribution blocks for later ones, like kept arrays (base/kept_memory.hpp) and
// within the same bound: one block, and the first pages of it.
#pragma once
#include <cstddef>

namespace gs {

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
