#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "models/checkpoints/safetensors.h"
#include "tests/apps/run_program.h"

// Finds the files that several ranks write.
namespace twiddle {

inline std::vector<std::vector<float>> weights_at(const std::filesystem::path& run, const std::string& step) {
  std::vector<std::vector<float>> all;
  const SafeTensors contents =
      read_safetensors((run / "checkpoints" / ("step-000000" + step) / "model.safetensors").string());
  for (const auto& [name, array] : contents.arrays) {
    std::vector<float>& values = all.emplace_back(array.bytes.size() / sizeof(float));
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  }
  return all;
}

// Returns the largest difference over all tensors, relative to the largest value of the tensor.
inline double difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  EXPECT_EQ(a.size(), b.size());
  double share = 0;
  for (std::size_t tensor = 0; tensor < a.size(); ++tensor) {
    float most = 0, largest = 0;
    for (std::size_t i = 0; i < a[tensor].size(); ++i) {
      most = std::max(most, std::abs(a[tensor][i] - b[tensor][i]));
      largest = std::max(largest, std::abs(b[tensor][i]));
    }
    share = std::max(share, static_cast<double>(most / largest));
  }
  return share;
}

inline const std::vector<std::string> twenty_steps{"--epochs",     "2",     "--limit-batches",         "10", "--set",
                                                   "train.keep=9", "--set", "train.checkpoint_every=5"};

inline std::string field_of(const std::filesystem::path& process, const std::string& name) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  return "";
}

// Returns the program's processes below that one.
inline std::vector<pid_t> ranks_of(pid_t mpirun) {
  std::vector<pid_t> ranks;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (field_of(entry.path(), "Name") != "twiddle") continue;
    std::string parent = field_of(entry.path(), "PPid");
    while (parent.size() > 1 && parent != std::to_string(mpirun)) parent = field_of("/proc/" + parent, "PPid");
    if (parent == std::to_string(mpirun)) ranks.push_back(std::stoi(entry.path().filename().string()));
  }
  return ranks;
}

// Two processes: rank 0, which writes to the run folder, and the other rank.
struct TwoRanks {
  pid_t leader, other;
};
inline TwoRanks two_ranks(pid_t mpirun, const std::filesystem::path& run) {
  const std::vector<pid_t> ranks = ranks_of(mpirun);
  if (ranks.size() != 2) throw std::runtime_error(std::to_string(ranks.size()) + " ranks run");
  const bool first = read_text(run / ".lock").starts_with("pid " + std::to_string(ranks[0]) + " ");
  return first ? TwoRanks{ranks[0], ranks[1]} : TwoRanks{ranks[1], ranks[0]};
}

inline bool has_checkpoint(const std::filesystem::path& run) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints", none))
    if (entry.path().filename().string().starts_with("step-")) return true;
  return false;
}

}  // namespace twiddle
