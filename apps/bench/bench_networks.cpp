#include <fmt/core.h>

#include <filesystem>

#include "apps/bench/bench.h"
#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "apps/verbs/iteration_timer.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/config/experiment.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

constexpr int warm_ups = 3, looks_at_a_layer = 5, usual_batch = 128;

// Milliseconds per pass over all convolution layers, and per iteration.
struct NetworkTimes {
  double passes[3] = {};
  double iteration = 0;
  double total() const { return passes[0] + passes[1] + passes[2]; }
};

// Selects the fastest of an engine's plans unless the name has a plan.
std::string best_of(const std::string& engine) {
  const bool is_policy = engine == "rule" || engine.starts_with("measured");
  return is_policy || engine.find(':') != std::string::npos ? engine : "measured:" + engine;
}

// `engine`: ENGINE or ENGINE+FIRST. FIRST computes the first layer, which is strided in these networks.
NetworkTimes time_network(const BenchRequest& request, const std::string& network, const std::string& engine) {
  const BenchOptions& options = request.options;
  const std::size_t plus = engine.find('+');
  std::vector<Override> overrides{
      {"device", to_string(options.device), "bench"},
      {"train.batch_size", std::to_string(options.batch > 0 ? options.batch : usual_batch), "--batch-size"},
      {"precision", std::string(to_string(options.precision)), "--precision"},
      {"convolution.workspace_limit", std::to_string(options.workspace_limit), "--workspace-limit"},
      {"convolution.engine", best_of(engine.substr(0, plus)), "--engines"}};
  if (plus != std::string::npos)
    overrides.push_back({"model.layers.conv1.engine", best_of(engine.substr(plus + 1)), "--engines"});
  const Experiment experiment = load_experiment(request.models + "/" + network + ".yaml", overrides);
  const Config& config = experiment.config;
  const Model& model = experiment.model;
  Context ctx(experiment.device, config.seed);
  IterationTimer timer(ctx, model, *experiment.loss, *experiment.optimizer, config.train.batch_size, *request.ranks);
  NetworkTimes times;
  times.iteration = timer.whole_iterations(0, warm_ups, false).whole.quantile(0.5);
  for (const LayerTime& row : timer.layer_by_layer(looks_at_a_layer))
    for (const ConvPass pass : every_pass)
      if (!row.engine.empty() && row.pass == to_string(pass))
        times.passes[static_cast<std::size_t>(pass)] += row.milliseconds;
  return times;
}

// Returns all engines that support whole networks. FFT convolution engines use the vendor's engine for a strided first
// layer.
std::vector<std::string> usual_engines(const BenchOptions& options) {
  BenchOptions all = options;
  all.engines.clear();
  all.precision = Precision::fp32;  // does not change the names
  const LayerBench bench(all);
  std::vector<std::string> names;
  for (const ConvEngine* engine : bench.engines()) {
    const std::string name(engine->name());
    if (name.find('(') != std::string::npos) continue;  // a wrapper for strides
    const bool helped = dynamic_cast<const SpectralEngine*>(engine) != nullptr && bench.vendor() != nullptr;
    names.push_back(helped ? name + "+" + std::string(bench.vendor()->name()) : name);
  }
  return names;
}

void add(TextTable& table, Json& rows, const std::string& network, const std::string& engine, const double* passes,
         double total, const char* kind) {
  std::vector<std::string> cells{network, engine};
  for (int pass = 0; pass < 3; ++pass) cells.push_back(fmt::format("{:.2f}", passes[pass]));
  cells.push_back(fmt::format("{:.2f}", total));
  table.add(cells);
  rows.push_back({{"network", network},
                  {"engine", engine},
                  {"of", kind},
                  {"forward_ms", passes[0]},
                  {"backward_input_ms", passes[1]},
                  {"backward_weight_ms", passes[2]},
                  {"total_ms", total}});
}

}  // namespace

BenchResult bench_networks(const BenchRequest& request, const std::vector<std::string>& networks,
                           const std::vector<PaperNetwork>& paper) {
  if (!std::filesystem::is_directory(request.models))
    throw Error(ErrorKind::config, "there is no folder '" + printable(request.models) +
                                       "' with the networks; --models names it (models/ of Twiddle's source)");
  const std::vector<std::string> engines =
      request.options.engines.empty() ? usual_engines(request.options) : request.options.engines;
  TextTable table({"network", "engine", "forward", "backward_input", "backward_weight", "total, ms"});
  BenchResult result;
  for (const std::string& network : networks) {
    for (const std::string& engine : engines) {
      const bool reporting = request.verbosity >= 0;
      if (reporting)
        write_stderr(fmt::format("{} by {}, network {} of {}, engine {} of {}\n", network, engine,
                                 &network - networks.data() + 1, networks.size(), &engine - engines.data() + 1,
                                 engines.size()));
      try {
        const NetworkTimes times = time_network(request, network, engine);
        if (reporting)
          write_stderr(fmt::format("  {:.1f} ms, {:.1f} ms with all other layers\n", times.total(), times.iteration));
        add(table, result.rows, network, engine, times.passes, times.total(), "this machine");
        result.rows.back()["iteration_ms"] = times.iteration;
      } catch (const Error& error) {
        // An unknown name is an error. An engine that does not support a layer, or has too little memory, is a result.
        if (request.options.engines.size() == 1) throw;
        result.rows.push_back({{"network", network}, {"engine", engine}, {"failure", error.what()}});
        const std::string why(error.what());
        table.add({network, engine, "failed: " + why.substr(0, why.find('\n')), "", "", ""});
      }
    }
    for (const PaperNetwork& printed : paper)
      if (printed.network == network)
        add(table, result.rows, network, printed.implementation, printed.milliseconds, printed.milliseconds[3],
            "the paper");
  }
  if (request.print)
    fmt::print(
        "{}All convolution layers at batch {}, each a median of {} training steps with timers around every pass; bias\n"
        "and ReLU count in forward, backward_input leaves the first layer out. A+B: B does the first layer.\n",
        table.text(), request.options.batch > 0 ? request.options.batch : usual_batch, looks_at_a_layer);
  return result;
}

BenchResult bench_table3(const BenchRequest& request) {
  const std::vector<std::string> usual{"alexnet", "overfeat_fast"};
  return bench_networks(request, request.networks.empty() ? usual : request.networks, fbfft_table3());
}

}  // namespace twiddle
