// Whether two workers feed a training step: images per second of the loader alone, of the step alone, and of a run that
// does both, with the share of its time that it waited for data. Prints a Markdown table; networks whose files are
// absent are left out.
// usage: twiddle_loader_bench [DATA-FOLDER [DEVICE [EPOCHS]]], from the repository's root
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "framework/context.h"
#include "framework/error.h"
#include "models/config/config.h"
#include "models/config/experiment.h"
#include "models/training/open_data.h"
#include "models/training/trainer.h"

using namespace twiddle;

namespace {

struct Network {
  const char* model;
  const char* files;  // in the data folder
  std::string data;
};

std::vector<Network> networks_in(const std::string& folder) {
  const std::string mnist = folder + "/mnist-t10k/t10k-";
  return {{"lenet", "mnist-t10k",
           "{format: idx, images: " + mnist + "images-idx3-ubyte.gz, labels: " + mnist + "labels-idx1-ubyte.gz}"},
          {"cifar10", "cifar10-small", "{format: cifar10, path: " + folder + "/cifar10-small, split: train}"}};
}

// Loads whole epochs and discards the batches, for at least `seconds`.
double loader_rate(const Experiment& experiment, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Config& config = experiment.config;
  Context ctx(experiment.device);
  const OpenData data = open_data(experiment);
  LoaderOptions options;
  options.batch_size = config.train.batch_size;
  options.workers = config.data.workers;
  options.shuffle = true;
  Loader loader(*data.train, *data.train_augment, options);
  std::int64_t images = 0;
  double taken = 0;
  const Clock::time_point start = Clock::now();
  for (std::int64_t epoch = 0; taken < seconds; ++epoch) {
    Batch batch;
    loader.start_epoch(*ctx.stream, epoch);
    while (loader.next(batch)) images += batch.images.dim(0);
    ctx.stream->synchronize();
    taken = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return static_cast<double>(images) / taken;
}

// Keeps the fastest epoch.
class Fastest : public TrainObserver {
 public:
  bool wants_step(std::int64_t /*step*/) override { return false; }
  void on_epoch(const EpochReport& report) override {
    if (report.images_per_second > best.images_per_second) best = report;
  }
  EpochReport best;
};

EpochReport train(Experiment experiment, bool one_batch) {
  Trainer::Options options;
  options.overfit_batch = one_batch;
  Fastest fastest;
  const std::atomic<bool> stop = false;
  Trainer(std::move(experiment), options).run({&fastest}, stop);
  return fastest.best;
}

int run(const std::string& folder, const std::string& device, const std::string& epochs) {
  std::printf("%s, batch 64, two workers; the fastest of %s epochs\n\n", describe(parse_device(device)).c_str(),
              epochs.c_str());
  std::printf(
      "| network | loader alone, images/s | step alone, images/s | training, images/s | training / step | data wait "
      "|\n");
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Network& network : networks_in(folder)) {
    if (!std::filesystem::exists(folder + "/" + network.files)) {
      std::fprintf(stderr, "no %s/%s: %s is left out\n", folder.c_str(), network.files, network.model);
      continue;
    }
    const auto experiment = [&] {
      return load_experiment(std::string("models/") + network.model + ".yaml",
                             {{"data.train", network.data, "--set"},
                              {"data.val", network.data, "--set"},
                              {"data.workers", "2", "--workers"},
                              {"train.batch_size", "64", "--batch-size"},
                              {"train.epochs", epochs, "--epochs"},
                              {"device", device, "--device"}});
    };
    const double loader = loader_rate(experiment(), 2), step = train(experiment(), true).images_per_second;
    const EpochReport both = train(experiment(), false);
    std::printf("| %s | %.0f | %.0f | %.0f | %.2f | %.1f %% |\n", network.model, loader, step, both.images_per_second,
                both.images_per_second / step, 100 * both.wait.largest());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = std::filesystem::absolute(argc > 1 ? argv[1] : "../shared/data").string();
  return run(folder, argc > 2 ? argv[2] : "auto", argc > 3 ? argv[3] : "4");
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.kind());
}
