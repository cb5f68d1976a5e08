#include "apps/bench/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "apps/command_line/command_line.h"
#include "apps/command_line/flags.h"
#include "apps/command_line/verb_options.h"
#include "apps/ranks/rank_processes.h"
#include "apps/ranks/ranks.h"
#include "apps/verbs/open.h"
#include "apps/verbs/verbs.h"
#include "apps/version.h"
#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

// Options of some benchmarks only.
enum : unsigned {
  layers = 1,
  networks = 2,
  models = 4,
  parts = 8,
  sample = 16,
  passes = 32,
  picture = 64,
  ranks = 128
};

struct Bench {
  const char *name, *title;
  BenchResult (*run)(const BenchRequest& request);
  unsigned takes;
  const char* parts = "";      // names of its parts
  bool forward_alone = false;  // default of --passes; false: all three passes
};
constexpr Bench benches[] = {
    {"table3", "convolutions of whole networks (Vasilache et al. 2014, table 3)", bench_table3, networks | models},
    {"table4", "five representative layers (Vasilache et al. 2014, table 4)", bench_table4, layers | passes},
    {"table5", "stages of FFT convolution (Vasilache et al. 2014, table 5)", bench_table5, layers | passes},
    {"dieleman", "five shapes (Dieleman 2014)", bench_dieleman, layers | passes},
    {"mathieu", "layers, a network, memory and curves (Mathieu, Henaff, LeCun 2013)", bench_mathieu,
     layers | models | parts | passes | picture, "layers, network, memory, curves"},
    {"sweep", "8,232 shapes (Vasilache et al. 2014, table 2, figures 1-6)", bench_sweep, sample | picture},
    {"fft", "batched transforms alone (Vasilache et al. 2014, figures 7 and 8)", bench_fft, parts | picture,
     "1d, 2d, even, conv"},
    {"fbfft-conv", "fbfft over cufft at 3x3 kernels (Vasilache et al. 2014, section 5.4)", bench_fbfft_conv, 0},
    {"winograd", "VGG-E by batch size, and errors (Lavin, Gray 2015, tables 4 to 6)", bench_winograd,
     layers | passes | parts, "speed, errors", true},
    {"depthwise", "a kernel a channel: RepLKNet, SLaK, ConvNeXt", bench_depthwise, layers | passes},
    {"products", "products of spectra alone, by each way to multiply", bench_products, layers | passes},
    {"ranges", "errors where numbers are of many magnitudes, by plan", bench_ranges, layers | passes},
    {"allreduce", "sums over GPUs or other ranks, by size", bench_allreduce, ranks},
};

struct BenchArguments {
  std::string csv, svg, shard, precision = "fp32", workspace = "4GiB";
  std::vector<std::string> passes;
  int gpus = 0;
  BenchRequest request;
};

// Returns the value whose to_string() is `name`.
template <class Values>
auto named(const char* what, const std::string& name, const Values& values) {
  std::vector<std::string> known;
  for (const auto value : values) {
    if (name == to_string(value)) return value;
    known.emplace_back(to_string(value));
  }
  throw Error(ErrorKind::config, unknown_name(what, name, known));
}

Shard read_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto is_number = whole_number_between(1, 8232);
  if (slash != std::string::npos && is_number(text.substr(0, slash)).empty() &&
      is_number(text.substr(slash + 1)).empty()) {
    const Shard shard{std::stoi(text.substr(0, slash)), std::stoi(text.substr(slash + 1))};
    if (shard.index <= shard.count) return shard;
  }
  throw Error(ErrorKind::config, "--shard must be I/N, such as 2/4 for the second of four, found '" + text + "'");
}

BenchRequest read_request(const Bench& bench, const BenchArguments& arguments, const Flags& flags) {
  BenchRequest request = arguments.request;
  BenchOptions& options = request.options;
  options.device = open_device(flags);
  options.precision = named("precision", arguments.precision, every_precision);
  const auto limit = parse_bytes(arguments.workspace);
  if (!limit)
    throw Error(ErrorKind::config,
                "--workspace-limit must be a size such as 512MiB or 4GiB, found '" + arguments.workspace + "'");
  options.workspace_limit = *limit;
  if (bench.forward_alone) options.passes = {ConvPass::forward};
  if (!arguments.passes.empty()) options.passes.clear();
  for (const std::string& pass : arguments.passes) options.passes.push_back(named("pass", pass, every_pass));
  use_threads_of(flags);
  if (!arguments.shard.empty()) request.shard = read_shard(arguments.shard);
  request.print = flags.json != "-";
  request.verbosity = flags.verbosity;
  return request;
}

