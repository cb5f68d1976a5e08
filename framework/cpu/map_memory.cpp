#include "framework/cpu/map_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace twiddle {

namespace {

constexpr std::size_t large_page = std::size_t(2) << 20;

void* map(void* at, std::size_t bytes, int protection, int flags) {
  void* const block = ::mmap(at, bytes, protection, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

// Where a range of addresses begins that nothing uses: 1 TiB, or less under a limit on addresses. The system takes
// addresses for others from the range's other end.
void* unused_addresses(std::size_t least) {
  for (std::size_t bytes = std::size_t(1) << 40; bytes >= least + large_page; bytes /= 2)
    if (void* const range = map(nullptr, bytes, PROT_NONE, MAP_NORESERVE)) {
      ::munmap(range, bytes);
      const auto address = reinterpret_cast<std::uintptr_t>(range);
      return static_cast<char*>(range) + (large_page - address % large_page) % large_page;
    }
  return nullptr;
}

}  // namespace

void* map_memory(void* at, std::size_t bytes) {
  if (at == nullptr) at = unused_addresses(bytes);
  const int exactly = at == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* const block = map(at, bytes, PROT_READ | PROT_WRITE, exactly);
  if (block != nullptr && at != nullptr && block != at) {  // before 4.17, Linux takes the address for a wish
    ::munmap(block, bytes);
    return nullptr;
  }
  if (block != nullptr) ::madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void unmap_memory(void* begin, std::size_t bytes) {
  ::munmap(begin, bytes);
}

}  // namespace twiddle
