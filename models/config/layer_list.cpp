#include "models/config/layer_list.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t most_layers = 1000;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Short stems as papers use them; a kind that is not here is its own stem.
std::string stem_of(const std::string& kind) {
  static const std::map<std::string, std::string> stems{
      {"conv2d", "conv"},
      {"conv_transpose2d", "conv_transpose"},
      {"linear", "fc"},
      {"max_pool", "pool"},
      {"avg_pool", "pool"},
      {"leaky_relu", "relu"},
      {"global_avg_pool", "pool"},
      {"local_response_norm", "norm"},
      {"batch_norm", "bn"},
  };
  const auto stem = stems.find(kind);
  if (stem != stems.end()) return stem->second;
  return !kind.empty() && is_digit(kind.back()) ? kind + "_" : kind;
}

// "conv1", "stage3.block" and "layer1.0", the form that PyTorch uses.
bool is_name(const std::string& text) {
  const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= 100 && is_letter(text[0]) && std::all_of(text.begin(), text.end(), fits) &&
         text.back() != '.' && text.find("..") == std::string::npos;
}

// "block" becomes "block2", and what ends in a digit itself "layer1.2". No count: no repeat.
std::string counted(const std::string& name, const std::string& count) {
  return is_digit(name.back()) && !count.empty() ? name + "." + count : name + count;
}

// The option that a layer is about: what `- max_pool: 2` means.
std::string main_option(const std::string& kind) {
  static const std::map<std::string, std::string> options{
      {"conv2d", "filters"},  {"conv_transpose2d", "filters"}, {"linear", "outputs"},
      {"max_pool", "kernel"}, {"avg_pool", "kernel"},          {"dropout", "rate"},
      {"drop_path", "rate"},  {"group_norm", "groups"},        {"pad", "size"},
      {"upsample", "factor"}, {"leaky_relu", "slope"},
  };
  const auto option = options.find(kind);
  return option == options.end() ? "" : option->second;
}

// Options that are one value, or a list, instead of a mapping.
std::string options_hint(const std::string& kind, const ConfigNode& options) {
  const std::string option = main_option(kind);
  if (kind.find('{') != kind.npos) return "write ': ' before '{'";
  if (options.kind == Kind::sequence && kind == "residual") return "write the list as 'layers:' of 'residual'";
  if (options.kind == Kind::sequence && !options.items.empty() && options.items.front().kind == Kind::mapping)
    return "write the options without '-'";
  if (option.empty() || options.kind != Kind::scalar || options.text.find(':') != std::string::npos)
    return "such as '- dropout: {rate: 0.5}'";
  return "write '- " + kind + ": {" + option + ": " + shown(options.text) + "}'";
}

// The name of a layer in an expanded list.
ConfigNode& name_in(ConfigNode& item) {
  return item.entries.front().value.entries.front().value;
}

void expand_lists(const std::vector<ConfigNode*>& lists, Diagnostics& diagnostics, std::size_t& visited);

// Writes out one list, or all paths of one layer that joins them: layers without a name are counted within that.
class Expander {
 public:
  Expander(Diagnostics& diagnostics, std::size_t& visited) : diagnostics_(diagnostics), visited_(visited) {}

  void write_out(ConfigNode& list) {
    const std::vector<ConfigNode> given = std::move(list.items);
    list.items.clear();
    items_ = &list.items;
    add_all(given, "");
  }

  // Runs after all lists are expanded, so that no new name equals a given one.
  void name_the_unnamed(ConfigNode& list) {
    for (ConfigNode& item : list.items) {
      const std::string of_kind = stem_of(item.entries.front().key), stem = is_name(of_kind) ? of_kind : "layer";
      std::string& name = name_in(item).text;
      int& count = counts_[stem];
      ++count;
      if (!name.empty()) continue;
      while (!taken_.insert(join(stem, count)).second) ++count;
      name = join(stem, count);
    }
  }

 private:
  // `count` is that of the repeats around it: "2", or "2.1" inside two.
  void add_all(const std::vector<ConfigNode>& nodes, const std::string& count) {
    for (const ConfigNode& node : nodes) {
      if (++visited_ > most_layers) {
        if (visited_ == most_layers + 1) diagnostics_.add(node.place, join("more than ", most_layers, " layers"));
        return;
      }
      add(node, count);
    }
  }

  void add(const ConfigNode& node, const std::string& count) {
    if (node.kind == Kind::scalar && !node.text.empty()) return add_layer({node.text, node.place, {}}, count);
    if (node.kind != Kind::mapping || node.entries.size() != 1) {
      std::string what = node.kind == Kind::null ? "an empty item: " : "";
      what += "a layer is a name, or one name with its options";
      std::string hint = "such as '- relu' or '- conv2d: {filters: 64, kernel: 3}'";
      if (node.kind == Kind::mapping && node.entries.size() > 1) {
        const ConfigNode::Entry& first = node.entries.front();
        const bool says_kind = (first.key == "type" || first.key == "name") && first.value.kind == Kind::scalar;
        what += join("; this has ", node.entries.size(), " keys");
        hint = says_kind ? "write '- " + shown(first.value.text) + ": {...}' with the options in { }"
                         : "indent the options further than '" + shown(first.key) + ":'";
      }
      diagnostics_.add(node.place, what, hint);
      return;
    }
    const ConfigNode::Entry& entry = node.entries.front();
    if (entry.key == "repeat") return repeat(entry.value, count);
    if (entry.value.kind == Kind::scalar || entry.value.kind == Kind::sequence) {
      diagnostics_.add(entry.value.place,
                       "the options of '" + shown(entry.key) + "' must be a mapping of keys to values",
                       options_hint(entry.key, entry.value));
      return;
    }
    add_layer(entry, count);
  }

