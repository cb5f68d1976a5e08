#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "fft/grid.h"
#include "framework/tensor.h"

namespace twiddle {

// The memory of all spectra of a model, kept within a budget: spectra by what they are the spectrum of, so that one
// which is still valid is not computed again, and scratch. Those used longest ago go first.
class FrequencyBuffers {
 public:
  explicit FrequencyBuffers(std::size_t budget_bytes) : budget_(budget_bytes) {}

  struct Slot {
    std::shared_ptr<void> bytes;
    bool current = false;  // it holds this spectrum; else the caller computes it now
  };
  // The spectrum of `source` in its present version, cut into `planes` and stored by the transform `way`. It stays
  // while its owner holds it, and after that until the room is needed.
  Slot spectrum(Stream& stream, const Tensor& source, const Planes& planes, const std::string& way, std::size_t bytes);
  std::shared_ptr<void> scratch(Stream& stream, std::size_t bytes);  // what nobody asks for again
  void forget();                                                     // forgets all spectra

  struct Use {
    std::size_t held = 0, peak = 0;         // bytes now and at most
    std::int64_t computed = 0, reused = 0;  // spectra
  };
  Use use() const;
  std::size_t budget() const { return budget_; }

 private:
  struct Entry {
    Version version;
    std::weak_ptr<const void> source;
    Planes planes;
    std::string way;
    std::size_t size;
    std::shared_ptr<void> bytes;
  };
  using Entries = std::list<Entry>;
  void drop_outdated(const Tensor& source, const Planes& planes, const std::string& way);
  void make_room(std::size_t bytes);
  Entries::iterator drop(Entries::iterator entry);
  void count(std::size_t bytes);

  std::size_t budget_;
  Entries entries_;                                                       // the latest first
  std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>(0);  // bytes; scratch may outlive this object
  std::int64_t recording_changes_ = 0;
  Use use_;
};

}  // namespace twiddle
