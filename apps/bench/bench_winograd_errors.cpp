#include <fmt/core.h>

#include "apps/bench/bench.h"
#include "apps/bench/largest_error.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

// The algorithms to check: each engine's first plan, which `rule` selects, both Winograd tile sizes, and cuDNN's
// algorithms.
struct Algorithm {
  std::string name;
  ConvEngine* engine;
  std::string word;  // part of the plan's name
};

std::vector<Algorithm> algorithms_of(const LayerBench& bench) {
  std::vector<Algorithm> algorithms;
  for (ConvEngine* engine : bench.engines()) {
    const std::string name(engine->name());
    std::vector<std::string> words{""};
    if (name == "winograd") words = {"F(2x2)", "F(4x4)"};
    if (name == "cudnn") words = {"", "winograd", "winograd_nonfused", "fft_tiling"};
    if (name.find('(') != std::string::npos) continue;  // a wrapper for strides
    for (const std::string& word : words) algorithms.push_back({word.empty() ? name : name + " " + word, engine, word});
  }
  return algorithms;
}

std::shared_ptr<const ConvPlan> plan_of(const Algorithm& algorithm, const ConvProblem& problem) {
  if (algorithm.engine->name() != "winograd" && !algorithm.word.empty())
    return algorithm.engine->plan(problem, ConvPass::forward, algorithm.word);
  for (const auto& plan : algorithm.engine->plans(problem, ConvPass::forward))
    if (plan->facts().name.find(algorithm.word) != std::string::npos) return plan;
  return nullptr;
}

// Returns null if the engine has no such plan.
Json error_of(const Algorithm& algorithm, const BenchLayer& layer, const ConvProblem& problem,
              const UniformCheck& check, Context& ctx) {
  Json row = {
      {"part", "errors"}, {"layer", layer.name}, {"problem", to_string(problem)}, {"algorithm", algorithm.name}};
  try {
    const auto plan = plan_of(algorithm, problem);
    if (plan == nullptr) return nullptr;
    row["plan"] = full_name(*plan);
    row["largest_error"] = check.largest_error(ctx, *plan);
  } catch (const Error& error) {
    row["failure"] = error.what();
  }
  return row;
}

std::string cell_of_error(const Json& row) {
  if (row.is_null()) return "-";
  return row.contains("failure") ? "failed" : fmt::format("{:.2e}", row["largest_error"].get<double>());
}

}  // namespace

BenchResult bench_winograd_errors(const BenchRequest& request) {
  BenchOptions options = request.options;
  options.batch = 1;
  LayerBench bench(options);
  const PaperTimes paper = lavin_errors();
  const std::vector<Algorithm> algorithms = algorithms_of(bench);
  std::vector<std::string> header{"layer"};
  for (const Algorithm& algorithm : algorithms) header.push_back(algorithm.name);
  header.insert(header.end(), paper.columns.begin(), paper.columns.end());
  TextTable table(header);
  BenchResult result;
  for (const BenchLayer& layer : chosen_layers(request, vgg_layers())) {
    const ConvProblem problem = bench.problem_of(layer);
    const std::vector<double>* const printed = paper.find(layer.name, ConvPass::forward);
    const UniformCheck check(*bench.context().stream, problem);
    std::vector<std::string> cells{layer.name};
    for (const Algorithm& algorithm : algorithms) {
      Json row = error_of(algorithm, layer, problem, check, bench.context());
      cells.push_back(cell_of_error(row));
      if (row.is_null()) continue;
      for (std::size_t i = 0; printed != nullptr && i < printed->size(); ++i)
        row["paper"][paper.columns[i]] = (*printed)[i];
      result.rows.push_back(row);
    }
    for (std::size_t i = 0; printed != nullptr && i < printed->size(); ++i)
      cells.push_back(fmt::format("{:.2e}", (*printed)[i]));
    table.add(cells);
  }
  if (request.print)
    fmt::print(
        "largest absolute error of an element, forward, one image\n{}\n"
        "Input and filters are uniform in [-1, 1], as in the paper; every element is compared with a double sum. An\n"
        "engine is shown by its first plan, which `rule` would select. {}: {}.\n{}\n\n",
        table.text(), join_names(paper.columns), paper.source, paper.note);
  return result;
}

}  // namespace twiddle
