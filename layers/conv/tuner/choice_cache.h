#pragma once
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twiddle {

// Everything that a measured choice depends on. If `rest` differs, a stored choice does not count; if only the batch
// differs, it may.
struct ChoiceKey {
  int batch = 0;
  std::string rest;
};

// The entry, by batch, whose plan a batch may reuse without measuring: the next larger one, else the largest if it is
// at least half as large. A small batch says little about a large one: at batch 1 a plan may win that takes twice the
// time of another at batch 64.
template <class ByBatch>
auto find_reusable(ByBatch& by_batch, int batch) {
  const auto larger = by_batch.lower_bound(batch);
  if (larger != by_batch.end() || by_batch.empty()) return larger;
  const auto largest = std::prev(by_batch.end());
  return largest->first >= batch - largest->first ? largest : by_batch.end();
}

// Measured choices, kept in a text file between runs, one per line: plan, milliseconds, key. The file only saves time,
// so nothing that is wrong with it stops a run. Damaged lines are removed with a warning. A file that does not begin as
// a cache is neither used nor replaced, with a warning: its name may be a mistake. Processes that write one file at the
// same time lose no entries.
class ChoiceCache {
 public:
  struct Entry {
    std::string choice;
    double milliseconds = 0;
  };
  struct Line {
    ChoiceKey key;
    Entry entry;
  };

  using Warn = std::function<void(const std::string&)>;

  // Without a file nothing is kept. `retune`: finds nothing, so that everything is measured again and stored.
  explicit ChoiceCache(std::string file, Warn warn = {}, bool retune = false);
  std::optional<Entry> find(const ChoiceKey& key);  // the first call reads the file
  std::optional<Entry> find_other_batch(const ChoiceKey& key);
  // Adds the lines to what the file has by now, in one write.
  void store(const std::vector<Line>& lines);
  void store(const ChoiceKey& key, const Entry& entry) { store({{key, entry}}); }
  // Why stored lines are missing in the file: "cannot write ..."; empty: none is missing.
  const std::string& write_failure() const { return write_failure_; }

 private:
  using Batches = std::map<int, Entry>;
  void load();
  std::size_t read();  // returns the number of damaged lines, which the next write removes
  void write();
  void fail(const std::string& why);
  void warn(const std::string& problem);
  const Batches& batches_of(const ChoiceKey& key);
  std::string file_;
  Warn warn_;
  bool retune_, loaded_ = false;
  bool usable_ = true;  // false: the file is neither used nor replaced
  bool waits_for_lock_ = true;
  std::string write_failure_;
  std::map<std::string, Batches> entries_;  // by the rest of the key
};

}  // namespace twiddle