int run_alone(const Bench& bench, const BenchArguments& arguments, const Flags& flags, const BenchRequest& request) {
  for (const auto& [name, output] :
       {std::pair{"--json", flags.json}, std::pair{"--csv", arguments.csv}, std::pair{"--svg", arguments.svg}})
    refuse_to_overwrite(name, output, request.results);
  for (const std::string& output : {arguments.csv, arguments.svg})
    if (!output.empty()) require_writable(output);
  const BenchOptions& options = request.options;
  const bool cpu = options.device.kind == Device::Kind::cpu;
  if (request.recorded && request.results.empty())
    throw Error(ErrorKind::config, "--recorded needs the files to show: --results FILE");
  if (request.recorded && request.print) fmt::print("{}: {}\n", bench.name, bench.title);
  if (!request.recorded && request.print)
    fmt::print("{}: {}\n{}; {}, workspace limit {}; twiddle {} {}, {}\n{}\n", bench.name, bench.title,
               describe(options.device), to_string(options.precision), format_bytes(options.workspace_limit), version(),
               commit(), compiler(),
               cpu && (bench.takes & ranks) == 0 ? "On a CPU, by its engines; the papers' times are of GPUs.\n" : "");
  std::fflush(stdout);  // before the benchmark, which may take minutes
  const BenchResult result = bench.run(request);
  Json json = {{"bench", bench.name}};
  if (result.measured_on.empty())
    json.update(Json{{"device", describe(options.device)},
                     {"precision", to_string(options.precision)},
                     {"workspace_limit_bytes", options.workspace_limit}});
  else
    json["measured_on"] = result.measured_on;
  json.update(Json{{"twiddle", version()}, {"commit", commit()}, {"compiler", compiler()}, {"rows", result.rows}});
  write_json(flags, json);
  if (!arguments.csv.empty()) write_results_file(arguments.csv, to_csv(result.rows));
  if (!arguments.svg.empty()) write_results_file(arguments.svg, result.svg);
  return 0;
}

// Only rank 0 prints and writes files.
int run_on(const std::shared_ptr<Communicator>& all, const Bench& bench, const BenchArguments& arguments,
           const Flags& flags, BenchRequest request) {
  request.ranks = all;
  if (all->rank() == 0) return run_alone(bench, arguments, flags, request);
  request.print = false;
  bench.run(request);
  return 0;
}

int run(const Bench& bench, const BenchArguments& arguments, const Flags& flags) {
  if (arguments.gpus > 0 && !is_started_rank()) return run_on_gpus(arguments.gpus);
  const BenchRequest request = read_request(bench, arguments, flags);
  const std::shared_ptr<Communicator> all = (bench.takes & ranks) != 0 ? join_ranks(flags) : make_one_rank();
  return run_on_ranks(*all, flags, [&] { return run_on(all, bench, arguments, flags, request); });
}

// Declares the options that all benchmarks take.
void add_common_options(VerbOptions& verb, BenchArguments& arguments) {
  BenchOptions& options = arguments.request.options;
  verb.add_option("--engines", options.engines, "ENGINE or ENGINE:PLAN; all but direct",
                  {.value = "A,B", .separated = true});
  verb.add_option("--precision", arguments.precision,
                  "fp32, tf32, bf16 or fp16: error limit of results, and storage of arrays", {.value = "CLASS"});
  verb.add_option("--batch-size,--batch", options.batch, "Images in a batch; the papers' own",
                  {.value = "N", .check = whole_number_between(1, 1 << 22)});
  verb.add_option("--workspace-limit", arguments.workspace, "Largest workspace of a plan (4GiB)", {.value = "SIZE"});
  verb.add_option("--milliseconds", options.budget_ms, "Time for one engine and pass, at least three runs (50)",
                  {.value = "MS", .check = number_between(0, 1e6)});
  verb.add_option("--csv", arguments.csv, "Write the rows as comma-separated values, too", {.value = "FILE"});
}

void add_sweep_options(VerbOptions& verb, BenchArguments& arguments) {
  BenchRequest& request = arguments.request;
  verb.add_option("--sample", request.sample, "Number of shapes, picked at random; all",
                  {.value = "N", .check = whole_number_between(1, 8232)});
  verb.add_option("--seed", request.seed, "Seed of the sample (1)",
                  {.value = "N", .check = whole_number_between(0, std::numeric_limits<long long>::max())});
  verb.add_option("--shard", arguments.shard, "Every Nth shape from the Ith on; all", {.value = "I/N"});
  verb.add_option("--results", request.results, "Files of measured shapes; the first is resumed, the others are read",
                  {.value = "FILE,FILE", .separated = true});
  verb.add_flag("--recorded", request.recorded, "Show what --results hold and measure nothing");
}

Action add_bench(const Bench& bench, VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<BenchArguments>();
  BenchRequest& request = arguments->request;
  const auto takes = [&](unsigned option) { return (bench.takes & option) != 0; };
  add_common_options(verb, *arguments);
  if (takes(layers))
    verb.add_option("--layers", request.layers, "Layers of any table, by name", {.value = "A,B", .separated = true});
  if (takes(passes))
    verb.add_option("--passes", arguments->passes, "forward, backward_input, backward_weight",
                    {.value = "A,B", .separated = true});
  if (takes(networks))
    verb.add_option("--networks", request.networks, "Networks, by the names of their files",
                    {.value = "A,B", .separated = true});
  if (takes(models)) verb.add_option("--models", request.models, "Folder of the networks (models)", {.value = "DIR"});
  if (takes(parts)) verb.add_option("--parts", request.parts, bench.parts, {.value = "A,B", .separated = true});
  if (takes(sample)) add_sweep_options(verb, *arguments);
  if (takes(ranks)) add_gpus_option(verb, arguments->gpus);
  if (takes(picture)) verb.add_option("--svg", arguments->svg, "Draw the results", {.value = "FILE"});
  return [&bench, &flags, arguments] { return run(bench, *arguments, flags); };
}

}  // namespace

std::vector<Verb> bench_verbs() {
  std::vector<Verb> verbs;
  for (const Bench& bench : benches) {
    const auto add = [&bench](VerbOptions& verb, const Flags& flags) { return add_bench(bench, verb, flags); };
    verbs.push_back({bench.name, bench.title, add, device_flags | json_flag});
  }
  return verbs;
}

}  // namespace twiddle
