#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

// The measurements of one layer.
struct LayerRows {
  BenchLayer layer;
  ConvProblem problem;
  std::vector<ConvPass> passes;
  std::vector<BenchRow> rows;

  const BenchRow* find(ConvPass pass, const std::string& engine) const {  // null: not supported by the engine
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const BenchRow& row) { return row.pass == pass && row.engine == engine; });
    return found == rows.end() ? nullptr : &*found;
  }
};

// The sum over all layers at one batch size by one engine, each weighted by its count in the network.
struct Sum {
  int batch = 0;
  std::string pass, engine;  // pass "together": all three, consecutively as in a training step
  double milliseconds = 0, flops = 0;
  int asked = 0, measured = 0, missed = 0;  // layers times passes; missed: no plan meets the error limit

  bool complete() const { return measured == asked && asked > 0; }
  double flops_per_second() const { return flops / (milliseconds * 1e-3); }
};

Sum sum_of(const std::vector<LayerRows>& layers, const std::vector<ConvPass>& passes, const std::string& engine) {
  const bool together = passes.size() > 1;
  Sum sum{.batch = layers.front().problem.batch,
          .pass = together ? "together" : std::string(to_string(passes.front())),
          .engine = engine};
  for (const LayerRows& each : layers)
    for (const ConvPass pass : passes) {
      if (std::find(each.passes.begin(), each.passes.end(), pass) == each.passes.end()) continue;
      ++sum.asked;
      const BenchRow* const row = each.find(pass, engine);
      if (row == nullptr || !row->measured()) continue;
      ++sum.measured;
      if (!(row->error <= promise(row->problem.precision, row->pass))) ++sum.missed;
      sum.milliseconds += each.layer.depth * (together && row->in_step_ms > 0 ? row->in_step_ms : row->milliseconds);
      sum.flops += each.layer.depth * row->problem.flops();
    }
  return sum;
}

std::vector<Sum> sums_of(const std::vector<LayerRows>& layers, const std::vector<ConvPass>& passes,
                         const std::vector<std::string>& engines) {
  std::vector<Sum> sums;
  for (const ConvPass pass : passes)
    for (const std::string& engine : engines) sums.push_back(sum_of(layers, {pass}, engine));
  if (passes.size() > 1)
    for (const std::string& engine : engines) sums.push_back(sum_of(layers, passes, engine));
  return sums;
}

// Returns the speed-up over the vendor's engine; 0: either sum is incomplete.
double speed_up(const Sum& sum, const std::vector<Sum>& sums, const ConvEngine* vendor) {
  for (const Sum& other : sums)
    if (vendor != nullptr && other.engine == vendor->name() && other.pass == sum.pass && other.batch == sum.batch &&
        other.complete() && sum.complete())
      return other.milliseconds / sum.milliseconds;
  return 0;
}

Json to_json(const LayerRows& layer, const BenchRow& row, const ConvEngine* vendor) {
  Json json = {{"part", "speed"}, {"batch", layer.problem.batch}, {"depth", layer.layer.depth}};
  json.update(to_json(row, speed_up(row, layer.rows, vendor), {}));
  if (row.measured()) json["effective_flops_per_second"] = 2 * row.multiply_adds_per_second();
  return json;
}

// The paper's values for a sum: all layers, forward.
struct PaperColumns {
  PaperTimes fp32 = lavin_fp32(), fp16 = lavin_fp16();
  bool whole_network = true;

  const std::vector<double>* find(const PaperTimes& paper, const Sum& sum) const {
    const bool same = whole_network && sum.pass == to_string(ConvPass::forward);
    return same ? paper.find(std::to_string(sum.batch), ConvPass::forward) : nullptr;
  }
};

