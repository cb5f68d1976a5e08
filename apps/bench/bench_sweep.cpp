#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "apps/bench/bench.h"
#include "apps/bench/heat_map.h"
#include "apps/bench/svg_page.h"
#include "apps/bench/sweep_results.h"
#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int shapes_between_renewals = 16;  // because engines keep plans of every shape

// Shows the progress of a sweep: on a terminal in one line, elsewhere periodic lines.
class SweepProgress {
 public:
  SweepProgress(int verbosity, std::size_t shapes) : console_(verbosity), shapes_(shapes) {}

  void show(std::size_t done, std::size_t measured, const SweepShape& next) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::string text = fmt::format("shape {} of {}: {}", done + 1, shapes_, to_string(next.problem()));
    if (measured > 0)
      text += "  eta " + format_duration(seconds / static_cast<double>(measured) * static_cast<double>(shapes_ - done));
    if (console_.terminal()) {
      console_.redraw(text);
    } else if (Clock::now() - shown_ > std::chrono::seconds(10)) {
      shown_ = Clock::now();
      console_.line(text);
    }
  }

 private:
  Console console_;
  std::size_t shapes_;
  Clock::time_point start_ = Clock::now(), shown_{};
};

// Merges all passes of one engine into one row.
SweepRow gather(const SweepShape& shape, const std::string& engine, const std::vector<BenchRow>& rows) {
  SweepRow all{shape, engine, {}, 0, {}};
  int passes = 0;
  for (const BenchRow& row : rows) {
    if (row.engine != engine) continue;
    ++passes;
    all.milliseconds[static_cast<std::size_t>(row.pass)] = row.milliseconds;
    all.error = std::max(all.error, row.error);
    if (!row.measured()) all.failure = row.failure;
    if (std::isnan(row.error)) all.failure = "left elements unwritten";
  }
  if (passes < 3 && all.failure.empty()) all.failure = "not supported";
  return all;
}

void measure_all(const BenchRequest& request, const std::vector<SweepShape>& shapes, LayerBench& bench,
                 const std::vector<std::string>& engines, SweepResults& results) {
  SweepProgress progress(request.verbosity, shapes.size());
  std::size_t measured = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const SweepShape& shape = shapes[i];
    const auto known = [&](const std::string& engine) { return results.knows(shape, engine); };
    if (std::all_of(engines.begin(), engines.end(), known)) continue;
    progress.show(i, measured, shape);
    if (++measured % shapes_between_renewals == 0) bench.renew();
    const std::vector<BenchRow> rows = bench.run({"", shape.problem()});
    for (const std::string& engine : engines)
      if (!known(engine)) results.add(gather(shape, engine, rows));
  }
}

// The speed-up of one engine over another for the three passes together, for one shape.
struct Comparison {
  SweepShape shape;
  double factor = 0;  // 0: one of them failed
};

// A result that exceeds the error limit counts as failed.
std::vector<Comparison> compare(const std::vector<SweepRow>& rows, Precision precision, const std::string& engine,
                                const std::string& against) {
  const double limit = promise(precision, ConvPass::forward);  // the largest: a row has the largest error
  const auto counts = [&](const SweepRow& row) { return row.failure.empty() && row.error <= limit; };
  std::map<SweepShape, std::pair<const SweepRow*, const SweepRow*>> pairs;
  for (const SweepRow& row : rows) {
    if (row.engine == engine) pairs[row.shape].first = &row;
    if (row.engine == against) pairs[row.shape].second = &row;
  }
  std::vector<Comparison> all;
  for (const auto& [shape, pair] : pairs) {
    if (pair.first == nullptr || pair.second == nullptr || !counts(*pair.second)) continue;
    all.push_back({shape, counts(*pair.first) ? pair.second->total() / pair.first->total() : 0});
  }
  return all;
}

double geometric_mean(const std::vector<double>& factors) {
  double sum = 0;
  for (const double factor : factors) sum += std::log(factor);
  return factors.empty() ? 0 : std::exp(sum / static_cast<double>(factors.size()));
}

