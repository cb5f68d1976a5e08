#include "apps/run_folder/config_origin.h"

#include <climits>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace twiddle {

std::string config_origin(const std::string& run_folder) {
  const std::filesystem::path path = std::filesystem::path(run_folder) / "environment.json";
  if (!std::filesystem::is_regular_file(path)) return {};
  std::ifstream file(path);
  const auto environment = nlohmann::json::parse(file, nullptr, false);
  if (!environment.is_object()) return {};
  const auto found = environment.find("config_file");
  if (found == environment.end() || !found->is_string()) return {};
  const auto origin = found->get<std::string>();
  const bool is_path = origin.starts_with('/') && origin.size() < PATH_MAX && origin.find('\0') == std::string::npos;
  return is_path ? origin : std::string();
}

}  // namespace twiddle
