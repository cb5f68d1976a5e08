#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace twiddle {

// Measured engine choices kept in a text file between runs, one a line: engine, milliseconds, key. It saves time and
// nothing else, so nothing about the file is an error: lines that make no sense are taken out, a file that is another
// thing is kept as FILE.old, either with one warning, and what cannot be written is not.
class ChoiceCache {
 public:
  struct Entry {
    std::string engine;
    double milliseconds = 0;
  };

  using Warn = std::function<void(const std::string&)>;

  explicit ChoiceCache(std::string file, Warn warn = {});  // empty: keeps nothing
  std::optional<Entry> find(const std::string& key);       // reads the file when it is first asked
  void store(const std::string& key, const Entry& entry);  // also what other programs wrote meanwhile stays

 private:
  void load();
  void write() const;
  void warn(const std::string& problem);
  std::string file_;
  Warn warn_;
  bool loaded_ = false;
  std::map<std::string, Entry> entries_;
};

}  // namespace twiddle
