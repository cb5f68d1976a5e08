#include "framework/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>

#include "framework/names_elsewhere.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

// Insertions, deletions, changes and swaps of neighbours that make `a` into `b`.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> two_ago, previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], two_ago[j - 2] + 1);
    }
    two_ago = previous;
    previous = current;
  }
  return previous[b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view typed, const std::vector<std::string>& known) {
  constexpr std::size_t longest = 64;  // what is longer was not meant as a name
  if (typed.empty() || typed.size() > longest) return std::nullopt;
  for (const std::string& name : known)
    if (!name.empty() && plain_name(typed) == plain_name(name)) return name;
  if (const NameElsewhere* const elsewhere = name_elsewhere(typed)) {
    for (const std::string& here : elsewhere->here)
      if (std::find(known.begin(), known.end(), here) != known.end()) return here;
    // A name of something unsupported must not match a similar name: "relu6" is not "relu".
    if (elsewhere->here.empty()) return std::nullopt;
  }
  const std::string wanted = lower(typed);
  const std::string* nearest = nullptr;
  std::size_t least = longest;
  for (const std::string& name : known) {
    const std::string candidate = lower(name);
    const bool part = wanted.size() >= 4 && candidate.find(wanted) != std::string::npos;  // "pool" of "max_pool"
    const bool begins = part && candidate.starts_with(wanted);  // "batch" is "batch_size" and not "watch"
    const std::size_t distance = begins ? 0 : edit_distance(wanted, candidate);
    const std::size_t allowed = std::max<std::size_t>(1, wanted.size() / 3);
    if ((part || (distance <= allowed && distance < wanted.size())) && distance < least) {
      least = distance;
      nearest = &name;
    }
  }
  return nearest == nullptr ? std::nullopt : std::optional<std::string>(*nearest);
}

std::string unknown_name(std::string_view what, std::string_view typed, const std::vector<std::string>& known) {
  const std::string named = std::string(what) + " '" + shown(typed) + "'";
  const NameElsewhere* const elsewhere = name_elsewhere(typed);
  const auto nearest = nearest_name(typed, known);
  const bool is_meant = nearest && elsewhere != nullptr &&
                        std::find(elsewhere->here.begin(), elsewhere->here.end(), *nearest) != elsewhere->here.end();
  if (is_meant || (nearest && plain_name(typed) == plain_name(*nearest)))
    return "there is no " + named + ": it is called '" + *nearest + "'" +
           (is_meant && !elsewhere->addition.empty() ? ", " + elsewhere->addition : "");
  if (elsewhere != nullptr && !nearest && !elsewhere->advice.empty())
    return "there is no " + named + ": " + elsewhere->advice;
  if (elsewhere != nullptr && elsewhere->here.empty())
    return "there is no " + named + " yet; known are: " + join_names(known);
  return "unknown " + named + (nearest ? "; did you mean '" + *nearest + "'?" : "; known are: " + join_names(known));
}

std::string join_names(const std::vector<std::string>& names, std::string_view separator) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += separator;
    text += name;
  }
  return text;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < units.size()) value /= 1024, ++unit;
  const int decimals = value == std::floor(value) || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value, std::chars_format::fixed, decimals).ptr;
  return std::string(digits.begin(), end) + " " + units[unit];
}

std::string format_count(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string format_count(std::int64_t count, const std::string& noun) {
  const bool hisses = noun.ends_with("s") || noun.ends_with("x") || noun.ends_with("sh") ||
                      (noun.ends_with("ch") && !noun.ends_with("och"));  // batches, but epochs
  return format_count(count) + " " + noun + (count == 1 ? "" : hisses ? "es" : "s");
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (status != std::errc{} || value < 0) return std::nullopt;
  std::string unit = lower(text.substr(static_cast<std::size_t>(end - text.data())));
  unit.erase(0, unit.find_first_not_of(' '));

  constexpr std::array<std::pair<std::string_view, double>, 10> factors{{{"", 1},
                                                                         {"b", 1},
                                                                         {"kib", 0x1p10},
                                                                         {"mib", 0x1p20},
                                                                         {"gib", 0x1p30},
                                                                         {"tib", 0x1p40},
                                                                         {"kb", 1e3},
                                                                         {"mb", 1e6},
                                                                         {"gb", 1e9},
                                                                         {"tb", 1e12}}};
  for (const auto& [name, factor] : factors) {
    if (unit != name) continue;
    const double bytes = value * factor;
    if (!(bytes < 0x1p63) || (factor == 1 && bytes != std::floor(bytes))) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

std::string format_sides(int height, int width) {
  return height == width ? std::to_string(height) : std::to_string(height) + "x" + std::to_string(width);
}

std::string format_number(double value) {
  std::array<char, 64> digits{};
  std::string text(digits.begin(), std::to_chars(digits.begin(), digits.end(), value).ptr);
  // "5e-04" and "1e+06" as people write them: 5e-4, 1e6.
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos || !std::isfinite(value)) return text;
  std::string power = text.substr(exponent + 1);
  const std::string sign = power[0] == '-' ? "-" : "";
  power.erase(0, power.find_first_of("123456789"));
  return text.substr(0, exponent + 1) + sign + power;
}

}  // namespace twiddle
