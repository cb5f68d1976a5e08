#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "framework/convolution.h"

namespace twiddle {

// Measured choices, of engines and of an engine's own ways, kept in a text file between runs, one a line: the choice,
// milliseconds, key. It saves time and nothing else, so nothing about the file is an error: lines that make no sense
// are taken out, a file that is another thing is kept as FILE.old, either with one warning, and what cannot be written
// is not.
class ChoiceCache {
 public:
  struct Entry {
    std::string choice;
    double milliseconds = 0;
  };

  using Warn = std::function<void(const std::string&)>;

  // Without a file it keeps nothing. `retune`: it knows nothing, so that all is chosen anew, and stored.
  explicit ChoiceCache(std::string file, Warn warn = {}, bool retune = false);
  std::optional<Entry> find(const std::string& key);       // reads the file when it is first asked
  void store(const std::string& key, const Entry& entry);  // also what other programs wrote meanwhile stays

 private:
  void load();
  void write() const;
  void warn(const std::string& problem);
  std::string file_;
  Warn warn_;
  bool retune_, loaded_ = false;
  std::map<std::string, Entry> entries_;
};

// All that a choice depends on, "among" being what was chosen from: where one of these is another, what was measured
// does not count.
std::string choice_key(const Device& device, const ConvProblem& problem, ConvPass pass, std::size_t workspace_limit,
                       const std::string& among);

}  // namespace twiddle
