#pragma once
#include <string>
#include <vector>

#include "models/config/experiment.h"

namespace twiddle {

// Creates OUT/NAME-001, or the next free number. Two runs that start at once get two folders.
std::string make_run_folder(const std::string& out, const std::string& name);

// The folder of a new run. Unless keep() was called, the destructor removes it and the parent folders created for it,
// so that no empty folders accumulate.
class NewFolder {
 public:
  NewFolder() = default;  // for a run that resumes in its existing folder: creates and removes nothing
  NewFolder(const std::string& out, const std::string& name) { make(out, name); }
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void make(const std::string& out, const std::string& name);  // calls make_run_folder; at most once
  const std::string& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::vector<std::string> made_above_;  // the innermost first
  std::string path_;
  bool kept_ = false;
};

// Writes config.yaml and environment.json. config.yaml has every key as merged from file, base and flags.
// environment.json has versions, machine, and the config's original path, which its relative paths refer to.
void write_run_facts(const std::string& folder, const Config& config, const std::string& device);

// Loads the experiment of a run folder; relative paths refer to the config's original location.
Experiment load_run(const std::string& folder, const std::vector<Override>& overrides = {},
                    ExperimentOptions options = {});

bool is_run_folder(const std::string& path);

// Returns the run folder that contains a path given to `--resume`, derived from the path alone; empty if there is none.
std::string run_folder_to_resume(const std::string& path);

// The point that `--resume` resumes from: a run folder's newest checkpoint, or the given checkpoint.
struct ResumePoint {
  std::string run_folder, checkpoint;
};
ResumePoint find_resume_point(const std::string& path);

// Lists each key that differs: "train.epochs: 2 -> 4".
std::vector<std::string> config_changes(const ConfigNode& before, const ConfigNode& after);

}  // namespace twiddle
