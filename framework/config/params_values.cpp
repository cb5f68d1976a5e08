#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/names_elsewhere.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

template <class Number>
std::optional<Number> parse_number(const ConfigNode& node) {
  if (node.kind != Kind::scalar || node.quoted) return std::nullopt;
  std::string_view text = node.text;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Some readers of YAML take 010 for eight.
bool looks_octal(const ConfigNode& node) {
  const std::size_t first = node.text.find_first_of("0123456789");
  if (first == std::string::npos || node.text[first] != '0' || first + 1 == node.text.size()) return false;
  const char next = node.text[first + 1];
  return (next >= '0' && next <= '9') && (first == 0 || node.text[first - 1] != '.');
}

std::optional<std::int64_t> parse_integer(const ConfigNode& node) {
  return looks_octal(node) ? std::nullopt : parse_number<std::int64_t>(node);
}

std::optional<double> parse_double(const ConfigNode& node) {
  if (looks_octal(node)) return std::nullopt;
  const std::optional<double> value = parse_number<double>(node);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Explains why a scalar that looks like a number is not one.
std::string number_hint(const ConfigNode& node) {
  if (node.kind == Kind::scalar && node.quoted) return "in quotes it is a string: remove the quotes";
  if (node.kind == Kind::scalar && looks_octal(node) &&
      node.text.find_first_not_of("+-.0123456789") == std::string::npos)
    return "a leading zero could mean octal: write it without";
  return {};
}

// A whole number written in another way, such as "1,000", "1_000", "1e3" or "10.0".
std::string integer_hint(const ConfigNode& node) {
  ConfigNode plain = node;
  std::erase_if(plain.text, [](char letter) { return letter == ',' || letter == '_'; });
  const std::optional<double> value = parse_double(plain);
  const bool whole = value && std::floor(*value) == *value && std::abs(*value) < 1e15;
  return whole && !parse_integer(node) ? join("write ", static_cast<std::int64_t>(*value)) : number_hint(node);
}

// A number written in another way, such as "0,01" or "50%".
std::string double_hint(const ConfigNode& node) {
  ConfigNode plain = node;
  const bool percent = plain.text.ends_with('%');
  if (percent) plain.text.pop_back();
  std::replace(plain.text.begin(), plain.text.end(), ',', '.');
  const std::optional<double> value = parse_double(plain);
  if (!value || parse_double(node)) return number_hint(node);
  return "write " + format_number(percent ? *value / 100 : *value);
}

// The correct form of a string that lists numbers in another way than [3, 32, 32], such as "3, 32, 32", "(3, 3)" or
// "3x3".
std::string list_hint(const ConfigNode& node) {
  std::string numbers;
  bool in_number = false;
  std::size_t count = 0;
  for (const char letter : node.text) {
    const bool digit = (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '+';
    if (!digit && std::string_view(" ,;xX()[]*").find(letter) == std::string_view::npos) return {};
    if (digit && !in_number) numbers += ++count > 1 ? ", " : "";
    if (digit) numbers += letter;
    in_number = digit;
  }
  if (node.text.starts_with('(') && !node.text.ends_with(')')) return "a list is written in brackets, as in [3, 3]";
  return count > 1 && node.text.size() <= 100 ? "write [" + numbers + "]" : "";
}

std::string flag_hint(const ConfigNode& node) {
  const std::string text = node.kind == Kind::scalar ? plain_name(node.text) : "";
  const auto is_one_of = [&](const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if (is_one_of({"true", "yes", "on", "1"})) return "write true";
  if (is_one_of({"false", "no", "off", "0", "none"})) return "write false";
  return {};
}

std::string range_text(std::int64_t least, std::int64_t most) {
  if (most == std::numeric_limits<std::int64_t>::max()) return join(" of at least ", least);
  return join(" from ", least, " to ", most);
}

// What parse_bytes reads back to the same number.
std::string exact_bytes(std::uint64_t bytes) {
  constexpr std::array<std::pair<int, const char*>, 3> units{{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};
  for (const auto& [bits, unit] : units)
    if (bytes > 0 && bytes % (std::uint64_t(1) << bits) == 0) return join(bytes >> bits, unit);
  return std::to_string(bytes);
}

// One value as itself, several as a list.
ConfigNode scalar_or_list(const std::vector<std::string>& texts, const Place& place) {
  if (texts.size() == 1) return text_node(texts.front(), place);
  ConfigNode list;
  list.kind = texts.empty() ? Kind::null : Kind::sequence;
  list.place = place;
  for (const std::string& text : texts) list.items.push_back(text_node(text, place));
  return list;
}

// Without the detour in "models/../data", unless a symbolic link makes it another place.
std::string without_detours(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path straight = path.lexically_normal();
  return (std::filesystem::equivalent(path, straight, ignored) ? straight : path).string();
}

// `${NAME}` stands for the environment's value, in paths alone: elsewhere it could carry a secret into reports and
// weights. The value is not searched again. An unset variable stays as it is; resolve_path() names it when the file is
// opened, since a dataset may stay closed.
std::string with_environment(std::string path, const Place& place, Diagnostics& diagnostics) {
  for (std::size_t begin = path.find("${"); begin != std::string::npos; begin = path.find("${", begin)) {
    const std::size_t end = path.find('}', begin);
    if (end == std::string::npos) {
      diagnostics.add(place, "'${' without its '}'");
      break;
    }
    const std::string written = path.substr(begin, end + 1 - begin);
    const char* const value = std::getenv(written.substr(2, written.size() - 3).c_str());
    const std::string text = value == nullptr ? written : value;
    path.replace(begin, written.size(), text);
    begin += text.size();
  }
  return path;
}

// Resolves a path in a config. If nothing exists there, returns it unchanged: the code that opens it reports the error.
std::string find_path(const std::string& path, const Place& written) {
  if (written.line == 0 || path.empty()) return path;  // from the command line
  std::error_code ignored;
  const std::filesystem::path next_to_file = std::filesystem::path(written.source->name).parent_path() / path;
  return std::filesystem::exists(next_to_file, ignored) ? without_detours(next_to_file) : path;
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed);
  const bool writable = is_utf8(whole.string());  // into a config
  return failed || !writable || !std::filesystem::exists(whole, failed) ? path : without_detours(whole);
}

}  // namespace

std::optional<std::int64_t> Params::integer_in(const ConfigNode& node, std::string_view key, std::int64_t least,
                                               std::int64_t most) {
  const std::optional<std::int64_t> value = parse_integer(node);
  if (value && *value >= least && *value <= most) return value;
  expected(node, key, "a whole number" + range_text(least, most), integer_hint(node));
  return std::nullopt;
}

std::int64_t Params::integer(std::string_view key, std::optional<std::int64_t> fallback, std::int64_t least,
                             std::int64_t most) {
  const std::int64_t otherwise = fallback.value_or(least);
  const ConfigNode* node = value(key, !fallback);
  if (node != nullptr) return integer_in(*node, key, least, most).value_or(otherwise);
  use_text(key, std::to_string(otherwise), fallback && otherwise >= least && otherwise <= most);
  return otherwise;
}

std::optional<double> Params::number_in(const ConfigNode& node, std::string_view key, double least, double most) {
  const std::optional<double> value = parse_double(node);
  if (value && *value >= least && *value <= most) return value;
  const bool bounded = std::abs(least) < 1e300 || std::abs(most) < 1e300;
  expected(
      node, key,
      bounded ? join("a number from ", format_number(least), " to ", format_number(most)) : std::string("a number"),
      double_hint(node));
  return std::nullopt;
}

double Params::number(std::string_view key, std::optional<double> fallback, double least, double most) {
  const double otherwise = fallback.value_or(least);
  const ConfigNode* node = value(key, !fallback);
  if (node != nullptr) return number_in(*node, key, least, most).value_or(otherwise);
  use_text(key, format_number(otherwise), fallback && otherwise >= least && otherwise <= most);
  return otherwise;
}

bool Params::flag(std::string_view key, bool fallback) {
  const ConfigNode* node = value(key, false);
  if (node == nullptr) use_text(key, fallback ? "true" : "false");
  if (node == nullptr) return fallback;
  if (node->kind == Kind::scalar && !node->quoted && (node->text == "true" || node->text == "false"))
    return node->text == "true";
  expected(*node, key, "true or false", flag_hint(*node));
  return fallback;
}

std::string Params::text(std::string_view key, std::optional<std::string> fallback) {
  const ConfigNode* node = value(key, !fallback);
  if (node != nullptr && node->kind == Kind::scalar) return node->text;
  if (node != nullptr) expected(*node, key, "a string");
  if (node == nullptr && fallback) use_text(key, *fallback, !fallback->empty());
  return fallback.value_or("");
}

std::string Params::choice(std::string_view key, std::string_view fallback, const std::vector<std::string>& choices) {
  const ConfigNode* node = value(key, false);
  if (node == nullptr) use_text(key, std::string(fallback), std::count(choices.begin(), choices.end(), fallback) > 0);
  if (node == nullptr) return std::string(fallback);
  if (node->kind == Kind::scalar && std::find(choices.begin(), choices.end(), node->text) != choices.end())
    return node->text;
  std::string hint;
  if (const auto nearest = node->kind == Kind::scalar ? nearest_name(node->text, choices) : std::nullopt)
    hint = "did you mean '" + *nearest + "'?";
  expected(*node, key, "one of " + join_names(choices), hint);
  return std::string(fallback);
}

std::uint64_t Params::bytes(std::string_view key, std::uint64_t fallback) {
  const ConfigNode* node = value(key, false);
  if (node == nullptr) use_text(key, exact_bytes(fallback));
  if (node == nullptr) return fallback;
  if (const auto size = node->kind == Kind::scalar ? parse_bytes(node->text) : std::nullopt) return *size;
  expected(*node, key, "a size such as 512MiB or 2GiB");
  return fallback;
}

std::array<int, 2> Params::pair(std::string_view key, std::optional<std::array<int, 2>> fallback, int least, int most) {
  const std::array<int, 2> otherwise = fallback.value_or(std::array<int, 2>{least, least});
  const ConfigNode* node = value(key, !fallback);
  if (node == nullptr) {
    const auto [low, high] = std::minmax(otherwise[0], otherwise[1]);
    std::vector<std::string> texts{std::to_string(otherwise[0])};
    if (low != high) texts.push_back(std::to_string(otherwise[1]));
    if (fallback && low >= least && high <= most) use(key, scalar_or_list(texts, node_->place));
    return otherwise;
  }
  const auto in_range = [&](const ConfigNode& item) -> std::optional<int> {
    const auto number = parse_integer(item);
    return number && *number >= least && *number <= most ? std::optional(static_cast<int>(*number)) : std::nullopt;
  };
  if (node->kind == Kind::scalar) {
    if (const auto both = in_range(*node)) return {*both, *both};
  } else if (node->kind == Kind::sequence && node->items.size() == 2) {
    const auto height = in_range(node->items[0]), width = in_range(node->items[1]);
    if (height && width) return {*height, *width};
    expected(node->items[height ? 1 : 0], key, "two whole numbers" + range_text(least, most) + ", [height, width]",
             number_hint(node->items[height ? 1 : 0]));
    return otherwise;
  }
  const std::string list = list_hint(*node);
  expected(*node, key, "a whole number" + range_text(least, most) + ", or two of them as [height, width]",
           list.empty() ? number_hint(*node) : list);
  return otherwise;
}

std::vector<double> Params::numbers(std::string_view key, std::vector<double> fallback) {
  constexpr double limit = std::numeric_limits<double>::max();
  const ConfigNode* node = value(key, false);
  if (node == nullptr) {
    std::vector<std::string> texts;
    for (const double number : fallback) texts.push_back(format_number(number));
    use(key, scalar_or_list(texts, node_->place));
    return fallback;
  }
  if (const std::string hint = list_hint(*node); !hint.empty()) {
    expected(*node, key, "a number or a list of numbers", hint);
    return fallback;
  }
  std::vector<double> values;
  for (const ConfigNode& item : node->kind == Kind::sequence ? node->items : std::vector<ConfigNode>{*node}) {
    const auto number = number_in(item, key, -limit, limit);
    if (!number) return fallback;
    values.push_back(*number);
  }
  return values;
}

std::vector<std::int64_t> Params::integers(std::string_view key, std::int64_t least, std::int64_t most) {
  const ConfigNode* node = value(key, false);
  if (node == nullptr) return {};
  if (node->kind != Kind::sequence) {
    expected(*node, key, "a list of whole numbers" + range_text(least, most), list_hint(*node));
    return {};
  }
  std::vector<std::int64_t> values;
  for (const ConfigNode& item : node->items) {
    const auto number = integer_in(item, key, least, most);
    if (!number) return {};
    values.push_back(*number);
  }
  return values;
}

std::vector<std::string> Params::texts(std::string_view key) {
  const ConfigNode* node = value(key, false);
  if (node == nullptr) return {};
  if (node->kind == Kind::scalar && !node->quoted && node->text.find(", ") != std::string::npos) {
    expected(*node, key, "a list", "write [" + shown(node->text) + "], or put quotes around one string");
    return {};
  }
  std::vector<std::string> values;
  for (const ConfigNode& item : node->kind == Kind::sequence ? node->items : std::vector<ConfigNode>{*node}) {
    if (item.kind != Kind::scalar) {
      expected(item, key, "a string or a list of strings");
      return {};
    }
    values.push_back(item.text);
  }
  return values;
}

std::string Params::path(std::string_view key) {
  const std::string written = text(key, std::nullopt);
  const ConfigNode* node = value(key, false);
  if (node == nullptr || node->kind != Kind::scalar) return written;
  const std::string found = find_path(with_environment(written, node->place, *diagnostics_), node->place);
  use(key, text_node(absolute_path(found), node->place));
  return found;
}

std::vector<std::string> Params::paths(std::string_view key) {
  std::vector<std::string> found = texts(key), whole;
  const ConfigNode* node = value(key, false);
  if (node == nullptr) return found;
  for (std::string& path : found) {
    path = find_path(with_environment(path, node->place, *diagnostics_), node->place);
    whole.push_back(absolute_path(path));
  }
  use(key, scalar_or_list(whole, node->place));
  return found;
}

}  // namespace twiddle
