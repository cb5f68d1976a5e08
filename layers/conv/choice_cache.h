#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace twiddle {

// All that a choice depends on. Where the rest is another, what was measured does not count; where the batch alone is,
// it may do.
struct ChoiceKey {
  int batch = 0;
  std::string rest;
};

// Measured choices kept in a text file between runs, one a line: the plan, milliseconds, key. It saves time and nothing
// else: lines that make no sense are taken out with one warning, and that the file cannot be written is one warning,
// too. But no file is ever replaced that does not begin as a cache does: that is an error (ErrorKind::config), for its
// name is a mistake.
class ChoiceCache {
 public:
  struct Entry {
    std::string choice;
    double milliseconds = 0;
  };

  using Warn = std::function<void(const std::string&)>;

  // Without a file it keeps nothing. `retune`: it knows nothing, so that all is chosen anew, and stored.
  explicit ChoiceCache(std::string file, Warn warn = {}, bool retune = false);
  std::optional<Entry> find(const ChoiceKey& key);  // reads the file when it is first asked
  // Of the next larger batch that is known, or else of the largest.
  std::optional<Entry> find_other_batch(const ChoiceKey& key);
  void store(const ChoiceKey& key, const Entry& entry);  // also what other programs wrote meanwhile stays
  // Why the file does not hold what was stored: "cannot write ..."; empty: it holds it all.
  const std::string& write_failure() const { return write_failure_; }

 private:
  using Batches = std::map<int, Entry>;
  void load();
  void write();
  void warn(const std::string& problem);
  const Batches& batches_of(const ChoiceKey& key);
  std::string file_;
  Warn warn_;
  bool retune_, loaded_ = false;
  std::string write_failure_;
  std::map<std::string, Batches> entries_;  // by the rest of the key
};

}  // namespace twiddle
