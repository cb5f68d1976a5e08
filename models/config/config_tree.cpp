#include "models/config/config_tree.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "data/files.h"
#include "data/images/file_kind.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/config/yaml.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t largest_file = 4u << 20, longest_chain = 16;

// Returns the text of a config file. Throws an Error if it is not a config or cannot be read.
std::string read_text(const std::string& path) {
  const auto refuse = [&path](const std::string& reason) {
    throw Error(ErrorKind::config, "cannot read '" + shown(path) + "': " + reason);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("it is a folder, not a config file");
  const std::vector<std::uint8_t> bytes = read_first_bytes(path, largest_file + 1);
  const std::span first_bytes(bytes.data(), std::min(bytes.size(), bytes_of_kind));
  const std::string kind = kind_of_file(first_bytes, FileUse::dataset);
  if (!kind.empty()) refuse("it is not a config but " + kind);
  if (bytes.size() > largest_file) refuse("it has more than 4 MiB: this is not a config");
  return {bytes.begin(), bytes.end()};
}

// A choice is a mapping of which one entry is meant: its name, or its `format`.
bool is_other_choice(const std::string& key, const ConfigNode& base, const ConfigNode& over) {
  if (is_choice(key) && base.entries.size() == 1 && over.entries.size() == 1)
    return base.entries.front().key != over.entries.front().key;
  const ConfigNode *before = base.find("format"), *after = over.find("format");
  return before != nullptr && after != nullptr && before->text != after->text;
}

// Loads a file and the files below it (`base:`). It keeps the chain of their names, so that a circle is found.
class TreeLoader {
 public:
  explicit TreeLoader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  ConfigNode load(const std::string& file, const Place& named_at) {
    std::string text;
    try {
      text = read_text(file);
    } catch (const Error& error) {
      diagnostics_.add(named_at, error.what());
      return {};
    }
    return load_text(text, file);
  }

  ConfigNode load_text(const std::string& text, const std::string& file) {
    const auto source = make_source(file, text);
    const std::size_t errors_before = diagnostics_.size();
    ConfigNode tree = parse_yaml(text, source, diagnostics_);
    if (tree.kind == Kind::null) {
      if (diagnostics_.size() == errors_before)
        diagnostics_.add(Place{source, 0, 0, 1}, "the config is empty",
                         "it needs at least 'version: 1' and 'model:'; models/digits.yaml is an example");
      return {};
    }
    if (tree.kind != Kind::mapping) {
      diagnostics_.add(tree.place, "a config is a mapping of keys to values", "such as 'version: 1'");
      return {};
    }
    return with_base(std::move(tree), file);
  }

 private:
  ConfigNode with_base(ConfigNode tree, const std::string& file) {
    const ConfigNode::Entry* const entry = find_entry(tree, "base");
    if (entry == nullptr) return tree;
    const ConfigNode base = entry->value;
    std::erase_if(tree.entries, [](const ConfigNode::Entry& each) { return each.key == "base"; });
    if (base.kind != Kind::scalar || base.text.empty()) {
      diagnostics_.add(base.place, "'base' must be the path of another config");
      return tree;
    }
    const std::filesystem::path path = (std::filesystem::path(file).parent_path() / base.text).lexically_normal();
    if (!enter(file, path.string(), base.place)) return tree;
    ConfigNode below = load(path.string(), base.place);
    return below.kind == Kind::mapping ? merge_trees(std::move(below), tree) : tree;
  }

  bool enter(const std::string& file, const std::string& base, const Place& place) {
    std::error_code ignored;
    chain_.push_back(std::filesystem::weakly_canonical(file, ignored));
    if (std::find(chain_.begin(), chain_.end(), std::filesystem::weakly_canonical(base, ignored)) != chain_.end()) {
      diagnostics_.add(place, "'base' goes round in a circle: '" + shown(base) + "' is already being read");
      return false;
    }
    if (chain_.size() > longest_chain) {
      diagnostics_.add(place, join("more than ", longest_chain, " configs, each the base of another"));
      return false;
    }
    return true;
  }

  Diagnostics& diagnostics_;
  std::vector<std::filesystem::path> chain_;
};

}  // namespace

ConfigNode load_tree(const std::string& file, Diagnostics& diagnostics) {
  return TreeLoader(diagnostics).load(file, Place{});
}

ConfigNode load_tree_text(const std::string& text, const std::string& name, Diagnostics& diagnostics) {
  return TreeLoader(diagnostics).load_text(text, name);
}

bool is_choice(std::string_view key) {
  return key == "optimizer" || key == "schedule" || key == "loss";
}

ConfigNode::Entry* find_entry(ConfigNode& mapping, std::string_view key) {
  for (ConfigNode::Entry& entry : mapping.entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

ConfigNode merge_trees(ConfigNode base, const ConfigNode& over) {
  base.place = over.place;
  for (const ConfigNode::Entry& entry : over.entries) {
    ConfigNode::Entry* below = find_entry(base, entry.key);
    if (below == nullptr) {
      base.entries.push_back(entry);
      continue;
    }
    const bool merges = below->value.kind == Kind::mapping && entry.value.kind == Kind::mapping &&
                        !is_other_choice(entry.key, below->value, entry.value);
    below->place = entry.place;
    below->value = merges ? merge_trees(std::move(below->value), entry.value) : entry.value;
  }
  return base;
}

}  // namespace twiddle
