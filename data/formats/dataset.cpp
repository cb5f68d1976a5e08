#include "data/formats/dataset.h"

#include <cstdlib>
#include <filesystem>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

// The variable of the first `${NAME}` that is not set; empty: all are.
std::string unset_variable(const std::string& path) {
  for (std::size_t begin = path.find("${"); begin != std::string::npos; begin = path.find("${", begin + 1)) {
    const std::string name = path.substr(begin + 2, path.find('}', begin) - begin - 2);
    if (std::getenv(name.c_str()) == nullptr) return name;
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> Dataset::labels(std::int64_t index) const {
  Image image;
  return get(index, image).labels;
}

void Dataset::expect_index(std::int64_t index) const {
  if (index < 0 || index >= size())
    throw Error(ErrorKind::data, join("there is no image ", index, " in ", describe(), "; the last is ", size() - 1));
}

std::vector<std::int64_t> empty_classes(const Dataset& data) {
  std::vector<bool> has_image(data.classes().size(), false);
  std::size_t empty = has_image.size();
  for (std::int64_t index = 0; index < data.size() && empty > 0; ++index)
    for (const std::int64_t label : data.labels(index)) {
      const auto place = static_cast<std::size_t>(label);
      if (label < 0 || place >= has_image.size() || has_image[place]) continue;  // a wrong label is an error later
      has_image[place] = true;
      --empty;
    }
  std::vector<std::int64_t> classes;
  for (std::size_t label = 0; label < has_image.size(); ++label)
    if (!has_image[label]) classes.push_back(static_cast<std::int64_t>(label));
  return classes;
}

std::string resolve_path(const DatasetSite& site, const std::string& path) {
  const std::filesystem::path next_to_config = std::filesystem::path(site.config_folder) / path;
  std::error_code code;
  if (std::filesystem::exists(path, code)) return path;
  if (std::filesystem::exists(next_to_config, code)) return next_to_config.string();
  if (code) throw Error(ErrorKind::data, join("cannot open '", shown(next_to_config.string()), "': ", code.message()));
  if (const std::string name = unset_variable(path); !name.empty())
    throw Error(ErrorKind::config, join("environment variable '", shown(name), "' is not set, but '", shown(path),
                                        "' needs it; set it, or write the path itself"));
  if (next_to_config == path) throw Error(ErrorKind::data, join("no such file or folder: '", shown(path), "'"));
  throw Error(ErrorKind::data,
              join("no such file or folder: '", shown(path), "' (looked for ", shown(next_to_config.string()),
                   ", next to the config file, and for ", shown(path), " from the current folder)"));
}

std::vector<std::string> resolve_paths(const DatasetSite& site, std::vector<std::string> paths) {
  std::string missing;
  ErrorKind kind = ErrorKind::data;
  for (std::string& path : paths) {
    try {
      path = resolve_path(site, path);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::config) kind = ErrorKind::config;
      missing += (missing.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!missing.empty()) throw Error(kind, missing);
  return paths;
}

}  // namespace twiddle
