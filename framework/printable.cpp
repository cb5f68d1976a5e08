#include "framework/printable.h"

#include <array>
#include <cstdint>

namespace twiddle {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Codes of several bytes: the first byte's leading bits, and the least code that needs `bytes` bytes.
struct Form {
  std::size_t bytes;
  unsigned mask, mark;
  char32_t least;
};
constexpr std::array<Form, 3> forms{{{2, 0xe0, 0xc0, 0x80}, {3, 0xf0, 0xe0, 0x800}, {4, 0xf8, 0xf0, 0x10000}}};

bool in(char32_t code, char32_t first, char32_t last) {
  return first <= code && code <= last;
}

// visit(Character) for each.
template <class Visit>
void each_character(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const Character character = first_character(text);
    visit(character);
    text.remove_prefix(character.bytes.size());
  }
}

}  // namespace

Character first_character(std::string_view text) {
  const Character none{text.substr(0, 1)};
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return {text.substr(0, 1), first, true};
  for (const Form& form : forms) {
    if ((first & form.mask) != form.mark) continue;
    if (text.size() < form.bytes) return none;
    char32_t code = first & ~form.mask;
    for (std::size_t i = 1; i < form.bytes; ++i) {
      const auto next = static_cast<std::uint8_t>(text[i]);
      if ((next & 0xc0u) != 0x80) return none;
      code = code << 6 | (next & 0x3fu);
    }
    // Neither a longer form than needed, nor half of a pair of UTF-16, nor beyond the last code.
    if (code < form.least || in(code, 0xd800, 0xdfff) || code > 0x10ffff) return none;
    return {text.substr(0, form.bytes), code, true};
  }
  return none;
}

bool is_printable(const Character& character) {
  const char32_t code = character.code;
  const bool control = code < 0x20 || in(code, 0x7f, 0x9f);
  const bool separator = in(code, 0x2028, 0x2029);
  const bool turns = in(code, 0x200e, 0x200f) || in(code, 0x202a, 0x202e) || in(code, 0x2066, 0x2069) || code == 0x61c;
  return character.is_utf8 && !control && !separator && !turns;
}

std::string printable(std::string_view text) {
  std::string line;
  each_character(text, [&](const Character& each) { line += is_printable(each) ? each.bytes : replacement; });
  return line;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  each_character(text, [&](const Character& each) {
    lines += is_printable(each) || each.code == '\n' || each.code == '\t' ? each.bytes : replacement;
  });
  return lines;
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 200, first = 140, last = most - first - 3;
  std::size_t count = 0, i = 0;
  each_character(text, [&count](const Character&) { ++count; });
  std::string line;
  each_character(text, [&](const Character& each) {
    if (count <= most || i < first || i + last >= count)
      line += is_printable(each) ? each.bytes : replacement;
    else if (i == first)
      line += "...";
    ++i;
  });
  return line;
}

bool is_utf8(std::string_view text) {
  bool all = true;
  each_character(text, [&all](const Character& each) { all = all && each.is_utf8; });
  return all;
}

}  // namespace twiddle
