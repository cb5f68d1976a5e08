// Every layer of a table of cuDNN's best times, every pass: what our engine takes, and by which of cuDNN's ways, and in
// tf32 what cuDNN takes on tensors that lie in NHWC already. Prints a Markdown table as it goes. usage:
// twiddle_cudnn_bench [--layers TEXT] [--precision fp32|tf32] [--engine cudnn]
// [--workspace GiB] [--table FILE]
//   --layers: those whose name holds TEXT; --table: JSON of {layer: {precision: {ms: [forward, input, weight], by:
//   [...]}}}
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "apps/bench/bench_layers.h"
#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/engines/cudnn_plan.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/autotuner.h"
#include "layers/conv/tuner/conv_check.h"
#include "layers/conv/tuner/timing.h"
#include "tests/support/conv_problem.h"

using namespace twiddle;
using nlohmann::json;

namespace {

std::vector<BenchLayer> all_layers() {
  std::vector<BenchLayer> all;
  for (const BenchLayer& layer : fbfft_layers()) all.push_back({"fb." + layer.name, layer.problem});
  for (const auto& layers :
       {dieleman_layers(), mathieu_layers(), vgg_layers(), alexnet_layers(), overfeat_layers(), large_kernel_layers()})
    all.insert(all.end(), layers.begin(), layers.end());
  return all;
}

// Measures as the table does: the median of five samples, each of enough calls to take about 20 ms, at most 40.
double median_ms(Stream& stream, const std::function<void()>& work) {
  for (int warm = 0; warm < 3; ++warm) work();
  const int calls = std::clamp(static_cast<int>(20 / std::max(time_in_a_row(stream, 1, work), 1e-3)), 1, 40);
  std::vector<double> times;
  for (int sample = 0; sample < 5; ++sample) times.push_back(time_in_a_row(stream, calls, work));
  std::sort(times.begin(), times.end());
  return times[2];
}

// Milliseconds of the graph API's fastest plan that meets the error limit, on NHWC tensors, as in a network with NHWC
// activations; 0 if there is none. (The result is checked on plain tensors, for which the same plan runs with layout
// conversions.)
double best_on_nhwc(Stream& stream, cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass) {
  ConvOperands operands = random_operands(stream, problem, pass);
  const ConvCheck sample(stream, problem, pass, operands, 200);
  Tensor& result = pass == ConvPass::backward_input    ? operands.x
                   : pass == ConvPass::backward_weight ? operands.w
                                                       : operands.y;
  const ConvPointers at{operands.x.write(), operands.w.write(), operands.y.write()};
  double best = 0;
  for (const auto& plan : cudnn_graphs(handle, problem, pass, CudnnLayout::nhwc, 8)) try {
      const auto scratch = stream.allocate(std::max<std::size_t>(plan->workspace, 1));
      plan->run(handle, stream, at, scratch.get());
      if (!(sample.error(stream, result) <= promise(problem.precision, pass))) continue;
      const auto work = [&] { plan->run_in_own_layout(handle, stream, at, scratch.get()); };
      if (best > 0 && time_calls(stream, 3, work) > 1.1 * best) continue;
      const double ms = median_ms(stream, work);
      best = best > 0 ? std::min(best, ms) : ms;
    } catch (const Error&) {  // one that the heuristic names may still refuse
    }
  return best;
}

json read_table(const std::string& file) {
  if (file.empty()) return json::object();
  std::ifstream stream(file);
  require(stream.good(), "cannot read ", file);
  std::ostringstream text;
  text << stream.rdbuf();
  return json::parse(std::regex_replace(text.str(), std::regex("NaN"), "null"));  // Python's way, which JSON has not
}

// The table's best time and its plan; 0 if the table has none.
std::pair<double, std::string> best_of(const json& table, const std::string& layer, Precision precision,
                                       ConvPass pass) {
  const json::json_pointer entry("/" + layer + "/" + std::string(to_string(precision)));
  if (!table.contains(entry)) return {0, "-"};
  const json& of = table[entry];
  const auto index = static_cast<std::size_t>(pass);
  if (!of["ms"][index].is_number()) return {0, "-"};
  return {of["ms"][index], of["by"][index]};
}

std::map<std::string, std::string> read_options(int argc, char** argv) {
  std::map<std::string, std::string> options{
      {"--layers", ""}, {"--precision", ""}, {"--engine", "cudnn"}, {"--workspace", "24"}, {"--table", ""}};
  for (int i = 1; i < argc; i += 2) {
    require(options.count(argv[i]) && i + 1 < argc, "unknown option or no value: ", argv[i]);
    options[argv[i]] = argv[i + 1];
  }
  return options;
}

void run(const std::map<std::string, std::string>& options) {
  const json table = read_table(options.at("--table"));
  const auto workspace = static_cast<std::size_t>(std::atof(options.at("--workspace").c_str()) * (1 << 30));
  const Device device{Device::Kind::cuda, 0};
  std::printf("%s; engine %s, workspace_limit %s GiB\n\n", describe(device).c_str(), options.at("--engine").c_str(),
              options.at("--workspace").c_str());
  std::printf(
      "| layer | precision | pass | ms | plan | error | choosing, s | table, ms | by | ratio | nhwc, ms | ratio |\n");
  std::printf("| --- | --- | --- | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n");
  for (const BenchLayer& layer : all_layers()) {
    if (layer.name.find(options.at("--layers")) == std::string::npos) continue;
    // A new context per layer, so that the pool frees its memory.
    Context ctx(device);
    CudnnHandle handle;
    check(cudnn().create(handle.put()));
    check(cudnn().set_stream(handle.get(), static_cast<cudaStream_t>(ctx.stream->native())));
    const Autotuner::Rules rules{.workspace_limit = workspace};
    for (const auto& engine : make_conv_engines(device, {.workspace_limit = workspace})) {
      if (engine->name() != options.at("--engine")) continue;
      for (const Precision precision : {Precision::fp32, Precision::tf32})
        for (const ConvPass pass : every_pass) {
          if (!options.at("--precision").empty() && options.at("--precision") != to_string(precision)) continue;
          ConvProblem problem = layer.problem;
          problem.precision = precision;
          const auto [best, by] = best_of(table, layer.name, precision, pass);
          std::printf("| %s | %s | %s | ", layer.name.c_str(), std::string(to_string(precision)).c_str(),
                      std::string(to_string(pass)).c_str());
          try {
            ConvOperands operands = random_operands(*ctx.stream, problem, pass);
            AutotunerResult result;
            const double choosing =
                time_in_a_row(*ctx.stream, 1,
                              [&] { result = Autotuner(ctx, problem, {pass}, {engine.get()}, rules).run(); }) /
                1e3;
            const auto& plan = result.passes[index_of(pass)].winner;
            if (plan == nullptr) throw Error(result.passes[index_of(pass)].reason);
            plan->run(ctx, operands);
            const double error = conv_error(ctx, problem, pass, operands, 200);
            const double ms = median_ms(*ctx.stream, [&] { plan->run(ctx, operands); });
            const auto ratio = [best = best](double time) { return best > 0 ? time / best : 0.0; };
            const double nhwc =
                precision == Precision::tf32 ? best_on_nhwc(*ctx.stream, handle.get(), problem, pass) : 0.0;
            std::printf("%.4f | %s | %.1e | %.2f | %.4f | %s | %.2f | %.4f | %.2f |\n", ms, plan->facts().name.c_str(),
                        error, choosing, best, by.c_str(), ratio(ms), nhwc, ratio(nhwc));
          } catch (const Error& error) {
            std::printf("- | %s | | | %.4f | %s | | | |\n", error.what(), best, by.c_str());
          }
          std::fflush(stdout);
        }
    }
  }
}

}  // namespace

int main(int argc, char** argv) try { run(read_options(argc, argv)); } catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.kind());
}