void print(const std::vector<Comparison>& all, const std::string& engine, const std::string& against) {
  TextTable table({"kernel", "shapes", "failed", "faster", "mean", "best", "best at", "paper's best"});
  const std::map<int, const char*> paper{{3, "1.84"}, {5, "5.33"}, {13, "23.54"}};
  for (const int kernel : sweep_kernels()) {
    std::vector<double> factors;
    int failed = 0, faster = 0;
    Comparison best;
    for (const Comparison& each : all) {
      if (each.shape.kernel != kernel) continue;
      if (each.factor <= 0) {
        ++failed;
        continue;
      }
      factors.push_back(each.factor);
      faster += each.factor > 1;
      if (each.factor > best.factor) best = each;
    }
    const auto printed = paper.find(kernel);
    const auto factor = [&](double value) { return factors.empty() ? "-" : fmt::format("{:.2f}", value); };
    table.add({std::to_string(kernel), std::to_string(factors.size()), std::to_string(failed), std::to_string(faster),
               factor(geometric_mean(factors)), factor(best.factor),
               best.factor > 0 ? to_string(best.shape.problem()) : "-", printed == paper.end() ? "" : printed->second});
  }
  fmt::print("speed-up of {} over {}, the three passes together; mean: geometric\n{}", engine, against, table.text());
}

// "2¹⁰"
std::string power_of_two(int power) {
  const char* const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = "2";
  for (const char digit : std::to_string(power)) text += raised[digit - '0'];
  return text;
}

HeatMap heat_map(const std::vector<Comparison>& all, int kernel, const std::string& engine,
                 const std::string& against) {
  HeatMap map;
  map.title = fmt::format("{0} x {0}: {1} over {2}", kernel, engine, against);
  map.x_title = "side of the output, pixels", map.y_title = "batch × channels × filters";
  for (const int output : sweep_outputs()) map.columns.push_back(std::to_string(output));
  const int powers = 24;  // 128 x 256 x 256 lies below 2^24
  map.cells.assign(powers, std::vector<HeatMap::Cell>(map.columns.size()));
  for (int power = 0; power < powers; ++power) map.rows.push_back(power_of_two(power));
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> factors;
  for (const Comparison& each : all) {
    if (each.shape.kernel != kernel) continue;
    const auto row = static_cast<std::size_t>(std::log2(each.shape.problem_size()));
    const auto found = std::find(sweep_outputs().begin(), sweep_outputs().end(), each.shape.output);
    const auto column = static_cast<std::size_t>(found - sweep_outputs().begin());
    if (each.factor > 0)
      factors[{row, column}].push_back(each.factor);
    else
      map.cells[row][column].failed = true;
  }
  for (const auto& [place, values] : factors) map.cells[place.first][place.second].factor = geometric_mean(values);
  return map;
}

Json to_json(const SweepRow& row) {
  Json json = {{"batch", row.shape.batch},   {"channels", row.shape.channels}, {"filters", row.shape.filters},
               {"kernel", row.shape.kernel}, {"output", row.shape.output},     {"engine", row.engine}};
  if (!row.failure.empty()) {
    json["failure"] = row.failure;
    return json;
  }
  json.update(Json{{"forward_ms", row.milliseconds[0]},
                   {"backward_input_ms", row.milliseconds[1]},
                   {"backward_weight_ms", row.milliseconds[2]},
                   {"error", row.error}});
  return json;
}

std::vector<SweepShape> shapes_of(const BenchRequest& request) {
  std::vector<SweepShape> shapes = request.sample > 0 ? sweep_sample(request.sample, request.seed) : sweep_shapes();
  if (request.options.batch > 0) {
    for (SweepShape& shape : shapes) shape.batch = std::min(shape.batch, request.options.batch);
    std::sort(shapes.begin(), shapes.end());
    shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  }
  return shard_of(shapes, request.shard);
}

// Omits the device index: devices of one model give the same times.
std::string conditions_of(const BenchOptions& options) {
  std::string device = describe(options.device);
  if (options.device.kind == Device::Kind::cuda) device = "cuda" + device.substr(device.find(": "));
  return join(device, ", ", to_string(options.precision), ", ", format_bytes(options.workspace_limit));
}

