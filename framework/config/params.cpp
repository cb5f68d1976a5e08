#include "framework/config/params.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/names_elsewhere.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

// Describes the value found instead of the expected one.
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

// Explains how to write `{name: sgd, momentum: 0.9}`, another program's form, here. Empty: it is something else.
std::string choice_hint(std::string_view key, const ConfigNode& node) {
  const auto says_which = [](const ConfigNode::Entry& entry) {
    return (entry.key == "name" || entry.key == "type") && entry.value.kind == Kind::scalar;
  };
  const auto name = std::find_if(node.entries.begin(), node.entries.end(), says_which);
  if (name == node.entries.end()) return {};
  std::vector<std::string> options;
  for (const ConfigNode::Entry& entry : node.entries)
    if (&entry != &*name)
      options.push_back(shown(entry.key) + ": " + (entry.value.kind == Kind::scalar ? shown(entry.value.text) : "..."));
  const std::string chosen = shown(name->value.text);
  return "write '" + shown(key) + ": " +
         (options.empty() ? chosen : "{" + chosen + ": {" + join_names(options) + "}}") + "'";
}

std::string quoted_key(std::string_view key) {
  return "'" + shown(key) + "'";
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

// Reports the error at the first read, not before: a reader may inspect the node itself and accept a scalar.
bool Params::is_mapping() {
  if (node_->kind == Kind::mapping || node_->kind == Kind::null) return true;
  if (!wrong_kind_reported_)
    diagnostics_->add(node_->place, join(owner_.empty() ? "the config" : quoted_key(owner_), " must be a mapping of ",
                                         "keys to values, found ", found(*node_)));
  wrong_kind_reported_ = true;
  return false;
}

const ConfigNode::Entry* Params::lookup(std::string_view key) {
  known_.emplace(key);
  if (!is_mapping()) return nullptr;
  used_->at(key);  // its place among the keys, for advice_on() of another section
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
  if (needed && !wrong_kind_reported_)
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

std::vector<std::string> Params::Used::path_to(const std::string& name, std::size_t most) const {
  for (const auto& [key, used] : keys) {
    if (key == name) return {key};
    if (most == 1) continue;
    std::vector<std::string> path = used->path_to(name, most - 1);
    if (path.empty()) continue;
    path.insert(path.begin(), key);
    return path;
  }
  return {};
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
  if (holds && !wrong_kind_reported_) use(key, text_node(std::move(text), node_->place));
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
  params.root_ = root_;
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
  const std::string hint = node == nullptr ? "" : choice_hint(key, *node);
  if (node != nullptr && node->kind == Kind::scalar) {
    name = node->text;
  } else if (node != nullptr && node->kind == Kind::mapping && node->entries.size() == 1 && hint.empty()) {
    name = node->entries.front().key;
    options = node->entries.front().value;
  } else if (node != nullptr) {
    expected(*node, key, "a name, or one name with its options as {NAME: {...}}", hint);
  }
  Params params(options, name, *diagnostics_);
  params.root_ = root_;
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
  for (const ConfigNode::Entry& entry : node_->entries)
    if (known_.count(entry.key) == 0)
      diagnostics_->add(entry.place,
                        join("unknown key ", quoted_key(entry.key), owner_.empty() ? "" : " in " + quoted_key(owner_)),
                        advice_on(entry));
}

// The place of that key in another section, if one that was read has it; else the name that was probably meant.
std::string Params::advice_on(const ConfigNode::Entry& unknown) const {
  const bool has_value = unknown.value.kind != Kind::null;
  if (const std::size_t sign = unknown.key.find_first_of("=:"); !has_value && sign != unknown.key.npos)
    return "write '" + shown(unknown.key.substr(0, sign)) + ": " + shown(unknown.key.substr(sign + 1)) + "'";
  const NameElsewhere* const elsewhere = name_elsewhere(unknown.key);
  std::vector<std::string> names{unknown.key};
  if (elsewhere != nullptr) names.insert(names.end(), elsewhere->here.begin(), elsewhere->here.end());
  const std::vector<std::string> known(known_.begin(), known_.end());
  const auto is_known = [&](const std::string& name) { return known_.count(name) > 0; };
  for (const std::string& name : names) {
    if (std::any_of(names.begin(), names.end(), is_known)) break;
    for (const Used* around : {used_.get(), root_.get()}) {
      // Deeper sections, such as one dataset and another, may differ in what they have.
      const std::vector<std::string> path = around->path_to(name, around == used_.get() ? 4 : 2);
      if (path.empty()) continue;
      const ConfigNode& value = unknown.value;
      std::string text = value.kind == Kind::scalar ? shown(value.text) : "...";
      for (auto key = path.rbegin(); key != path.rend(); ++key)
        text = key == path.rbegin() ? *key + ": " + text : *key + ": {" + text + "}";
      return "write it as '" + text + "'" + (around == used_.get() ? "" : " at the top level");
    }
  }
  if (const auto nearest = nearest_name(unknown.key, known)) return "did you mean '" + *nearest + "'?";
  if (elsewhere != nullptr && !elsewhere->advice.empty()) return elsewhere->advice;
  if (!has_value) return "it has no value; a list is written in brackets, as in [a, b]";
  return known.empty() ? "it has no options" : "known are: " + join_names(known);
}

}  // namespace twiddle
