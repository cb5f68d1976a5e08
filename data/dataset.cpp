#include "data/dataset.h"

#include <cstdlib>
#include <filesystem>

#include "data/classes.h"
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

std::string resolve_path(const DatasetSite& site, const std::string& path) {
  const std::filesystem::path beside_config = std::filesystem::path(site.config_folder) / path;
  std::error_code code;
  if (std::filesystem::exists(path, code)) return path;
  if (std::filesystem::exists(beside_config, code)) return beside_config.string();
  if (const std::string name = unset_variable(path); !name.empty())
    throw Error(ErrorKind::config, join("environment variable '", shown(name), "' is not set, but '", shown(path),
                                        "' needs it; set it, or write the path itself"));
  if (beside_config == path) throw Error(ErrorKind::data, join("no such file or folder: '", shown(path), "'"));
  throw Error(ErrorKind::data,
              join("no such file or folder: '", shown(path), "' (looked for ", shown(beside_config.string()),
                   ", beside the config file, and for ", shown(path), " from the current folder)"));
}

std::vector<std::string> printable_classes(std::vector<std::string> names) {
  for (std::string& name : names) name = printable(name);
  return names;
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

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace twiddle
