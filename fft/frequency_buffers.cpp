#include "fft/frequency_buffers.h"

#include <algorithm>

namespace twiddle {

std::shared_ptr<void> FrequencyBuffers::spectrum(Stream& stream, const Subject& subject, std::size_t bytes,
                                                 const std::function<void(void*)>& compute) {
  return find_or_make(stream, subject, [&] {
    std::shared_ptr<void> block = scratch(stream, bytes);
    compute(block.get());
    return block;
  });
}

std::shared_ptr<void> FrequencyBuffers::find_or_make(Stream& stream, const Subject& subject,
                                                     const std::function<std::shared_ptr<void>()>& make) {
  // Values computed outside of a graph are not valid when it is replayed, and vice versa.
  if (const std::int64_t changes = stream.capture_changes(); changes != capture_changes_) {
    forget();
    capture_changes_ = changes;
  }
  const Version source = subject.source.version();
  const Version mask = subject.mask.defined() ? subject.mask.version() : Version{};
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.source == source && entry.mask == mask && entry.planes == subject.planes && entry.kind == subject.kind;
  });
  const auto place = [&] { return subject.in_turn ? entries_.end() : entries_.begin(); };
  if (known != entries_.end()) {
    entries_.splice(place(), entries_, known);
    ++use_.reused;
    return known->bytes;
  }
  drop_outdated(subject);
  std::shared_ptr<void> block = make();  // on an exception the entry must not remain
  entries_.insert(place(), {source, mask, subject.source.life(), subject.planes, subject.kind, block});
  ++use_.computed;
  return block;
}

std::shared_ptr<void> FrequencyBuffers::scratch(Stream& stream, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  evict_for(bytes);
  const std::shared_ptr<void> block = stream.allocate(bytes);
  *held_ += bytes;
  use_.peak = std::max(use_.peak, *held_);
  return {block.get(), [block, bytes, held = held_](void*) { *held -= bytes; }};
}

void FrequencyBuffers::forget() {
  entries_.clear();
}

void FrequencyBuffers::forget_gone() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.life.expired(); });
}

FrequencyBuffers::Use FrequencyBuffers::use() const {
  Use use = use_;
  use.held = *held_;
  return use;
}

void FrequencyBuffers::reset_use() {
  use_ = {.peak = *held_};
}

// Drops spectra that cannot be requested again: those of freed tensors, of older versions, and of the same planes with
// an older mask.
void FrequencyBuffers::drop_outdated(const Subject& subject) {
  forget_gone();
  const Version version = subject.source.version();
  std::erase_if(entries_, [&](const Entry& entry) {
    const bool same_planes = entry.planes == subject.planes && entry.kind == subject.kind;
    return entry.source.storage == version.storage && (entry.source != version || same_planes);
  });
}

// Keeps spectra that a pass still uses.
void FrequencyBuffers::evict_for(std::size_t bytes) {
  if (*held_ + bytes > budget_) forget_gone();
  for (auto entry = entries_.end(); entry != entries_.begin() && *held_ + bytes > budget_;) {
    --entry;
    if (entry->bytes.use_count() == 1) entry = entries_.erase(entry);
  }
}

}  // namespace twiddle
