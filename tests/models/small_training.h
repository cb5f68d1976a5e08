#pragma once
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "data/formats/dataset.h"
#include "framework/context.h"
#include "framework/parameter.h"
#include "layers/sequential.h"
#include "models/config/config.h"
#include "models/config/experiment.h"
#include "models/training/trainer.h"
#include "tests/support/temp_path.h"

namespace twiddle {

// A network with every kind of state: dropout's random numbers, batch norm's averages, momentum, augmentation.
inline Experiment small_experiment(const std::vector<Override>& overrides = {}, const ExperimentOptions& options = {}) {
  return load_experiment_text(R"(
version: 1
seed: 3
deterministic: true  # on a GPU, engines chosen by their time would differ in the last bits from run to run
model:
  input: [1, 8, 8]
  layers:
    - conv2d: {filters: 4, kernel: 3}
    - batch_norm
    - relu
    - max_pool: {kernel: 2}
    - dropout: {rate: 0.3}
    - linear: {outputs: 4}
data:
  train: {format: synthetic, images: 90, classes: 4}
  val: {format: synthetic, images: 40, classes: 4, seed: 2}
  augment: [hflip]
  workers: 2
train:
  optimizer: {sgd: {momentum: 0.9, weight_decay: 1e-3}}
  learning_rate: 0.02
  schedule: {cosine: {warmup: 1}}
  epochs: 4
  batch_size: 20
)",
                              "small.yaml", overrides, options);
}

struct Losses : TrainObserver {
  std::vector<double> steps, epochs, top1;
  bool wants_step(std::int64_t) override { return true; }
  void on_step(const StepReport& report) override { steps.push_back(report.loss); }
  void on_epoch(const EpochReport& report) override {
    epochs.push_back(report.train_loss);
    top1.push_back(report.train_top1);
  }
};

// Requests the stop after a number of steps.
struct StopAfter : TrainObserver {
  std::int64_t steps;
  std::atomic<bool>& stop;
  StopAfter(std::int64_t count, std::atomic<bool>& flag) : steps(count), stop(flag) {}
  bool wants_step(std::int64_t step) override {
    stop = step >= steps;
    return false;
  }
};

inline std::string new_folder(const std::string& name) {
  const std::string folder = temp_path("trainer_" + name);
  std::filesystem::remove_all(folder);
  return folder;
}

inline std::vector<std::vector<float>> weights(Trainer& trainer) {
  std::vector<std::vector<float>> all;
  for (const Parameter* parameter : trainer.model().net->parameters()) {
    all.push_back(parameter->variable.value().to_vector(*trainer.context().stream));
  }
  return all;
}

inline Trainer::Options in_folder(const std::string& folder, const std::string& resume = "") {
  Trainer::Options options;
  options.run_folder = folder;
  options.resume = resume;
  return options;
}

// Writes a list of gray 8x8 images of four alternating classes into a folder of that name; those at `bad` are
// truncated.
inline std::string write_pictures(const std::string& name, int count, const std::set<int>& bad = {}) {
  const std::string folder = new_folder(name);
  std::filesystem::create_directories(folder);
  std::ofstream list(folder + "/list.txt");
  for (int i = 0; i < count; ++i) {
    const std::string file = std::to_string(i) + ".png";
    const std::vector<std::uint8_t> png =
        encode_png({1, 8, 8, std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(15 * i))});
    const std::size_t bytes = bad.count(i) > 0 ? png.size() / 2 : png.size();
    std::ofstream(folder + "/" + file, std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(bytes));
    list << file << ' ' << i % 4 << '\n';
  }
  return folder + "/list.txt";
}

// The images stay the same, and their files become long.
inline void make_slow_to_read(const std::string& list) {
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(list).parent_path()))
    if (file.path().extension() == ".png") std::filesystem::resize_file(file, std::uintmax_t(32) << 20);
}

}  // namespace twiddle
