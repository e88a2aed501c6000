// Address space that contribution blocks have left, kept for the next ones as arrays are (base/kept_memory.hpp), within
// the same bound: one piece, of which the first pages.
#pragma once
#include <cstddef>

namespace gs {

// Pages are met from its start on, up to `touched` at most.
struct AddressSpace {
  std::byte* start = nullptr;
  std::size_t size = 0, touched = 0;  // [bytes]
};

AddressSpace take_space(std::size_t bytes);  // so many at least; nowhere if there are none
void give_space(AddressSpace space);

// Those from `touched` on go back to the system.
void give_pages_from(AddressSpace& space, std::size_t touched);

}  // namespace gs
