#include "apps/run_folder/run_folder.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/run_folder/config_origin.h"
#include "apps/version.h"
#include "data/images/decoders.h"
#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/checkpoints/checkpoint.h"
#include "models/config/json_text.h"
#include "models/config/yaml.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Returns a folder name in which '_' replaces characters that are special to a file system or a shell. Non-ASCII
// letters stay if the name is valid text.
std::string folder_name(const std::string& name) {
  const bool text = is_line_of_text(name);
  std::string safe;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x80 ? text : std::isalnum(byte) || c == '-' || c == '_' || c == '.';
    safe += plain ? c : '_';
  }
  const bool hidden_or_flag = safe.empty() || safe[0] == '.' || safe[0] == '-';
  return hidden_or_flag ? "run" + safe : safe;
}

int highest_number(const std::string& out, const std::string& prefix) {
  int highest = 0;
  for (const auto& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0 || name.size() > prefix.size() + 8) continue;
    const std::string digits = name.substr(prefix.size());
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) continue;
    highest = std::max(highest, std::stoi(digits));
  }
  return highest;
}

// Calls use(path, text) for each value: "train.epochs", "2".
template <class Use>
void for_each_leaf(const ConfigNode& node, const std::string& path, const Use& use) {
  if (node.kind == ConfigNode::Kind::mapping) {
    for (const auto& entry : node.entries)
      for_each_leaf(entry.value, path.empty() ? entry.key : path + "." + entry.key, use);
  } else if (node.kind == ConfigNode::Kind::sequence) {
    for (std::size_t i = 0; i < node.items.size(); ++i)
      for_each_leaf(node.items[i], path + "[" + std::to_string(i) + "]", use);
  } else {
    use(path, node.text);
  }
}

// Rejects special files: opening a pipe named train.log, for example, would block forever.
void require_no_pipes(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::error_code gone;
    const fs::file_status status = entry.status(gone);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
      throw Error(ErrorKind::data, "cannot use '" + printable(entry.path().string()) + "': it is not a regular file");
  }
}

// Returns RUN of RUN/checkpoints/step-00000341.
fs::path run_of(const fs::path& checkpoint) {
  const fs::path run = checkpoint.parent_path().parent_path();
  return run.empty() ? fs::absolute(checkpoint).parent_path().parent_path() : run;
}

}  // namespace

std::string make_run_folder(const std::string& out, const std::string& name) {
  std::error_code failed;
  fs::create_directories(out, failed);
  if (!fs::is_directory(out))
    throw Error("cannot make the folder '" + printable(out) + "' for runs: " + failed.message());
  const std::string prefix = folder_name(name) + "-";
  for (int number = highest_number(out, prefix) + 1;; ++number) {
    const std::string folder = (fs::path(out) / fmt::format("{}{:03}", prefix, number)).string();
    if (mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) throw Error("cannot make the run folder '" + printable(folder) + "': " + std::strerror(errno));
  }
}

void NewFolder::make(const std::string& out, const std::string& name) {
  for (fs::path above = fs::absolute(out); !fs::exists(above); above = above.parent_path())
    made_above_.push_back(above.string());
  path_ = make_run_folder(out, name);
}

NewFolder::~NewFolder() {
  if (kept_ || path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  for (const std::string& above : made_above_) fs::remove(above, ignored);  // fails if another run is in it by now
}

void write_run_facts(const std::string& folder, const Config& config, const std::string& device) {
  const std::string origin = fs::absolute(config.file).lexically_normal().string();
  const std::string yaml = "# Every key as it was used; made from " + printable(origin) + "\n";
  write_file_atomically((fs::path(folder) / "config.yaml").string(), yaml + to_yaml(config.tree));
  utsname system{};
  uname(&system);
  nlohmann::json environment = {{"twiddle", version()},
                                {"compiler", compiler()},
                                {"device", device},
                                {"jpeg_reader", jpeg_reader()},
                                {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
                                {"config_file", origin}};
  if (!commit().empty()) environment["commit"] = commit();
  write_file_atomically((fs::path(folder) / "environment.json").string(), json_text(environment, 2) + "\n");
}

Experiment load_run(const std::string& folder, const std::vector<Override>& overrides, ExperimentOptions options) {
  require_no_pipes(folder);
  options.origin = config_origin(folder);
  return load_experiment((fs::path(folder) / "config.yaml").string(), overrides, options);
}

bool is_run_folder(const std::string& path) {
  return fs::exists(fs::path(path) / "config.yaml");
}

std::string run_folder_to_resume(const std::string& path) {
  if (is_run_folder(path)) return path;
  fs::path checkpoint = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  if (checkpoint.filename() == "state.safetensors") checkpoint = checkpoint.parent_path();
  const std::string run = run_of(checkpoint).string();
  return is_run_folder(run) ? run : "";
}

ResumePoint find_resume_point(const std::string& path) {
  const std::string checkpoint = newest_checkpoint(path);
  const fs::path run = run_of(checkpoint);
  if (!is_run_folder(run.string()))
    throw Error(ErrorKind::config, "--resume takes a run folder or one of its checkpoint folders; '" +
                                       printable(run.string()) +
                                       "' has no config.yaml. To start from weights alone use --weights");
  return {run.string(), checkpoint};
}

std::vector<std::string> config_changes(const ConfigNode& before, const ConfigNode& after) {
  struct Change {
    std::string from = "(not set)", to = "(gone)";
  };
  std::map<std::string, Change> by_key;
  for_each_leaf(before, "", [&](const std::string& key, const std::string& text) { by_key[key].from = text; });
  for_each_leaf(after, "", [&](const std::string& key, const std::string& text) { by_key[key].to = text; });
  std::vector<std::string> changes;
  for (const auto& [key, change] : by_key)
    if (change.from != change.to) changes.push_back(printable(key + ": " + change.from + " -> " + change.to));
  return changes;
}

}  // namespace twiddle
