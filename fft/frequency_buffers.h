#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "fft/grid.h"
#include "framework/tensor.h"

namespace twiddle {

// Holds the memory of all spectra of a model within a budget: spectra, keyed by their source so that a valid one is not
// computed again, phases of strided planes (polyphase), and scratch. The least recently used spectrum is evicted first.
// Among spectra requested in turn, the most recently used one is evicted first, as its next use is the latest.
class FrequencyBuffers {
 public:
  explicit FrequencyBuffers(std::size_t budget_bytes) : budget_(budget_bytes) {}

  // The source of a spectrum: a tensor at its current version, with a mask at its current version if there is one,
  // divided into `planes` and stored as `kind`.
  struct Subject {
    Tensor source;
    Planes planes;
    std::string kind;
    Tensor mask = {};
    bool in_turn = false;  // weights in evaluation: requested once per batch, layer by layer
  };
  // Returns the subject's spectrum; `compute` writes it if it is not cached. It stays while its owner holds it, and
  // after that until its memory is needed.
  std::shared_ptr<void> spectrum(Stream& stream, const Subject& subject, std::size_t bytes,
                                 const std::function<void(void*)>& compute);
  // The same for other values computed from the subject: `make` returns an owner of memory that it takes by scratch().
  std::shared_ptr<void> find_or_make(Stream& stream, const Subject& subject,
                                     const std::function<std::shared_ptr<void>()>& make);
  std::shared_ptr<void> scratch(Stream& stream, std::size_t bytes);  // not cached
  void forget();                                                     // forgets all spectra
  void forget_gone();                                                // spectra of freed tensors

  struct Use {
    std::size_t held = 0, peak = 0;         // bytes: current and maximum
    std::int64_t computed = 0, reused = 0;  // spectra
  };
  Use use() const;
  void reset_use();  // resets the counts, and the peak to the bytes held
  std::size_t budget() const { return budget_; }

 private:
  struct Entry {
    Version source, mask;
    std::weak_ptr<const void> life;  // of the source
    Planes planes;
    std::string kind;
    std::shared_ptr<void> bytes;
  };
  using Entries = std::list<Entry>;
  void drop_outdated(const Subject& subject);
  void evict_for(std::size_t bytes);

  std::size_t budget_;
  Entries entries_;                                                       // the last one is evicted first
  std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>(0);  // bytes; a block may outlive this object
  std::int64_t capture_changes_ = 0;
  Use use_;
};

}  // namespace twiddle
