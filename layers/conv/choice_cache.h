#pragma once
#include <map>
#include <optional>
#include <string>

namespace twiddle {

// Measured engine choices kept in a text file between runs, one a line: engine, milliseconds, key. Lines that make no
// sense are ignored and a file that cannot be read or written is no error: the cache saves time and nothing else.
class ChoiceCache {
 public:
  struct Entry {
    std::string engine;
    double milliseconds = 0;
  };

  explicit ChoiceCache(std::string file);  // empty: keeps nothing
  std::optional<Entry> find(const std::string& key) const;
  void store(const std::string& key, const Entry& entry);  // also what other programs wrote meanwhile stays

 private:
  void load();
  std::string file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace twiddle
