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

// Collects errors so that they can be reported together.
class Diagnostics {
 public:
  void add(const Place& place, std::string message, std::string hint = {});
  bool empty() const { return messages_.empty(); }
  std::size_t size() const { return messages_.size(); }
  // One block per error, in order of place: "file:14:5: error: ...", the line, a caret, the hint.
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

// Typed reading of a mapping. A wrong value is recorded in the diagnostics and the fallback is returned. Reading
// continues, so that all errors of a file are reported together. finish() reports the keys that were not read.
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
  std::vector<std::string> texts(std::string_view key);   // a string or a list; empty if absent
  // A file or folder: relative to the folder of the config file if it exists there, else to the current folder. used()
  // has the absolute path, so that it is found from any folder.
  std::string path(std::string_view key);
  std::vector<std::string> paths(std::string_view key);  // one or a list; empty where absent
  Params child(std::string_view key);                    // an empty mapping where absent
  const ConfigNode* node(std::string_view key);          // null where absent
  // `key: sgd` or `key: {sgd: {lr: 0.1}}`: the name and its options; the name is `fallback` where the key is absent.
  std::pair<std::string, Params> named(std::string_view key, std::string_view fallback);

  void error(std::string_view key, std::string message,
             std::string hint = {});  // at the key's value, or at the mapping
  void finish();                      // unknown keys become errors, with a suggestion

  // Returns every key as it was used, in the order of reading: the given value or the default. Sections and named
  // choices include all keys read in them. A key that was not given and has no default is left out.
  ConfigNode used() const;
  void use(std::string_view key, ConfigNode value);  // for a reader that parses a value itself
  const Place& place() const { return node_->place; }
  const std::string& owner() const { return owner_; }
  Diagnostics& diagnostics() { return *diagnostics_; }

 private:
  // The used value of a key. A Params shares it with the Params of its sections, which add their keys.
  struct Used {
    ConfigNode value;
    std::vector<std::pair<std::string, std::shared_ptr<Used>>> keys;
    std::shared_ptr<Used> at(std::string_view key);  // created if it is new
    // Returns the path of keys to the key `name`, at most `most` keys long; empty: there is no such key.
    std::vector<std::string> path_to(const std::string& name, std::size_t most) const;
    ConfigNode node() const;
  };

  void use_text(std::string_view key, std::string text, bool holds = true);  // a default, if it is a valid value
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
  bool wrong_kind_reported_ = false;
};

}  // namespace twiddle