Json to_json(const Sum& sum, double times_as_fast, const PaperColumns& papers) {
  Json json = {{"part", "speed"}, {"batch", sum.batch}, {"layer", "sum"}, {"pass", sum.pass}, {"engine", sum.engine}};
  if (sum.complete())
    json.update(Json{{"ms", sum.milliseconds}, {"effective_flops_per_second", sum.flops_per_second()}});
  else
    json["failure"] = fmt::format("{} of {} passes of layers were measured", sum.measured, sum.asked);
  if (sum.missed > 0) json["passes_that_miss_the_precision"] = sum.missed;
  if (times_as_fast > 0) json["speed_up"] = times_as_fast;
  for (const auto& [key, paper] : {std::pair{"paper_fp32", papers.fp32}, std::pair{"paper_fp16", papers.fp16}})
    if (const std::vector<double>* const printed = papers.find(paper, sum))
      for (std::size_t i = 0; i < printed->size(); ++i) json[key][paper.columns[i]] = (*printed)[i];
  return json;
}

std::string ms_text(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : 2);
}

std::string tflops_text(double per_second) {
  return fmt::format("{:.{}f}", per_second * 1e-12, per_second < 10e12 ? 3 : 2);
}

using Cells = std::vector<std::string>;

void append(Cells& cells, const Cells& more) {
  cells.insert(cells.end(), more.begin(), more.end());
}

Cells cells_of(const BenchRow* row) {
  if (row == nullptr) return {"-", "", ""};
  if (!row->measured()) return {way_of(*row), "", ""};
  return {way_of(*row), ms_text(row->milliseconds), tflops_text(2 * row->multiply_adds_per_second())};
}

Cells cells_of(const Sum& sum) {
  if (!sum.complete()) return {"-", "-"};
  return {ms_text(sum.milliseconds) + (sum.missed > 0 ? "*" : ""), tflops_text(sum.flops_per_second())};
}

// Prints one line per layer, then the totals.
void print(const std::vector<LayerRows>& layers, ConvPass pass, const std::vector<std::string>& engines) {
  Cells header{"layer", "depth", "GFLOP"};
  Cells last{"sum", "", ""};
  for (const std::string& engine : engines) {
    append(header, {engine, "ms", "TFLOP/s"});
    append(last, {""});
    append(last, cells_of(sum_of(layers, {pass}, engine)));
  }
  TextTable table(header);
  for (const LayerRows& each : layers) {
    Cells cells{each.layer.name, std::to_string(each.layer.depth), fmt::format("{:.2f}", each.problem.flops() * 1e-9)};
    for (const std::string& engine : engines) append(cells, cells_of(each.find(pass, engine)));
    table.add(cells);
  }
  table.add(last);
  fmt::print("batch {}, {}\n{}\n", layers.front().problem.batch, to_string(pass), table.text());
  std::fflush(stdout);
}

Cells numbers_of(const std::vector<double>& printed) {
  Cells cells;
  for (const double number : printed) append(cells, {fmt::format("{:.2f}", number)});
  return cells;
}

// Prints one line per batch size. `sums`: of one pass, ordered by batch size, then engine.
void print(const std::vector<Sum>& sums, const std::vector<std::string>& engines, const ConvEngine* vendor,
           const PaperColumns& papers) {
  Cells header{"batch"}, header16{"batch"};
  for (const std::string& engine : engines) append(header, {engine + " ms", "TFLOP/s", "speed-up"});
  const bool has_paper = papers.find(papers.fp32, sums.front()) != nullptr;
  if (has_paper) append(header, papers.fp32.columns), append(header16, papers.fp16.columns);
  TextTable table(header), table16(header16);
  for (std::size_t first = 0; first < sums.size(); first += engines.size()) {
    Cells cells{std::to_string(sums[first].batch)}, cells16 = cells;
    for (std::size_t i = first; i < first + engines.size(); ++i) {
      const double times = speed_up(sums[i], sums, vendor);
      append(cells, cells_of(sums[i]));
      append(cells, {times > 0 ? fmt::format("{:.2f}", times) : "-"});
    }
    if (has_paper) {
      append(cells, numbers_of(*papers.find(papers.fp32, sums[first])));
      append(cells16, numbers_of(*papers.find(papers.fp16, sums[first])));
    }
    table.add(cells), table16.add(cells16);
  }
  fmt::print("all layers, {}\n{}\n", sums.front().pass, table.text());
  if (!has_paper) return;
  fmt::print("{}: {}.\n{}\n\n", join_names(papers.fp32.columns), papers.fp32.source, papers.fp32.note);
  fmt::print("{}:\n{}\n", papers.fp16.source, table16.text());
}