  // Its name comes first among its options; one that has none is named later.
  void add_layer(ConfigNode::Entry layer, const std::string& count) {
    ConfigNode& options = layer.value;
    if (options.kind == Kind::null) options.place = layer.place;
    options.kind = Kind::mapping;
    ConfigNode::Entry name = take_name(layer, count);
    options.entries.insert(options.entries.begin(), std::move(name));
    expand_lists(path_lists(layer.key, options), diagnostics_, visited_);
    ConfigNode item;
    item.kind = Kind::mapping;
    item.place = layer.place;
    item.entries.push_back(std::move(layer));
    items_->push_back(std::move(item));
  }

  void repeat(const ConfigNode& node, const std::string& count) {
    Params params(node, "repeat", diagnostics_);
    const std::int64_t times = params.integer("times", std::nullopt, 1, most_layers);
    const ConfigNode* layers = params.node("layers");
    if (layers == nullptr || layers->kind != Kind::sequence || layers->items.empty()) {
      params.error("layers", "'repeat' needs 'layers', a list");
      layers = nullptr;
    }
    params.finish();
    for (std::int64_t i = 1; layers != nullptr && i <= times && visited_ <= most_layers; ++i)
      add_all(layers->items, count.empty() ? std::to_string(i) : join(count, ".", i));
  }

  ConfigNode::Entry take_name(ConfigNode::Entry& layer, const std::string& count) {
    const ConfigNode* const given = layer.value.find("name");
    ConfigNode name = text_node("", given == nullptr ? layer.place : given->place);
    if (given != nullptr && given->kind == Kind::scalar && is_name(given->text)) {
      name.text = counted(given->text, count);
      taken_.insert(name.text);
    } else if (given != nullptr) {
      diagnostics_.add(
          name.place, "'name' must be made of letters, digits, '_' and '-', a letter first; '.' is allowed in between");
    }
    std::erase_if(layer.value.entries, [](const ConfigNode::Entry& entry) { return entry.key == "name"; });
    return {"name", name.place, std::move(name)};
  }

  Diagnostics& diagnostics_;
  std::vector<ConfigNode>* items_ = nullptr;  // of the list that is written out
  std::set<std::string> taken_;               // names
  std::map<std::string, int> counts_;         // of layers, by the stem of their names
  std::size_t& visited_;                      // layers and repeats of the whole network
};

void expand_lists(const std::vector<ConfigNode*>& lists, Diagnostics& diagnostics, std::size_t& visited) {
  Expander expander(diagnostics, visited);
  for (ConfigNode* list : lists) expander.write_out(*list);
  for (ConfigNode* list : lists) expander.name_the_unnamed(*list);
}

// "a.b" may be a layer of that name, or layer "b" inside layer "a", but not both.
void check_names(ConfigNode& list, const std::string& prefix, std::map<std::string, int>& lines,
                 Diagnostics& diagnostics) {
  for (ConfigNode& item : list.items) {
    ConfigNode::Entry& layer = item.entries.front();
    const ConfigNode& given = name_in(item);
    const std::string name = prefix + given.text;
    const auto [first, is_new] = lines.emplace(name, given.place.line);
    if (!is_new)
      diagnostics.add(given.place, join("two layers are called '", name, "'",
                                        first->second > 0 ? join(" (first at line ", first->second, ")") : ""));
    for (ConfigNode* path : path_lists(layer.key, layer.value)) check_names(*path, name + ".", lines, diagnostics);
  }
}

}  // namespace

std::vector<ConfigNode*> path_lists(const std::string& kind, ConfigNode& options) {
  std::vector<ConfigNode*> lists;
  const auto take = [&](ConfigNode& node) {
    if (node.kind == Kind::sequence) lists.push_back(&node);
  };
  const auto with_key = [&](const char* key, const auto& use) {
    for (ConfigNode::Entry& entry : options.entries)
      if (entry.key == key) use(entry.value);
  };
  if (kind == "residual")
    for (const char* key : {"layers", "shortcut"}) with_key(key, take);
  if (kind == "parallel")
    with_key("paths", [&](ConfigNode& paths) {
      for (ConfigNode& path : paths.items) take(path);
    });
  return lists;
}

ConfigNode expand_layers(const ConfigNode& list, Diagnostics& diagnostics) {
  ConfigNode expanded = list;
  std::size_t visited = 0;
  expand_lists({&expanded}, diagnostics, visited);
  std::map<std::string, int> lines;
  check_names(expanded, "", lines, diagnostics);
  return expanded;
}

std::string layer_name(const ConfigNode& item) {
  const bool is_layer = item.kind == Kind::mapping && item.entries.size() == 1;
  const ConfigNode* name = is_layer ? item.entries.front().value.find("name") : nullptr;
  return name == nullptr ? std::string() : name->text;
}

std::vector<std::string> layer_names(const ConfigNode& list) {
  std::vector<std::string> names;
  for (const ConfigNode& item : list.items) names.push_back(layer_name(item));
  return names;
}

}  // namespace twiddle
