#pragma once
#include <atomic>
#include <cstddef>
#include <memory>

namespace twiddle {

// A range of a GPU's addresses to which memory is mapped in chunks. Neighboring chunks serve one request together, so a
// pool on it has fewer fragments than one of blocks from cudaMalloc, which cannot be joined.
class DeviceRange {
 public:
  static constexpr std::size_t chunk = std::size_t(16) << 20;

  // Null: the GPU has no such addresses.
  static std::shared_ptr<DeviceRange> reserve(int index);
  virtual ~DeviceRange() = default;

  // Chunks at that address, with null at the start of the range; null: no memory, or out of the range.
  virtual void* map(void* at, std::size_t bytes) = 0;
  // Waits for the GPU first, unless `capturing`.
  virtual void unmap(void* begin, std::size_t bytes) = 0;

  // A graph is being captured: waiting for the GPU is an error, and all earlier work has finished.
  std::atomic<bool> capturing = false;
};

}  // namespace twiddle