// Returns the precision under which results were recorded.
Precision precision_in(const std::string& conditions) {
  for (const Precision precision : every_precision)
    if (conditions.find(join(", ", to_string(precision), ", ")) != std::string::npos) return precision;
  return Precision::fp32;
}

// Shows the known results, and compares the first engine with the second.
BenchResult show(const BenchRequest& request, const std::vector<SweepShape>& shapes, const SweepResults& results,
                 const std::vector<std::string>& engines, const std::pair<std::string, std::string>& compared) {
  BenchResult result;
  const std::set<SweepShape> wanted(shapes.begin(), shapes.end());
  std::set<SweepShape> known;
  std::vector<SweepRow> rows;
  for (const SweepRow& row : results.rows())
    if (wanted.count(row.shape) > 0) rows.push_back(row), known.insert(row.shape);
  for (const SweepRow& row : rows) result.rows.push_back(to_json(row));
  const auto print_size = [](std::size_t size) { return format_count(static_cast<std::int64_t>(size)); };
  if (request.print)
    fmt::print("{} of the paper's 8,232 shapes{} by {}{}\n", print_size(shapes.size()),
               known.size() < shapes.size() ? ", " + print_size(known.size()) + " of them measured," : "",
               join_names(engines), request.results.empty() ? "" : "; kept in " + join_names(request.results));
  const auto& [engine, against] = compared;
  if (engine.empty() || against.empty()) {
    if (request.print)
      fmt::print("nothing to compare: a comparison needs an FFT convolution engine and the vendor's\n");
    return result;
  }
  const std::vector<Comparison> all = compare(rows, precision_in(results.conditions()), engine, against);
  if (request.print) print(all, engine, against);
  std::vector<std::string> maps;
  for (const int kernel : sweep_kernels()) maps.push_back(heat_map(all, kernel, engine, against).svg());
  result.svg = svg_page({.all = maps,
                         .columns = 3,
                         .width = HeatMap::width,
                         .height = HeatMap::height,
                         .footer = HeatMap::key(),
                         .footer_height = HeatMap::key_height});
  return result;
}

// Needs no device.
BenchResult show_recorded(const BenchRequest& request) {
  const SweepResults results = SweepResults::recorded(request.results);
  std::vector<std::string> known;
  for (const SweepRow& row : results.rows())
    if (std::find(known.begin(), known.end(), row.engine) == known.end()) known.push_back(row.engine);
  const std::vector<std::string>& engines = request.options.engines;
  if (engines.size() != 2)
    throw Error(ErrorKind::config, "--recorded takes --engines A,B: the speed-up of A over B, of " + join_names(known));
  for (const std::string& engine : engines)
    if (std::find(known.begin(), known.end(), engine) == known.end())
      throw Error(ErrorKind::config, unknown_name("engine in these results", engine, known));
  if (request.print) fmt::print("measured on {}\n\n", results.conditions());
  BenchResult result = show(request, shapes_of(request), results, engines, {engines[0], engines[1]});
  result.measured_on = results.conditions();
  return result;
}

std::string name_of(const ConvEngine* engine) {
  return engine == nullptr ? "" : std::string(engine->name());
}

}  // namespace

BenchResult bench_sweep(const BenchRequest& request) {
  if (request.recorded) return show_recorded(request);
  BenchRequest of_all = request;
  of_all.options.whole_steps = false;
  LayerBench bench(of_all.options);
  std::vector<std::string> engines;
  for (const ConvEngine* engine : bench.engines())
    // excludes wrappers for strides
    if (engine->name().find('(') == std::string_view::npos) engines.emplace_back(engine->name());
  const std::vector<SpectralEngine*> spectral = bench.spectral();
  const std::vector<SweepShape> shapes = shapes_of(request);
  SweepResults results(request.results, conditions_of(bench.options()));
  measure_all(request, shapes, bench, engines, results);
  return show(request, shapes, results, engines,
              {spectral.empty() ? "" : std::string(spectral.front()->name()), name_of(bench.vendor())});
}

}  // namespace twiddle
