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

// The memory of all spectra of a model, kept within a budget: spectra by what they are the spectrum of, so that one
// which is still valid is not computed again, and scratch. Also the memory of phases of strided planes (polyphase).
// Those used longest ago go first; of those that are asked for in turn the one used last, whose turn is the farthest
// away.
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
  // The same for what else can be computed of it: `make` returns an owner of memory that it takes by scratch().
  std::shared_ptr<void> find_or_make(Stream& stream, const Subject& subject,
                                     const std::function<std::shared_ptr<void>()>& make);
  std::shared_ptr<void> scratch(Stream& stream, std::size_t bytes);  // what nobody asks for again
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
  void make_room(std::size_t bytes);

  std::size_t budget_;
  Entries entries_;                                                       // the last one is evicted first
  std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>(0);  // bytes; a block may outlive this object
  std::int64_t capture_changes_ = 0;
  Use use_;
};

}  // namespace twiddle
