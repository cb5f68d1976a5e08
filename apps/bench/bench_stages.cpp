#include <fmt/core.h>

#include "apps/bench/bench.h"
#include "apps/bench/pass_stages.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char *title, *key;
  double PassStages::*time;
};
// The paper's seven stages, then ours.
constexpr Column columns[] = {
    {"FFT A", "fft_a", &PassStages::fft_a},     {"Trans A", "transpose_a", &PassStages::transpose_a},
    {"FFT B", "fft_b", &PassStages::fft_b},     {"Trans B", "transpose_b", &PassStages::transpose_b},
    {"Cgemm", "product", &PassStages::product}, {"Trans C", "transpose_c", &PassStages::transpose_c},
    {"IFFT C", "ifft_c", &PassStages::ifft_c},  {"padding", "padding", &PassStages::padding},
    {"rest", "rest", &PassStages::rest},        {"whole", "whole", &PassStages::whole}};

std::vector<SpectralEngine*> spectral_engines(const LayerBench& bench) {
  const std::vector<SpectralEngine*> engines = bench.spectral();
  if (engines.empty())
    throw Error(ErrorKind::config, "none of these engines computes FFT convolutions, whose stages table5 shows");
  return engines;
}

// Prints one line of measured times and one of the paper's.
void add(TextTable& table, const Json& row) {
  std::vector<std::string> cells{row["pass"], row["engine"], row.value("plan", "")};
  if (row.contains("failure")) {
    const std::string why = row["failure"];
    cells[2] = "failed: " + why.substr(0, why.find('\n'));
  } else {
    for (const Column& column : columns) {
      const double time = row["ms"][column.key];
      // The rest is the total's median minus the other medians; it can be slightly negative.
      cells.push_back(time <= 0 ? "-" : fmt::format("{:.3f}", time));
    }
  }
  cells.resize(3 + std::size(columns));
  table.add(cells);
  if (!row.contains("paper_ms")) return;
  cells = {"", "K40m cuFFT", ""};
  for (const Json& time : row["paper_ms"]) cells.push_back(fmt::format("{:.2f}", time.get<double>()));
  cells.resize(3 + std::size(columns));
  table.add(cells);
}

}  // namespace

BenchResult bench_table5(const BenchRequest& request) {
  LayerBench bench(request.options);
  const PaperTimes paper = fbfft_table5();
  BenchResult result;
  for (const BenchLayer& layer : chosen_layers(request, fbfft_layers())) {
    const ConvProblem problem = bench.problem_of(layer);
    std::vector<std::string> header{"pass", "engine", "plan"};
    for (const Column& column : columns) header.emplace_back(column.title);
    TextTable table(header);
    for (const ConvPass pass : bench.passes_of(layer))
      for (SpectralEngine* engine : spectral_engines(bench)) {
        const ConvPlans plans = engine->plans(problem, pass, 1);
        if (plans.empty()) continue;
        Json row = {{"layer", layer.name},
                    {"problem", to_string(problem)},
                    {"pass", to_string(pass)},
                    {"engine", engine->name()}};
        try {
          const PassStages stages = measure_stages(bench.context(), *plans.front(), problem, pass);
          row["plan"] = plans.front()->facts().name;
          for (const Column& column : columns) row["ms"][column.key] = stages.*column.time;
        } catch (const Error& error) {
          row["failure"] = error.what();
        }
        const std::vector<double>* const printed = paper.find(layer.name, pass);
        for (std::size_t i = 0; printed != nullptr && i < printed->size(); ++i)
          row["paper_ms"][columns[i].key] = (*printed)[i];
        add(table, row);
        result.rows.push_back(row);
      }
    bench.renew();
    if (request.print) fmt::print("{}  {}, ms\n{}\n", layer.name, to_string(problem), table.text());
    std::fflush(stdout);
  }
  if (request.print) fmt::print("medians of runs on new operands. K40m: {}.\n{}\n", paper.source, paper.note);
  return result;
}

}  // namespace twiddle
