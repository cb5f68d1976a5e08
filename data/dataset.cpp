#include "data/dataset.h"

#include <filesystem>

#include "data/classes.h"
#include "framework/printable.h"

namespace twiddle {

std::string resolve_path(const DatasetSite& site, const std::string& path) {
  const std::filesystem::path beside_config = std::filesystem::path(site.config_folder) / path;
  std::error_code code;
  if (std::filesystem::exists(path, code)) return path;
  if (std::filesystem::exists(beside_config, code)) return beside_config.string();
  if (beside_config == path) throw Error(ErrorKind::data, join("no such file or folder: '", printable(path), "'"));
  throw Error(ErrorKind::data,
              join("no such file or folder: '", printable(path), "' (looked for ", printable(beside_config.string()),
                   ", beside the config file, and for ", printable(path), " from the current folder)"));
}

std::vector<std::string> printable_classes(std::vector<std::string> names) {
  for (std::string& name : names) name = printable(name);
  return names;
}

std::vector<std::string> resolve_paths(const DatasetSite& site, std::vector<std::string> paths) {
  std::string missing;
  for (std::string& path : paths) {
    try {
      path = resolve_path(site, path);
    } catch (const Error& error) {
      missing += (missing.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!missing.empty()) throw Error(ErrorKind::data, missing);
  return paths;
}

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace twiddle
