#include "data/formats/classes.h"

#include <set>
#include <string_view>

#include "data/files.h"
#include "framework/config/params.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

// Empty lines at the end of the file are left out.
std::vector<std::string> read_names(const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_bytes(path);
  if (!is_utf8({reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
    throw Error(ErrorKind::data, join("'", printable(path), "' is not a text file; expected one class name per line"));
  const std::vector<std::string_view> lines = lines_of(bytes);
  std::vector<std::string> names(lines.begin(), lines.end());
  while (!names.empty() && names.back().empty()) names.pop_back();
  const auto fail = [&](std::size_t line, const std::string& what) {
    throw Error(ErrorKind::data, join(printable(path), ":", line + 1, ": ", what));
  };
  if (names.empty()) throw Error(ErrorKind::data, join(printable(path), ": has no class name; expected one per line"));
  if (std::ssize(names) > most_classes) fail(most_classes, join("more than ", most_classes, " class names"));
  std::set<std::string_view> seen;
  for (std::size_t line = 0; line < names.size(); ++line) {
    if (names[line].empty()) fail(line, "empty line; expected one class name per line");
    if (!seen.insert(names[line]).second) fail(line, join("class '", shown(names[line]), "' is named twice"));
  }
  return names;
}

}  // namespace

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> printable_classes(std::vector<std::string> names) {
  for (std::string& name : names) name = printable(name);
  return names;
}

ClassNames::ClassNames(Params& params) {
  const ConfigNode* const node = params.node("classes");
  if (node != nullptr && node->kind == ConfigNode::Kind::scalar) {
    file_ = params.path("classes");
    return;
  }
  names_ = params.texts("classes");
  std::set<std::string> seen;
  for (const std::string& name : names_)
    if (!seen.insert(name).second) params.error("classes", join("class '", shown(name), "' is named twice"));
}

std::vector<std::string> ClassNames::read(const DatasetSite& site) const {
  return printable_classes(file_.empty() ? names_ : read_names(resolve_path(site, file_)));
}

}  // namespace twiddle
