#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "framework/error.h"
#include "framework/printable.h"
#include "models/config/config.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t widest = 160;  // a convolution with all its options

bool is_word_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) ||
         std::string_view("_./").find(letter) != std::string_view::npos;
}

// Whether every YAML reader reads an unquoted string back unchanged. In doubt, returns false.
bool is_plain(std::string_view text) {
  if (text.empty() || text.back() == ' ' || text == "null" || text == "Null" || text == "NULL") return false;
  const bool signed_number = (text[0] == '-' || text[0] == '+') && text.size() > 1 && is_word_letter(text[1]);
  if (!is_word_letter(text[0]) && !signed_number) return false;
  return text.rfind("...", 0) != 0 && std::all_of(text.begin() + 1, text.end(), [](char letter) {
           return is_word_letter(letter) || letter == '-' || letter == '+' || letter == ' ';
         });
}

// \xHH or \uHHHH: whatever is not printable has no longer code.
std::string escape(char32_t character) {
  const auto code = static_cast<unsigned>(character);
  return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

std::string in_quotes(const std::string_view whole) {
  std::string_view text = whole;
  std::string result = "\"";
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.is_utf8)
      throw Error(ErrorKind::config, join("'", shown(whole), "' is not UTF-8, so that a YAML file cannot hold it: ",
                                          "give the file or folder another name"));
    if (character.code == '"' || character.code == '\\')
      result += join("\\", character.bytes);
    else if (is_printable(character))
      result += character.bytes;
    else
      result += escape(character.code);
    text.remove_prefix(character.bytes.size());
  }
  return result + '"';
}

std::string scalar_text(std::string_view text, bool quoted) {
  return !quoted && is_plain(text) ? std::string(text) : in_quotes(text);
}

// On one line: [1, 8, 8], {filters: 32, kernel: 3}. Given up once it is longer than fits.
std::string inline_text(const ConfigNode& node) {
  if (node.kind == Kind::null) return "null";
  if (node.kind == Kind::scalar) return scalar_text(node.text, node.quoted);
  const bool list = node.kind == Kind::sequence;
  std::string text = list ? "[" : "{";
  for (const ConfigNode& item : node.items) {
    if (text.size() > 1) text += ", ";
    if (text.size() > widest) break;
    text += inline_text(item);
  }
  for (const ConfigNode::Entry& entry : node.entries) {
    if (text.size() > 1) text += ", ";
    if (text.size() > widest) break;
    text += scalar_text(entry.key, false) + ": " + inline_text(entry.value);
  }
  return text + (list ? "]" : "}");
}

bool fits_on_line(const ConfigNode& node, std::size_t indent, const std::string& text) {
  const bool collection = node.kind == Kind::sequence || node.kind == Kind::mapping;
  if (!collection || (node.items.empty() && node.entries.empty())) return true;
  const bool nested = std::any_of(node.items.begin(), node.items.end(),
                                  [](const ConfigNode& item) { return item.kind >= Kind::sequence; });
  // The outer sections stay open to the eye; so do lists of more than plain values.
  return indent + text.size() <= widest && !nested && !(node.kind == Kind::mapping && indent < 4);
}

std::string block_text(const ConfigNode& node, std::size_t indent);

// What follows "key:" or "-".
std::string value_text(const ConfigNode& node, std::size_t indent, bool in_list) {
  const std::string line = inline_text(node);
  const bool open = in_list && !node.entries.empty();  // "- conv2d: {...}", not "- {conv2d: {...}}"
  if (!open && fits_on_line(node, indent, line)) return " " + line + "\n";
  const std::string block = block_text(node, indent);
  return in_list ? " " + block.substr(indent) : "\n" + block;
}

std::string block_text(const ConfigNode& node, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string text;
  for (const ConfigNode& item : node.items) text += margin + "-" + value_text(item, indent + 2, true);
  for (const ConfigNode::Entry& entry : node.entries)
    text += margin + scalar_text(entry.key, false) + ":" + value_text(entry.value, indent + 2, false);
  return text;
}

}  // namespace

std::string to_yaml(const ConfigNode& node) {
  const bool collection = !node.items.empty() || !node.entries.empty();
  return collection ? block_text(node, 0) : inline_text(node) + "\n";
}

}  // namespace twiddle
