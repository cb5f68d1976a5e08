#include "framework/pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Sizes are rounded up so that batches of nearly equal size share blocks.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = bytes < (std::size_t(1) << 20) ? 512 : std::size_t(1) << 16;
  return std::max<std::size_t>(step, (bytes + step - 1) / step * step);
}

// The largest block that may serve a request: half of a small one may lie idle, an eighth of a large one.
std::size_t largest_for(std::size_t size) {
  return size < (std::size_t(1) << 20) ? 2 * size : size + size / 8;
}

}  // namespace

struct Pool::State {
  Allocate allocate;
  Free free;
  std::mutex mutex;
  std::multimap<std::size_t, void*> unused;
  MemoryUse use;
  bool holding = false;
  std::set<void*> noted;  // taken since holding began

  ~State() { drop_unused(); }

  void drop_unused() {
    for (const auto& [size, block] : unused) free(block);
    unused.clear();
    use.cached = 0;
  }

  void give_back(void* block, std::size_t size) {
    const std::lock_guard lock(mutex);
    unused.emplace(size, block);
    use.in_use -= size;
    use.cached += size;
  }

  std::shared_ptr<void> hand_out(void* block, std::size_t size, const std::shared_ptr<State>& self) {
    use.in_use += size;
    use.peak = std::max(use.peak, use.in_use);
    // The block keeps the state alive, so a tensor may outlive its stream.
    return {block, [state = self, size](void* returned) { state->give_back(returned, size); }};
  }
};

Pool::Pool(Allocate allocate, Free free) : state_(std::make_shared<State>()) {
  state_->allocate = std::move(allocate);
  state_->free = std::move(free);
}

std::shared_ptr<void> Pool::take(std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  std::size_t size = rounded(bytes);
  void* block = nullptr;
  const auto found = state_->unused.lower_bound(size);
  if (found != state_->unused.end() && found->first <= largest_for(size)) {
    size = found->first;
    block = found->second;
    state_->unused.erase(found);
    state_->use.cached -= size;
  } else {
    block = state_->allocate(size);
    ++state_->use.system_allocations;
    if (block == nullptr) {  // what lies unused may be enough
      state_->drop_unused();
      block = state_->allocate(size);
    }
    if (block == nullptr) {
      throw OutOfMemory(join("out of memory: ", format_bytes(bytes), " asked for, ", format_bytes(state_->use.in_use),
                             " in use. A smaller batch size or convolution.workspace_limit needs less"));
    }
  }
  if (state_->holding) state_->noted.insert(block);
  return state_->hand_out(block, size, state_);
}

void Pool::start_holding() {
  const std::lock_guard lock(state_->mutex);
  state_->holding = true;
}

std::vector<std::shared_ptr<void>> Pool::stop_holding() {
  const std::lock_guard lock(state_->mutex);
  const std::set<void*> noted = std::exchange(state_->noted, {});
  state_->holding = false;
  std::vector<std::shared_ptr<void>> held;
  for (auto entry = state_->unused.begin(); entry != state_->unused.end();) {
    const auto [size, block] = *entry;
    if (noted.count(block) == 0) {
      ++entry;
      continue;
    }
    entry = state_->unused.erase(entry);
    state_->use.cached -= size;
    held.push_back(state_->hand_out(block, size, state_));
  }
  return held;
}

void Pool::release_cached() {
  const std::lock_guard lock(state_->mutex);
  state_->drop_unused();
}

MemoryUse Pool::use() const {
  const std::lock_guard lock(state_->mutex);
  return state_->use;
}

void Pool::reset_peak() {
  const std::lock_guard lock(state_->mutex);
  state_->use.peak = state_->use.in_use;
}

}  // namespace twiddle
