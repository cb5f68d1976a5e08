#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "apps/command_line/verb_options.h"
#include "apps/ranks/rank_processes.h"
#include "apps/ranks/ranks.h"
#include "apps/verbs/iteration_timer.h"
#include "apps/verbs/network_facts.h"
#include "apps/verbs/open.h"
#include "apps/verbs/plan_table.h"
#include "apps/verbs/verbs.h"
#include "apps/version.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/conv/tuner/tuner.h"
#include "models/memory_plan.h"
#include "models/training/run_setup.h"
#include "models/training/shared_plans.h"

namespace twiddle {
namespace {

struct TimeArguments {
  std::string config;
  int gpus = 0;
  double seconds = 10;
  int steps = 0;
  bool no_graph = false, forward = false;
};

constexpr int profiled_steps = 5;

void print_whole(const IterationTimes& times, std::int64_t batch) {
  const std::size_t count = times.whole.samples.size();
  const std::string each = times.steps_a_sample > 1 ? fmt::format(" runs of {}", times.steps_a_sample) : "";
  fmt::print("whole iteration{}, no per-layer timers: {} warm-up + {}{} timed, {} CV {:.1f} %\n",
             times.captured ? " replayed from a CUDA graph" : "", times.warm_up, count, each,
             times.steady ? "stopped at" : "time or steps used up at", 100 * times.whole.variation());
  TextTable table({"", "median ms", "p10", "p90", "images/s"});
  const std::pair<const char*, const Timing*> rows[] = {{"forward and loss", &times.forward},
                                                        {"backward", &times.backward},
                                                        {"update", &times.update},
                                                        {"whole iteration", &times.whole}};
  for (const auto& [name, timing] : rows)
    table.add({name, fmt::format("{:.3f}", timing->quantile(0.5)), fmt::format("{:.3f}", timing->quantile(0.1)),
               fmt::format("{:.3f}", timing->quantile(0.9)),
               timing == &times.whole ? fmt::format("{:.1f}", 1000 * static_cast<double>(batch) / timing->quantile(0.5))
                                      : ""});
  fmt::print("{}", table.text());
  const double spread = times.whole.quantile(0.9) / times.whole.quantile(0.5), variation = times.whole.variation();
  if (spread > 1.1 || variation > 0.1)
    fmt::print("p90 is {:.2f} times the median, CV {:.0f} %: the machine is busy, repeat on an idle one\n", spread,
               100 * variation);
  fmt::print("\n");
}

// Returns "cudnn: fft_tiling". Truncates long plan names; the JSON has them in full.
std::string engine_text(const LayerTime& row) {
  if (row.engine.empty()) return "-";
  constexpr std::size_t widest = 24;
  const std::string plan =
      row.plan.size() <= widest ? row.plan : row.plan.substr(0, std::min(row.plan.find(" ("), widest));
  return plan.empty() ? row.engine : row.engine + ": " + plan;
}

void print_layers(const std::vector<LayerTime>& rows, std::int64_t batch) {
  double sum = 0;
  TextTable table({"layer", "pass", "engine", "ms", "GFLOP", "GFLOP/s", "workspace", "error", "chosen because"});
  for (const LayerTime& row : rows) {
    sum += row.milliseconds;
    const bool counts = row.flops > 0;
    table.add({row.layer, row.pass, engine_text(row), fmt::format("{:.3f}", row.milliseconds),
               counts ? fmt::format("{:.3f}", row.flops / 1e9) : "-",
               counts && row.milliseconds > 0 ? fmt::format("{:.1f}", row.flops / row.milliseconds / 1e6) : "-",
               row.workspace > 0 ? format_bytes(row.workspace) : "-",
               row.error < 0 ? "-" : fmt::format("{:.1e}", row.error), row.engine.empty() ? "-" : row.reason});
  }
  fmt::print(
      "per layer, a separate pass of {} iterations at batch {}; its timers wait for the device around each layer,\n"
      "so the rows ({:.3f} ms in total) do not sum to the above. error: relative, against a sum in double.\n{}",
      profiled_steps, batch, sum, table.text());
}

double per_step(std::int64_t count, const IterationTimes& times) {
  return static_cast<double>(count) / static_cast<double>(times.steps());
}

void print_spectra(const IterationTimes& times, std::size_t budget) {
  if (times.spectra.computed == 0) return;
  fmt::print("spectra: {} at most of a budget of {}; a step computes {:.4g} and uses {:.4g} again\n",
             format_bytes(times.spectra.peak), format_bytes(budget), per_step(times.spectra.computed, times),
             per_step(times.spectra.reused, times));
}

nlohmann::json to_json(const Config& config, const ConvPolicy& policy, const std::string& device,
                       const IterationTimes& times, const std::vector<LayerTime>& layers) {
  nlohmann::json rows = nlohmann::json::array();
  for (const LayerTime& row : layers) {
    rows.push_back({{"layer", row.layer}, {"pass", row.pass}, {"ms", row.milliseconds}, {"flops", row.flops}});
    if (row.engine.empty()) continue;
    rows.back().update(
        {{"engine", row.engine}, {"reason", row.reason}, {"workspace_bytes", row.workspace}, {"error", row.error}});
    if (!row.plan.empty()) rows.back()["plan"] = row.plan;
  }
  const auto batch = static_cast<double>(config.train.batch_size);
  return {{"model", config.name},
          {"input", config.input},
          {"batch_size", config.train.batch_size},
          {"precision", to_string(config.convolution.precision)},
          {"engine", policy.engine},
          {"workspace_limit_bytes", policy.workspace_limit},
          {"device", device},
          {"twiddle", version()},
          {"commit", commit()},
          {"compiler", compiler()},
          {"warm_up", times.warm_up},
          {"timed", times.steps()},
          {"variation", times.whole.variation()},
          {"forward", to_json(times.forward)},
          {"backward", to_json(times.backward)},
          {"update", to_json(times.update)},
          {"iteration", to_json(times.whole)},
          {"images_per_second", 1000 * batch / times.whole.quantile(0.5)},
          {"peak_pool_bytes", times.memory.peak},
          {"spectra",
           {{"peak_bytes", times.spectra.peak},
            {"budget_bytes", policy.frequency_budget},
            {"computed_per_step", per_step(times.spectra.computed, times)},
            {"reused_per_step", per_step(times.spectra.reused, times)}}},
          {"layers", rows}};
}

// Throws an Error if steps after the warm-up allocated memory or synchronized a GPU.
void check_free_running(const IterationTimes& times) {
  if (times.allocations > 0 || times.waits > 0)
    throw Error(join("timed steps allocated device memory ", times.allocations, " times and waited for the device ",
                     times.waits, " times (expected 0): a layer or an engine stalls the device"));
}

std::string length_text(const TimeArguments& arguments) {
  return arguments.steps > 0 ? format_count(arguments.steps, "step")
                             : format_number(arguments.seconds) + " s at most after the warm-up";
}

// Flushes the output so far, because the next phase may take long.
void print_phase(const Flags& flags, const std::string& phase) {
  std::fflush(stdout);
  if (flags.verbosity >= 0) write_stderr("timing " + phase + " ...\n");
}

// The forward pass of evaluation, as `predict` and `eval` run it.
int time_forward(const Flags& flags, const TimeArguments& arguments, Context& ctx, const Experiment& experiment,
                 Communicator& ranks) {
  const Config& config = experiment.config;
  const std::int64_t batch = config.train.batch_size;
  const bool on_gpu = ctx.stream->device().kind != Device::Kind::cpu, print = flags.json != "-";
  IterationTimer timer(ctx, experiment.model, *experiment.loss, *experiment.optimizer, batch, ranks);
  print_phase(flags, "forward passes, " + length_text(arguments));
  const IterationTimes times = timer.forward_passes(arguments.seconds, arguments.steps, on_gpu && !arguments.no_graph);
  const double median = times.whole.quantile(0.5), images_per_second = 1000 * static_cast<double>(batch) / median;
  if (print) {
    fmt::print("{}  batch {}x{}  {}  {}\nforward pass, {}: {:.3f} ms, {:.1f} images/s ({} timed, variation {:.1f} %)\n",
               printable(config.name), batch, to_string(config.input), to_string(config.convolution.precision),
               describe(ctx.stream->device()), times.captured ? "replayed from a CUDA graph" : "eager", median,
               images_per_second, format_count(static_cast<std::int64_t>(times.steps())),
               100 * times.whole.variation());
    if (!times.why_not_captured.empty()) fmt::print("no CUDA graph: {}\n", times.why_not_captured);
  }
  write_json(flags, nlohmann::json{{"model", config.name},
                                   {"input", config.input},
                                   {"batch_size", batch},
                                   {"precision", to_string(config.convolution.precision)},
                                   {"device", describe(ctx.stream->device())},
                                   {"twiddle", version()},
                                   {"commit", commit()},
                                   {"captured", times.captured},
                                   {"timed", times.steps()},
                                   {"variation", times.whole.variation()},
                                   {"forward", to_json(times.whole)},
                                   {"images_per_second", images_per_second},
                                   {"peak_pool_bytes", times.memory.peak}});
  return 0;
}

int time_model(const Flags& flags, const TimeArguments& arguments, Context& ctx, const Experiment& experiment,
               Communicator& ranks) {
  const Config& config = experiment.config;
  const Model& model = experiment.model;
  Optimizer& optimizer = *experiment.optimizer;
  const std::int64_t batch = config.train.batch_size;
  const std::string device = describe(ctx.stream->device());
  const bool print = flags.json != "-";
  if (print)
    fmt::print("{}  batch {}x{}  {}  engine {}, workspace limit {}  {}\n", printable(config.name), batch,
               to_string(config.input), to_string(config.convolution.precision), model.convolutions->policy().engine,
               format_bytes(config.convolution.workspace_limit), device);
  IterationTimer timer(ctx, model, *experiment.loss, optimizer, batch, ranks);
  print_phase(flags, "whole iterations, " + length_text(arguments));
  const IterationTimes times = timer.whole_iterations(arguments.seconds, arguments.steps, false);
  const bool on_gpu = ctx.stream->device().kind != Device::Kind::cpu;
  if (print) print_whole(times, batch);
  if (on_gpu) check_free_running(times);
  IterationTimes replayed;
  if (on_gpu && !arguments.no_graph) {
    print_phase(flags, "iterations replayed from a CUDA graph, " + length_text(arguments));
    replayed = timer.whole_iterations(arguments.seconds, arguments.steps, true);
    if (print && replayed.captured) print_whole(replayed, batch);
    if (print && !replayed.captured) fmt::print("no CUDA graph: {}\n", replayed.why_not_captured);
    check_free_running(replayed);
  }
  print_phase(flags, "layer by layer, and errors against sums in double");
  const std::vector<LayerTime> layers = timer.layer_by_layer(profiled_steps);
  if (print) {
    print_layers(layers, batch);
    const MemoryPlan plan = plan_memory(model, {batch, static_cast<double>(optimizer.state_tensors())});
    const auto held = [](const MemoryUse& use) { return format_bytes(use.in_use + use.cached); };
    fmt::print("memory: {} in use at the peak of an iteration, {} held{}; planned {}\n",
               format_bytes(times.memory.peak), held(times.memory),
               replayed.captured ? join(", ", held(replayed.memory), " where a CUDA graph is replayed") : "",
               format_bytes(plan.total()));
    print_spectra(times, model.convolutions->policy().frequency_budget);
  }
  nlohmann::json json = to_json(config, model.convolutions->policy(), device, times, layers);
  if (replayed.captured) json["recorded_iteration"] = to_json(replayed.whole);
  write_json(flags, json);
  return 0;
}

// Times of several ranks, compared with one rank on the same batch per rank.
struct SharedTimes {
  double alone, together, computing;  // ms; computing: forward, backward, and the update of one rank's shard

