#include "framework/params.h"

#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

// What stands where something else was expected.
std::string found(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return '"' + shown(node.text) + '"';
    case Kind::sequence:
      return join("a list of ", node.items.size());
    case Kind::mapping:
      return "a mapping";
  }
  return "";
}

std::string quoted_key(std::string_view key) {
  return "'" + std::string(key) + "'";
}

}  // namespace

ConfigNode text_node(std::string text, const Place& place) {
  ConfigNode node;
  node.kind = Kind::scalar;
  node.place = place;
  node.text = std::move(text);
  return node;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Params::Params(const ConfigNode& node, std::string owner, Diagnostics& diagnostics)
    : node_(std::make_shared<const ConfigNode>(node)), owner_(std::move(owner)), diagnostics_(&diagnostics) {}

// Told when something is first read, not before: a reader may look at the node itself and take a scalar.
bool Params::is_mapping() {
  if (node_->kind == Kind::mapping || node_->kind == Kind::null) return true;
  if (!wrong_kind_told_)
    diagnostics_->add(node_->place, join(owner_.empty() ? "the config" : quoted_key(owner_), " must be a mapping of ",
                                         "keys to values, found ", found(*node_)));
  wrong_kind_told_ = true;
  return false;
}

const ConfigNode::Entry* Params::lookup(std::string_view key) {
  known_.emplace(key);
  if (!is_mapping()) return nullptr;
  for (const ConfigNode::Entry& entry : node_->entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

// The value at a key that a reader needs unless it has a fallback.
const ConfigNode* Params::value(std::string_view key, bool needed) {
  const ConfigNode::Entry* entry = lookup(key);
  if (entry != nullptr) {
    ConfigNode& used = used_->at(key)->value;
    if (used.kind == Kind::null) used = entry->value;  // unless its reader has made something of it
    return &entry->value;
  }
  if (needed && !wrong_kind_told_)
    diagnostics_->add(node_->place,
                      join("missing key ", quoted_key(key), owner_.empty() ? "" : " in " + quoted_key(owner_)));
  return nullptr;
}

void Params::expected(const ConfigNode& node, std::string_view key, const std::string& what, const std::string& hint) {
  diagnostics_->add(node.place, join(quoted_key(key), " must be ", what, ", found ", found(node)), hint);
}

std::shared_ptr<Params::Used> Params::Used::at(std::string_view key) {
  for (const auto& [name, used] : keys)
    if (name == key) return used;
  return keys.emplace_back(key, std::make_shared<Used>()).second;
}

ConfigNode Params::Used::node() const {
  ConfigNode mapping;
  mapping.kind = Kind::mapping;
  mapping.place = value.place;
  for (const auto& [name, used] : keys)
    if (ConfigNode node = used->node(); node.kind != Kind::null)
      mapping.entries.push_back({name, node.place, std::move(node)});
  return mapping.entries.empty() ? value : mapping;
}

ConfigNode Params::used() const {
  return used_->node();
}

void Params::use(std::string_view key, ConfigNode value) {
  used_->at(key)->value = std::move(value);
}

void Params::use_text(std::string_view key, std::string text, bool holds) {
  if (holds && !wrong_kind_told_) use(key, text_node(std::move(text), node_->place));
}

bool Params::has(std::string_view key) {
  return lookup(key) != nullptr;
}

Params Params::child(std::string_view key) {
  const ConfigNode::Entry* entry = lookup(key);
  const std::string name = owner_.empty() ? std::string(key) : owner_ + "." + std::string(key);
  ConfigNode nothing;
  nothing.place = node_->place;
  Params params(entry == nullptr ? nothing : entry->value, name, *diagnostics_);
  params.used_ = used_->at(key);
  params.used_->value = *params.node_;
  return params;
}

const ConfigNode* Params::node(std::string_view key) {
  return value(key, false);
}

std::pair<std::string, Params> Params::named(std::string_view key, std::string_view fallback) {
  const ConfigNode* node = value(key, false);
  if (node == nullptr) use_text(key, std::string(fallback), !fallback.empty());
  ConfigNode options;
  options.place = node == nullptr ? node_->place : node->place;
  std::string name(fallback);
  if (node != nullptr && node->kind == Kind::scalar) {
    name = node->text;
  } else if (node != nullptr && node->kind == Kind::mapping && node->entries.size() == 1) {
    name = node->entries.front().key;
    options = node->entries.front().value;
  } else if (node != nullptr) {
    expected(*node, key, "a name, or one name with its options as {name: {...}}");
  }
  Params params(options, name, *diagnostics_);
  params.used_ = used_->at(key)->at(name);
  params.used_->value = options;
  return {name, params};
}

void Params::error(std::string_view key, std::string message, std::string hint) {
  const ConfigNode::Entry* entry = lookup(key);
  diagnostics_->add(entry == nullptr ? node_->place : entry->value.place, std::move(message), std::move(hint));
}

void Params::finish() {
  if (!is_mapping()) return;
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const ConfigNode::Entry& entry : node_->entries) {
    if (known_.count(entry.key) > 0) continue;
    const auto nearest = nearest_name(entry.key, known);
    const std::string hint = nearest         ? "did you mean '" + *nearest + "'?"
                             : known.empty() ? "it has no options"
                                             : "known are: " + join_names(known);
    diagnostics_->add(
        entry.place,
        join("unknown key ", quoted_key(shown(entry.key)), owner_.empty() ? "" : " in " + quoted_key(owner_)), hint);
  }
}

}  // namespace twiddle
