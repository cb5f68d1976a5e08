#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/bench/range_check.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;
using Plan = std::shared_ptr<const ConvPlan>;

// The part after the last comma of a plan's name is its product. A name without a comma is a separate kind.
std::string kind_of(const ConvPlan& plan) {
  const std::string& name = plan.facts().name;
  const std::size_t comma = name.rfind(", ");
  return comma == std::string::npos ? std::string() : name.substr(comma + 2);
}

// Returns the highest-ranked plan of each kind of each engine, because kinds differ in error.
std::vector<Plan> plans_of(const LayerBench& bench, const ConvProblem& problem, ConvPass pass) {
  std::vector<Plan> chosen;
  for (ConvEngine* engine : bench.engines()) {
    std::vector<std::string> kinds;
    if (!engine->supports(problem, pass)) continue;
    for (const Plan& plan : engine->plans(problem, pass)) {
      if (std::find(kinds.begin(), kinds.end(), kind_of(*plan)) != kinds.end()) continue;
      kinds.push_back(kind_of(*plan));
      chosen.push_back(plan);
    }
  }
  return chosen;
}

Json row_of(const BenchLayer& layer, const ConvProblem& problem, ConvPass pass, const Range& range,
            const ConvPlan& plan, const RangeCheck& check, Context& ctx) {
  Json row = {{"layer", layer.name}, {"problem", to_string(problem)}, {"pass", to_string(pass)},
              {"range", range.name}, {"engine", plan.facts().engine}, {"plan", plan.facts().name}};
  try {
    const RangeCheck::Errors errors = check.errors(ctx, plan);
    row["error"] = errors.all, row["worst_row"] = errors.worst_row;
  } catch (const Error& error) {
    row["failure"] = error.what();
  }
  return row;
}

std::string cell_of(const Json& rows, const ConvPlan& plan, const char* range) {
  for (const Json& row : rows)
    if (row["plan"] == plan.facts().name && row["engine"] == plan.facts().engine && row["range"] == range)
      return row.contains("failure")
                 ? "failed"
                 : fmt::format("{:.1e} {:.1e}", row["error"].get<double>(), row["worst_row"].get<double>());
  return "-";
}

void print(const BenchLayer& layer, const ConvProblem& problem, ConvPass pass, const std::vector<Plan>& plans,
           const Json& rows) {
  std::vector<std::string> header{"plan"};
  for (const Range& range : hard_ranges()) header.emplace_back(range.name);
  TextTable table(header);
  for (const Plan& plan : plans) {
    std::vector<std::string> cells{full_name(*plan)};
    for (const Range& range : hard_ranges()) cells.push_back(cell_of(rows, *plan, range.name));
    table.add(cells);
  }
  fmt::print("{}  {}, {}\n{}\n", layer.name, to_string(problem), to_string(pass), table.text());
  std::fflush(stdout);
}

}  // namespace

BenchResult bench_ranges(const BenchRequest& request) {
  LayerBench bench(request.options);
  BenchResult result;
  for (const BenchLayer& layer : chosen_layers(request, fbfft_layers())) {
    const ConvProblem problem = bench.problem_of(layer);
    for (const ConvPass pass : bench.passes_of(layer)) {
      const std::vector<Plan> plans = plans_of(bench, problem, pass);
      Json rows = Json::array();
      for (const Range& range : hard_ranges()) {
        if (range.exceeds_fp16 && problem.precision == Precision::fp16) continue;
        const RangeCheck check(*bench.context().stream, problem, pass, range);
        for (const Plan& plan : plans)
          rows.push_back(row_of(layer, problem, pass, range, *plan, check, bench.context()));
      }
      if (request.print) print(layer, problem, pass, plans, rows);
      result.rows.insert(result.rows.end(), rows.begin(), rows.end());
    }
    bench.renew();
  }
  if (request.print)
    fmt::print(
        "Relative L2 errors: of all checked elements, and of the worst row by its own norm. A row of the result is "
        "an\n"
        "image (backward_weight: a filter); k are the channels (backward_input: the filters, backward_weight: "
        "the\n"
        "images). For each engine: the highest-ranked plan of each way to multiply.\n");
  return result;
}

}  // namespace twiddle
