#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "framework/device.h"

namespace twiddle {

// A caching free list over a raw allocator, used by both kinds of stream. A block returns to the list when its last
// owner releases it. It then serves later requests, unsplit or in parts. Blocks may outlive the Pool object.
class Pool {
 public:
  using Allocate = std::function<void*(std::size_t bytes)>;  // null: out of memory
  using Free = std::function<void(void*)>;

  // The source of blocks of 256 KiB or larger, instead of `allocate`: pieces of one address range. Each piece is
  // requested at a given address, except for the first. Neighbors are joined, so that unused memory between others
  // serves larger requests, and any part may be freed alone. Addresses and sizes are multiples of `granularity`.
  struct Pieces {
    std::function<void*(void* at, std::size_t bytes)> allocate;  // null: no memory, or not at that address
    std::function<void(void*, std::size_t bytes)> free;
    std::size_t granularity = 4096;
  };

  Pool(Allocate allocate, Free free, std::optional<Pieces> pieces = {});

  std::shared_ptr<void> take(
      std::size_t bytes);  // if out of memory, throws an Error of kind device that reports what is held
  void release_cached();   // frees unused blocks
  // start_holding() starts recording allocated blocks. stop_holding() returns them, both unused blocks and those that
  // still have owners; they are not reused while the caller keeps them.
  // `fresh`: if memory is short, blocks returned since then may be freed.
  // `before`: expects the same requests as were recorded last. They are served from one piece of memory in which their
  // blocks were laid out beforehand. From the first request that differs, or if there is no memory for such a piece,
  // blocks are served as usual. Returned blocks are not freed.
  // `again`: like `before`, but reuses the piece of the latest `before` while it is held. The two must never run at
  // once.
  enum class Holding : std::uint8_t { fresh, before, again };
  void start_holding(Holding as = Holding::fresh);
  std::vector<std::shared_ptr<void>> stop_holding();
  MemoryUse use() const;
  void reset_peak();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace twiddle