  SharedTimes(const IterationTimes& one, const IterationTimes& all, int ranks)
      : alone(one.whole.quantile(0.5)),
        together(all.whole.quantile(0.5)),
        computing(alone - one.update.quantile(0.5) * (1 - 1.0 / ranks)) {}
  double efficiency() const { return alone / together; }
  double exposed() const { return together - computing; }
};

void print_shared(const SharedTimes& times, std::int64_t batch, int ranks) {
  fmt::print(
      "{} ranks: {:.3f} ms, one alone {:.3f} ms: efficiency {:.3f}, {:.1f} images/s\n"
      "of it {:.3f} ms of computing (forward, backward, 1/{} of the update) and {:.3f} ms of "
      "communication that nothing hides\n",
      ranks, times.together, times.alone, times.efficiency(), 1000 * static_cast<double>(batch) / times.together,
      times.computing, ranks, times.exposed());
}

int time_on_ranks(const Flags& flags, const TimeArguments& arguments, Context& ctx, const Experiment& experiment,
                  Communicator& ranks) {
  const Config& config = experiment.config;
  const std::int64_t batch = config.train.batch_size, share = batch / ranks.size();
  const bool leads = ranks.rank() == 0, print = leads && flags.json != "-";
  ranks.use(experiment.device);
  ranks.limit_device_waits(config.train.collective_timeout);
  if (print)
    fmt::print("{}  batch {} = {} x {}x{}  {}  engine {}  {}\n", printable(config.name), batch, ranks.size(), share,
               to_string(config.input), to_string(config.convolution.precision),
               experiment.model.convolutions->policy().engine, describe(experiment.device));
  share_plans(ctx, experiment.model, share, ranks);
  IterationTimer timer(ctx, experiment.model, *experiment.loss, *experiment.optimizer, share, ranks);
  const bool capture = !arguments.no_graph && experiment.device.kind != Device::Kind::cpu;
  print_phase(flags, "one rank alone, " + length_text(arguments));
  const IterationTimes alone = timer.whole_iterations(arguments.seconds, arguments.steps, capture);
  print_phase(flags, join(ranks.size(), " ranks together, ", length_text(arguments)));
  const IterationTimes together = timer.whole_iterations(arguments.seconds, arguments.steps, capture, true);
  if (!leads) return 0;
  const SharedTimes times(alone, together, ranks.size());
  if (print) {
    fmt::print("one rank alone, ");
    print_whole(alone, share);
    fmt::print("{} ranks together, ", ranks.size());
    print_whole(together, batch);
    if (!together.why_not_captured.empty()) fmt::print("no CUDA graph: {}\n", together.why_not_captured);
    print_shared(times, batch, ranks.size());
  }
  write_json(flags, nlohmann::json{{"model", config.name},
                                   {"batch_size", batch},
                                   {"ranks", ranks.size()},
                                   {"precision", to_string(config.convolution.precision)},
                                   {"device", describe(experiment.device)},
                                   {"twiddle", version()},
                                   {"commit", commit()},
                                   {"alone", to_json(alone.whole)},
                                   {"together", to_json(together.whole)},
                                   {"backward_together", to_json(together.backward)},
                                   {"update_together", to_json(together.update)},
                                   {"alone_captured", alone.captured},
                                   {"captured", together.captured},
                                   {"efficiency", times.efficiency()},
                                   {"computing_ms", times.computing},
                                   {"exposed_communication_ms", times.exposed()},
                                   {"images_per_second", 1000 * static_cast<double>(batch) / times.together},
                                   {"peak_pool_bytes", together.memory.peak}});
  return 0;
}

int time_on(Communicator& ranks, Flags flags, const TimeArguments& arguments) {
  if (ranks.rank() != 0) flags.verbosity = -1;
  const Experiment experiment = open_experiment(arguments.config, flags, {});
  expect_same_config(ranks, experiment.config);
  const std::int64_t batch = share_of_batch(experiment, ranks);
  const TrainingSize size{batch, static_cast<double>(experiment.optimizer->state_tensors())};
  use_threads_of(experiment);
  Context ctx(experiment.device, experiment.config.seed);
  require_memory(experiment.model, size, ctx.stream->memory());
  try {
    if (arguments.forward && ranks.size() > 1)
      throw Error(ErrorKind::config, "--forward times one process: omit --gpus");
    if (arguments.forward) return time_forward(flags, arguments, ctx, experiment, ranks);
    return ranks.size() > 1 ? time_on_ranks(flags, arguments, ctx, experiment, ranks)
                            : time_model(flags, arguments, ctx, experiment, ranks);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(join(error.what(), "\n  ", memory_advice(experiment.model, size, ctx.stream->memory())));
  }
}

}  // namespace

Action add_time(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<TimeArguments>();
  verb.add_option("CONFIG", arguments->config, "A YAML file or a run folder", {.required = true});
  add_gpus_option(verb, arguments->gpus);
  verb.add_option("--seconds", arguments->seconds, "Longest time for whole iterations (10)",
                  {.value = "S", .check = number_between(0.01, 1e6)});
  verb.add_option("--steps", arguments->steps, "Run exactly N iterations, timed one by one",
                  {.value = "N", .check = whole_number_between(1, 1000000)});
  verb.add_flag("--forward", arguments->forward, "The forward pass of evaluation alone, on one process");
  verb.add_flag("--no-graph", arguments->no_graph, "Eager iterations alone, none replayed from a CUDA graph");
  return [&flags, arguments] {
    if (arguments->gpus > 0 && !is_started_rank()) return run_on_gpus(arguments->gpus);
    const std::shared_ptr<Communicator> ranks = join_ranks(flags);
    return run_on_ranks(*ranks, flags, [&] { return time_on(*ranks, flags, *arguments); });
  };
}

}  // namespace twiddle
