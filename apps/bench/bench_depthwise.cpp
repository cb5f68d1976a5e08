#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

// The passes of one layer by one engine, or by the fastest engine for each pass.
struct DepthwiseSum {
  std::string engine;
  std::vector<const BenchRow*> passes = {};
  bool in_step = false;  // use the times of consecutive passes that share spectra

  bool complete(std::size_t asked) const { return passes.size() == asked; }
  double time_of(const BenchRow& row) const {
    return in_step && row.in_step_ms > 0 ? row.in_step_ms : row.milliseconds;
  }
  double milliseconds() const {
    double sum = 0;
    for (const BenchRow* row : passes) sum += time_of(*row);
    return sum;
  }
};

bool keeps_class(const BenchRow& row) {
  return row.measured() && row.error <= promise(row.problem.precision, row.pass);
}

std::vector<DepthwiseSum> sums_of(const std::vector<BenchRow>& rows) {
  std::vector<DepthwiseSum> sums;
  for (const BenchRow& row : rows) {
    if (!keeps_class(row)) continue;
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& each) { return each.engine == row.engine; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {.engine = row.engine, .in_step = true});
    sum->passes.push_back(&row);
  }
  return sums;
}

// Returns the faster of two choices: the fastest engine for each pass, or one engine for all passes, which then share
// spectra.
DepthwiseSum fastest_of(const std::vector<BenchRow>& rows, const std::vector<ConvPass>& passes,
                        const std::vector<DepthwiseSum>& sums) {
  DepthwiseSum fastest{.engine = "fastest"};
  for (const ConvPass pass : passes) {
    const BenchRow* best = nullptr;
    for (const BenchRow& row : rows)
      if (row.pass == pass && keeps_class(row) && (best == nullptr || row.milliseconds < best->milliseconds))
        best = &row;
    if (best != nullptr) fastest.passes.push_back(best);
  }
  for (const DepthwiseSum& sum : sums)
    if (sum.complete(passes.size()) && sum.milliseconds() < fastest.milliseconds())
      fastest = {"fastest", sum.passes, sum.in_step};
  return fastest;
}

// Returns the minimum traffic of a pass: x and y, once each.
double bytes_of(const ConvProblem& problem) {
  return 4. * static_cast<double>(count_of(problem.input_shape()) + count_of(problem.output_shape()));
}

void print(const BenchLayer& layer, const ConvProblem& problem, const std::vector<ConvPass>& passes,
           std::vector<DepthwiseSum> sums, const DepthwiseSum& fastest) {
  fmt::print("{}  {}, {:.1f} MB of x and y a pass\n", layer.name, to_string(problem), bytes_of(problem) * 1e-6);
  std::vector<std::string> header{"engine"};
  for (const ConvPass pass : passes) header.emplace_back(to_string(pass));
  header.insert(header.end(), {"sum, ms", "TB/s", "error", "plans"});
  TextTable table(header);
  sums.push_back(fastest);
  for (const DepthwiseSum& sum : sums) {
    std::vector<std::string> cells{sum.engine};
    double error = 0;
    std::string plans;
    for (const ConvPass pass : passes) {
      const auto found =
          std::find_if(sum.passes.begin(), sum.passes.end(), [&](auto* row) { return row->pass == pass; });
      cells.push_back(found == sum.passes.end() ? "-" : fmt::format("{:.3f}", sum.time_of(**found)));
      if (found == sum.passes.end()) continue;
      error = std::max(error, (*found)->error);
      const std::string plan = sum.engine == "fastest" ? (*found)->engine : way_of(**found);
      plans += (plans.empty() ? "" : "; ") + plan;
    }
    const bool complete = sum.complete(passes.size());
    const double bytes = bytes_of(problem) * static_cast<double>(passes.size());
    cells.push_back(complete ? fmt::format("{:.3f}", sum.milliseconds()) : "-");
    cells.push_back(complete ? fmt::format("{:.2f}", bytes / sum.milliseconds() * 1e-9) : "-");
    cells.insert(cells.end(), {fmt::format("{:.1e}", error), plans});
    table.add(cells);
  }
  fmt::print("{}\n", table.text());
  std::fflush(stdout);
}

}  // namespace

BenchResult bench_depthwise(const BenchRequest& request) {
  LayerBench bench(request.options);
  BenchResult result;
  for (const BenchLayer& layer : chosen_layers(request, depthwise_layers())) {
    const std::vector<ConvPass> passes = bench.passes_of(layer);
    const std::vector<BenchRow> rows = bench.run(layer);
    const std::vector<DepthwiseSum> sums = sums_of(rows);
    if (request.print) print(layer, bench.problem_of(layer), passes, sums, fastest_of(rows, passes, sums));
    for (const BenchRow& row : rows) {
      Json json = to_json(row, speed_up(row, rows, bench.vendor()), {});
      json["bytes"] = bytes_of(row.problem);
      result.rows.push_back(std::move(json));
    }
  }
  if (request.print)
    fmt::print(
        "Plans within the error limit. An engine's passes are timed in the order of a training step if they share\n"
        "spectra. fastest: pass by pass alone, or one engine's step. TB/s: of x and y, once a pass.\n");
  return result;
}

}  // namespace twiddle
