#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/place.h"

namespace twiddle {

// A YAML value, free of the parser that read it.
struct ConfigNode {
  enum class Kind : std::uint8_t { null, scalar, sequence, mapping } kind = Kind::null;
  struct Entry;
  Place place;
  std::string text;               // scalar
  bool quoted = false;            // scalar: "5" in quotes is text, not a number
  std::vector<ConfigNode> items;  // sequence
  std::vector<Entry> entries;     // mapping, in the order written; keys are unique

  const ConfigNode* find(std::string_view key) const;
};
struct ConfigNode::Entry {
  std::string key;
  Place place;
  ConfigNode value;
};

ConfigNode text_node(std::string text, const Place& place);  // a scalar

// Collects errors so that all of them can be told in one go.
class Diagnostics {
 public:
  void add(const Place& place, std::string message, std::string hint = {});
  bool empty() const { return messages_.empty(); }
  std::size_t size() const { return messages_.size(); }
  // One block an error, in order of place: "file:14:5: error: ...", the line, a caret, the hint.
  std::string text() const;
  void throw_if_any() const;  // Error of kind config with text() and the count

 private:
  struct Message {
    Place place;
    std::string message, hint;
  };
  std::vector<const Message*> ordered() const;
  std::vector<Message> messages_;
};

// Typed reading of a mapping. A wrong value is put down in the diagnostics and the fallback is returned, so that
// reading goes on and every error of a file is found at once. finish() reports the keys that nobody read.
class Params {
 public:
  // `owner` names the reader in messages: "conv2d", "train". A null node reads as an empty mapping.
  Params(const ConfigNode& node, std::string owner, Diagnostics& diagnostics);

  bool has(std::string_view key);
  std::int64_t integer(std::string_view key, std::optional<std::int64_t> fallback, std::int64_t least,
                       std::int64_t most);  // no fallback: needed
  double number(std::string_view key, std::optional<double> fallback, double least, double most);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::optional<std::string> fallback);
  std::string choice(std::string_view key, std::string_view fallback, const std::vector<std::string>& choices);
  std::uint64_t bytes(std::string_view key, std::uint64_t fallback);  // 512MiB
  std::array<int, 2> pair(std::string_view key, std::optional<std::array<int, 2>> fallback, int least,
                          int most);                                                // 3 or [3, 5]: height, width
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback);  // a number or a list
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least,
                                     std::int64_t most);  // a list; empty where absent
  std::vector<std::string> texts(std::string_view key);   // a text or a list; empty where absent
  // A file or folder: beside the file that names it, where there is such a one, else in the current folder. What was
  // used holds it as an absolute path, so that it is found from any folder.
  std::string path(std::string_view key);
  std::vector<std::string> paths(std::string_view key);  // one or a list; empty where absent
  Params child(std::string_view key);                    // an empty mapping where absent
  const ConfigNode* node(std::string_view key);          // null where absent
  // `key: sgd` or `key: {sgd: {lr: 0.1}}`: the name and its options; the name is `fallback` where the key is absent.
  std::pair<std::string, Params> named(std::string_view key, std::string_view fallback);

  void error(std::string_view key, std::string message,
             std::string hint = {});  // at the key's value, or at the mapping
  void finish();                      // unknown keys become errors, with a suggestion

  // Every key as it was used, in the order of reading: as given, or its default; sections and named choices with all
  // that was read of theirs. A key that was neither given nor has a default of its own is left out.
  ConfigNode used() const;
  void use(std::string_view key, ConfigNode value);  // for a reader that makes out a value itself
  const Place& place() const { return node_->place; }
  const std::string& owner() const { return owner_; }
  Diagnostics& diagnostics() { return *diagnostics_; }

 private:
  // What was used of a key. Shared between a Params and those of its sections, which fill in their part.
  struct Used {
    ConfigNode value;
    std::vector<std::pair<std::string, std::shared_ptr<Used>>> keys;
    std::shared_ptr<Used> at(std::string_view key);  // made where it is new
    // The keys down to one of that name, at most so many; none: there is no such key.
    std::vector<std::string> path_to(const std::string& name, std::size_t most) const;
    ConfigNode node() const;
  };

  void use_text(std::string_view key, std::string text, bool holds = true);  // a default, where it is a valid value
  bool is_mapping();
  std::string advice_on(const ConfigNode::Entry& unknown) const;
  const ConfigNode::Entry* lookup(std::string_view key);
  const ConfigNode* value(std::string_view key, bool needed);
  void expected(const ConfigNode& node, std::string_view key, const std::string& what, const std::string& hint = {});
  std::optional<std::int64_t> integer_in(const ConfigNode& node, std::string_view key, std::int64_t least,
                                         std::int64_t most);
  std::optional<double> number_in(const ConfigNode& node, std::string_view key, double least, double most);

  std::shared_ptr<const ConfigNode> node_;  // owned: a Params may outlive the tree it reads
  std::string owner_;
  Diagnostics* diagnostics_;
  std::set<std::string> known_;
  std::shared_ptr<Used> used_ = std::make_shared<Used>(), root_ = used_;  // root_: of all sections around this one
  bool wrong_kind_told_ = false;
};

}  // namespace twiddle
