#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

std::string milliseconds(double value) {
  return value > 0 ? fmt::format("{:.3f}", value) : "-";
}

std::string factor(double value) {
  return value > 0 ? fmt::format("{:.2f}", value) : "-";
}

// The three passes of one engine in one row.
struct Step {
  std::string engine;
  int passes = 0;
  double apart = 0, together = 0;
};

std::vector<Step> steps_of(const std::vector<BenchRow>& rows) {
  std::vector<Step> steps;
  for (const BenchRow& row : rows) {
    if (!row.measured()) continue;
    auto step = std::find_if(steps.begin(), steps.end(), [&](const Step& each) { return each.engine == row.engine; });
    if (step == steps.end()) step = steps.insert(steps.end(), {row.engine});
    ++step->passes, step->apart += row.milliseconds, step->together += row.in_step_ms;
  }
  std::erase_if(steps, [&](const Step& step) { return step.passes < 2; });
  return steps;
}

void print(const std::vector<BenchRow>& rows, const ConvEngine* vendor, const PaperTimes& paper) {
  std::vector<std::string> header{"pass", "engine", "plan", "ms", "in a step", "TMAC/s", "error", "speed-up"};
  header.insert(header.end(), paper.columns.begin(), paper.columns.end());
  TextTable table(header);
  const BenchRow* above = nullptr;
  for (const BenchRow& row : rows) {
    const bool first = above == nullptr || above->pass != row.pass;
    above = &row;
    std::vector<std::string> cells{first ? std::string(to_string(row.pass)) : "", row.engine, way_of(row)};
    if (row.measured())
      cells.insert(cells.end(), {milliseconds(row.milliseconds), milliseconds(row.in_step_ms),
                                 fmt::format("{:.3f}", row.multiply_adds_per_second() / 1e12),
                                 fmt::format("{:.1e}", row.error), factor(speed_up(row, rows, vendor))});
    cells.resize(8);
    const std::vector<double>* printed = paper.find(row.layer, row.pass);
    for (std::size_t column = 0; column < paper.columns.size(); ++column)
      cells.push_back(first && printed != nullptr ? fmt::format("{:.2f}", (*printed)[column]) : "");
    table.add(cells);
  }
  const std::vector<Step> steps = steps_of(rows);
  for (const Step& step : steps) {
    double best = 0;
    for (const Step& other : steps)
      if (vendor != nullptr && other.engine == vendor->name() && other.passes == step.passes) best = other.apart;
    const double taken = step.together > 0 ? step.together : step.apart;
    std::vector<std::string> cells{&step == &steps.front() ? "together" : "",
                                   step.engine,
                                   "",
                                   milliseconds(step.apart),
                                   milliseconds(step.together),
                                   "",
                                   "",
                                   factor(best / taken)};
    cells.resize(header.size());
    table.add(cells);
  }
  fmt::print("{}\n", table.text());
  std::fflush(stdout);
}

}  // namespace

// Returns "32x32, tiles". Text that would make the table too wide is in JSON and CSV only.
std::string way_of(const BenchRow& row) {
  constexpr std::size_t widest = 40;
  if (!row.measured()) return "failed: " + row.failure.substr(0, row.failure.find('\n'));
  const Precision precision = row.problem.precision;
  const bool holds = row.error <= promise(precision, row.pass);
  const std::string missed = holds ? "" : fmt::format(" (misses {})", to_string(precision));
  const std::string shown = row.plan.size() <= widest ? row.plan : row.plan.substr(0, widest);
  return shown + missed;
}

Json to_json(const BenchRow& row, double times_as_fast, const PaperTimes& paper) {
  Json json = {{"layer", row.layer},
               {"problem", to_string(row.problem)},
               {"pass", to_string(row.pass)},
               {"engine", row.engine},
               {"multiply_adds", row.problem.flops() / 2}};
  if (row.measured())
    json.update(Json{{"ms", row.milliseconds},
                     {"multiply_adds_per_second", row.multiply_adds_per_second()},
                     {"error", row.error},
                     {"workspace_bytes", row.workspace},
                     {"plan", row.plan}});
  else
    json["failure"] = row.failure;
  if (row.in_step_ms > 0) json["in_step_ms"] = row.in_step_ms;
  if (times_as_fast > 0) json["speed_up"] = times_as_fast;
  const std::vector<double>* printed = paper.find(row.layer, row.pass);
  for (std::size_t column = 0; printed != nullptr && column < paper.columns.size(); ++column)
    json["paper_ms"][paper.columns[column]] = (*printed)[column];
  return json;
}

std::vector<BenchLayer> chosen_layers(const BenchRequest& request, const std::vector<BenchLayer>& usual) {
  if (request.layers.empty()) return usual;
  const std::vector<BenchLayer> all = every_layer();
  std::vector<BenchLayer> chosen;
  std::vector<std::string> known;
  for (const BenchLayer& layer : all) known.push_back(layer.name);
  for (const std::string& name : request.layers) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) throw Error(ErrorKind::config, unknown_name("layer", name, known));
    chosen.push_back(all[static_cast<std::size_t>(found - known.begin())]);
  }
  return chosen;
}

BenchResult bench_layers(const BenchRequest& request, const std::vector<BenchLayer>& layers, const PaperTimes& paper) {
  LayerBench bench(request.options);
  BenchResult result;
  for (const BenchLayer& layer : layers) {
    const ConvProblem problem = bench.problem_of(layer);
    if (request.print)
      fmt::print(
          "{}  {}, {:.1f} G multiply-adds a pass{}\n", layer.name, to_string(problem), problem.flops() / 2e9,
          problem.batch == layer.problem.batch ? "" : fmt::format(" (the paper's batch: {})", layer.problem.batch));
    std::fflush(stdout);
    const std::vector<BenchRow> rows = bench.run(layer);
    if (request.print) print(rows, bench.vendor(), paper);
    for (const BenchRow& row : rows) result.rows.push_back(to_json(row, speed_up(row, rows, bench.vendor()), paper));
  }
  if (request.print)
    fmt::print(
        "ms: the best of a few runs, each on new operands. in a step: the same where the passes follow each other, as\n"
        "in training, and find each other's spectra; together: their sum. speed-up: over {}. error: relative, against\n"
        "a sum in double.\n{}: {}.\n{}\n\n",
        bench.vendor() ? bench.vendor()->name() : "the vendor's engine, which is not here", join_names(paper.columns),
        paper.source, paper.note);
  return result;
}

BenchResult bench_table4(const BenchRequest& request) {
  return bench_layers(request, chosen_layers(request, fbfft_layers()), fbfft_table4());
}

BenchResult bench_dieleman(const BenchRequest& request) {
  return bench_layers(request, chosen_layers(request, dieleman_layers()), dieleman_table());
}

}  // namespace twiddle
