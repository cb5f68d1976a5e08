#pragma once
#include <cstddef>

namespace twiddle {

// Whole pages from the system at that address, or null: no memory, or others use these addresses. With no address, the
// pages begin a large range of addresses that nothing uses. They are on large pages if the system has some.
void* map_memory(void* at, std::size_t bytes);
void unmap_memory(void* begin, std::size_t bytes);  // any part of what was mapped

}  // namespace twiddle
