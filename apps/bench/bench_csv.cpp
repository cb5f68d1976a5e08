#include <algorithm>

#include "apps/bench/bench.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

std::string cell_of(const Json& value) {
  if (value.is_null()) return {};
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

using Fields = std::vector<std::pair<std::string, Json>>;

Fields flat(const Json& row) {
  Fields fields;
  for (const auto& [name, value] : row.items()) {
    if (!value.is_object())
      fields.emplace_back(name, value);
    else
      for (const auto& [inner, each] : value.items()) fields.emplace_back(name + "." + inner, each);
  }
  return fields;
}

}  // namespace

std::string to_csv(const Json& rows) {
  std::vector<std::string> names;
  for (const Json& row : rows)
    for (const auto& [name, value] : flat(row))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::string text;
  const auto add_line = [&](const auto& cell_named) {
    for (const std::string& name : names) {
      if (&name != &names.front()) text += ',';
      text += cell_named(name);
    }
    text += '\n';
  };
  add_line([](const std::string& name) { return cell_of(name); });
  for (const Json& row : rows) {
    const Fields fields = flat(row);
    add_line([&](const std::string& name) {
      const auto found =
          std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
      return found == fields.end() ? std::string() : cell_of(found->second);
    });
  }
  return text;
}

}  // namespace twiddle