// Selects our engine and the vendor's if the request names none. Also times evaluation if the only pass is forward.
BenchOptions with_engines(BenchOptions options) {
  options.evaluation = options.passes == std::vector<ConvPass>{ConvPass::forward};
  if (!options.engines.empty()) return options;
  const LayerBench all(options);
  options.engines = {"winograd"};
  if (all.vendor() != nullptr) options.engines.emplace_back(all.vendor()->name());
  return options;
}

std::vector<LayerRows> measure(LayerBench& bench, const std::vector<BenchLayer>& layers, int batch) {
  std::vector<LayerRows> measured;
  for (BenchLayer layer : layers) {
    layer.problem.batch = batch;
    measured.push_back({layer, bench.problem_of(layer), bench.passes_of(layer), bench.run(layer)});
  }
  return measured;
}

// Prints the sums, one table per pass.
void print_by_pass(std::vector<Sum> sums, const std::vector<std::string>& engines, const ConvEngine* vendor,
                   const PaperColumns& papers) {
  while (!sums.empty()) {
    const std::string pass = sums.front().pass;
    const auto others =
        std::stable_partition(sums.begin(), sums.end(), [&](const Sum& sum) { return sum.pass == pass; });
    print({sums.begin(), others}, engines, vendor, papers);
    sums.erase(sums.begin(), others);
  }
  fmt::print(
      "ms of one layer: the best of a few runs, each on new operands, so that the filters' transform counts; FX: as "
      "in\n"
      "evaluation, where filters are transformed beforehand. TFLOP/s are effective: what direct convolution takes, "
      "over\n"
      "the time. Sums have each layer as often as VGG-E has it; with * they have layers where nothing keeps the\n"
      "precision. together: all passes as they follow each other in training. speed-up: over {}.\n\n",
      vendor != nullptr ? vendor->name() : "the vendor's engine, which is not here");
}

BenchResult bench_speed(const BenchRequest& request) {
  LayerBench bench(with_engines(request.options));
  const std::vector<BenchLayer> layers = chosen_layers(request, vgg_layers());
  const std::vector<ConvPass>& passes = bench.options().passes;
  const PaperColumns papers{.whole_network = request.layers.empty()};
  std::vector<std::string> engines;
  const std::vector<SpectralEngine*> spectral = bench.spectral();
  for (const ConvEngine* engine : bench.engines()) {
    engines.emplace_back(engine->name());
    if (bench.options().evaluation && std::find(spectral.begin(), spectral.end(), engine) != spectral.end())
      engines.push_back(with_kept_filters(engine->name()));
  }
  std::vector<int> batches{1, 2, 4, 8, 16, 32, 64};
  if (request.options.batch > 0) batches = {request.options.batch};

  BenchResult result;
  std::vector<Sum> all;
  for (const int batch : batches) {
    const std::vector<LayerRows> measured = measure(bench, layers, batch);
    for (const LayerRows& layer : measured)
      for (const BenchRow& row : layer.rows) result.rows.push_back(to_json(layer, row, bench.vendor()));
    for (const ConvPass pass : passes)
      if (request.print) print(measured, pass, engines);
    const std::vector<Sum> sums = sums_of(measured, passes, engines);
    for (const Sum& sum : sums) result.rows.push_back(to_json(sum, speed_up(sum, sums, bench.vendor()), papers));
    all.insert(all.end(), sums.begin(), sums.end());
  }
  if (request.print) print_by_pass(std::move(all), engines, bench.vendor(), papers);
  return result;
}

}  // namespace

BenchResult bench_winograd(const BenchRequest& request) {
  const std::vector<std::string> known{"speed", "errors"};
  const std::vector<std::string>& parts = request.parts.empty() ? known : request.parts;
  BenchResult result;
  for (const std::string& part : parts)
    if (std::find(known.begin(), known.end(), part) == known.end())
      throw Error(ErrorKind::config, unknown_name("part", part, known));
  for (const std::string& part : parts)
    for (Json& row : (part == "speed" ? bench_speed(request) : bench_winograd_errors(request)).rows)
      result.rows.push_back(std::move(row));
  return result;
}

}  // namespace twiddle
