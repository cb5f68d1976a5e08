#pragma once
#include <string>
#include <utility>
#include <vector>

#include "models/config.h"

namespace twiddle {

// Makes OUT/NAME-001, or the next number that is free; two runs that start at once get two folders.
std::string make_run_folder(const std::string& out, const std::string& name);

// A folder that a run has just made goes again where the run came to nothing: no empty folders pile up.
class NewFolder {
 public:
  explicit NewFolder(std::string path) : path_(std::move(path)) {}
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;  // empty: stays
};

// What the folder says about the run: config.yaml (every key as it came out of file, base and flags) and
// environment.json (versions, machine, and where the config came from, which its relative paths refer to).
void write_run_facts(const std::string& folder, const Config& config, const std::string& device);

// The config of a run folder, as if read from where it came from.
Config load_run_config(const std::string& folder, const std::vector<Override>& overrides);

bool is_run_folder(const std::string& path);

// The run folder that a path given to `--resume` lies in, by its name alone; empty where it lies in none.
std::string run_folder_to_resume(const std::string& path);

// Where `--resume` goes on: a run folder's newest checkpoint, or the checkpoint named.
struct ResumePoint {
  std::string run_folder, checkpoint;
};
ResumePoint find_resume_point(const std::string& path);

// Each key that differs: "train.epochs: 2 -> 4".
std::vector<std::string> config_changes(const ConfigNode& before, const ConfigNode& after);

}  // namespace twiddle
