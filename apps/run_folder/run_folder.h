#pragma once
#include <string>
#include <vector>

#include "models/config/experiment.h"

namespace twiddle {

// Makes OUT/NAME-001, or the next number that is free; two runs that start at once get two folders.
std::string make_run_folder(const std::string& out, const std::string& name);

// The folder of a new run. Where the run comes to nothing it goes again, with the folders above it that were made for
// it: no empty folders pile up.
class NewFolder {
 public:
  NewFolder() = default;  // of a run that goes on in a folder of its own: nothing is made, and nothing goes
  NewFolder(const std::string& out, const std::string& name) { make(out, name); }
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void make(const std::string& out, const std::string& name);  // by make_run_folder, once
  const std::string& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::vector<std::string> made_above_;  // the innermost first
  std::string path_;
  bool kept_ = false;
};

// What the folder says about the run: config.yaml (every key as it came out of file, base and flags) and
// environment.json (versions, machine, and where the config came from, which its relative paths refer to).
void write_run_facts(const std::string& folder, const Config& config, const std::string& device);

// The experiment of a run folder, as if its config were read from where it came from.
Experiment load_run(const std::string& folder, const std::vector<Override>& overrides = {},
                    ExperimentOptions options = {});

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
