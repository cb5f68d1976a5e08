#include "fft/frequency_buffers.h"

#include <algorithm>

namespace twiddle {

FrequencyBuffers::Slot FrequencyBuffers::spectrum(Stream& stream, const Tensor& source, const Planes& planes,
                                                  const std::string& way, std::size_t bytes) {
  // What was computed outside of a recording is not there when it is played, and the other way round.
  if (const std::int64_t changes = stream.recording_changes(); changes != recording_changes_) {
    forget();
    recording_changes_ = changes;
  }
  const Version version = source.version();
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.version == version && entry.planes == planes && entry.way == way;
  });
  if (known != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, known);
    ++use_.reused;
    return {known->bytes, true};
  }
  drop_outdated(source, planes, way);
  make_room(bytes);
  entries_.push_front({version, source.life(), planes, way, bytes, stream.allocate(bytes)});
  ++use_.computed;
  count(bytes);
  return {entries_.front().bytes, false};
}

std::shared_ptr<void> FrequencyBuffers::scratch(Stream& stream, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  make_room(bytes);
  const std::shared_ptr<void> block = stream.allocate(bytes);
  count(bytes);
  return {block.get(), [block, bytes, held = held_](void*) { *held -= bytes; }};
}

void FrequencyBuffers::forget() {
  for (auto entry = entries_.begin(); entry != entries_.end();) entry = drop(entry);
}

FrequencyBuffers::Use FrequencyBuffers::use() const {
  Use use = use_;
  use.held = *held_;
  return use;
}

// What nobody can ask for again: spectra of tensors that are gone, and an older version of the same planes.
void FrequencyBuffers::drop_outdated(const Tensor& source, const Planes& planes, const std::string& way) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool older =
        entry->version.storage == source.version().storage && entry->planes == planes && entry->way == way;
    const bool useless = (older || entry->source.expired()) && entry->bytes.use_count() == 1;
    entry = useless ? drop(entry) : std::next(entry);
  }
}

// Those that a pass still works with stay.
void FrequencyBuffers::make_room(std::size_t bytes) {
  for (auto entry = entries_.end(); entry != entries_.begin() && *held_ + bytes > budget_;) {
    --entry;
    if (entry->bytes.use_count() == 1) entry = drop(entry);
  }
}

FrequencyBuffers::Entries::iterator FrequencyBuffers::drop(Entries::iterator entry) {
  *held_ -= entry->size;
  return entries_.erase(entry);
}

void FrequencyBuffers::count(std::size_t bytes) {
  *held_ += bytes;
  use_.peak = std::max(use_.peak, *held_);
}

}  // namespace twiddle
