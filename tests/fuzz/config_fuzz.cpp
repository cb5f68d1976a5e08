#include <algorithm>

#include "framework/printable.h"
#include "models/config/config_tree.h"
#include "models/config/data_section.h"
#include "models/config/layer_list.h"
#include "models/config/yaml.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace twiddle;

// The bytes before a zero byte are the config, those after it an override in the form of `--set`.
std::vector<Override> overrides_in(const std::string& change) {
  const std::size_t equals = change.find('=');
  if (equals == std::string::npos) return {};
  return {{change.substr(0, equals), change.substr(equals + 1), "--set"}};
}

// YAML needs a separate syntax for keys of over 1,024 characters, including escapes; no config has such keys.
bool has_long_key(const ConfigNode& node) {
  const auto in_entry = [](const ConfigNode::Entry& entry) {
    return entry.key.size() > 250 || has_long_key(entry.value);
  };
  return std::any_of(node.items.begin(), node.items.end(), has_long_key) ||
         std::any_of(node.entries.begin(), node.entries.end(), in_entry);
}

void expand(ConfigNode& tree, Diagnostics& diagnostics) {
  for (ConfigNode::Entry& entry : tree.entries)
    if (entry.key == "layers") entry.value = expand_layers(entry.value, diagnostics);
}

// Options of the dataset and of the augmentation steps.
void read_data(const ConfigNode& tree, Diagnostics& diagnostics) {
  DatasetSite site;
  site.image_shape = {3, 8, 8};
  Params root(tree, "", diagnostics);
  Params data = root.child("data");
  read_data_section(data, site);
}

}  // namespace

// Any text as a config: it is read, or refused with a printable message; a config that was read can be written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input(bytes, bytes + size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  Diagnostics diagnostics;
  ConfigNode tree = load_tree_text(input.substr(0, end), "fuzz.yaml", diagnostics);
  if (tree.kind == ConfigNode::Kind::mapping) {
    expand(tree, diagnostics);
    if (is_utf8(input)) apply_overrides(tree, overrides_in(input.substr(std::min(end + 1, input.size()))), diagnostics);
    read_data(tree, diagnostics);
    const std::string written = to_yaml(tree);
    Diagnostics again;
    const bool same =
        to_yaml(parse_yaml(written, make_source("written.yaml", written), again)) == written && again.empty();
    require(same || has_long_key(tree), "lost in writing");
    require(is_utf8(written), "written as no UTF-8");
  }
  const std::string text = diagnostics.text();
  require(text == printable_lines(text), "a message that cannot be shown");
  return 0;
}
