#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/bench/svg_page.h"
#include "apps/command_line/text_table.h"
#include "apps/report/svg.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

void append(BenchResult& result, const char* part, const BenchResult& more) {
  for (Json row : more.rows) {
    Json marked = {{"part", part}};
    marked.update(row);
    result.rows.push_back(marked);
  }
}

// One row of figure 3: the parameter that varies, and the resulting layers.
struct Figure3Row {
  std::string name;
  std::vector<std::pair<int, ConvProblem>> points;
};

std::vector<Figure3Row> figure3(int batch) {
  constexpr int channels = 96, filters = 256, size = 32, kernel = 7;
  Figure3Row sizes{"input size", {}}, kernels{"kernel size", {}}, batches{"batch size", {}};
  for (const int n : {16, 24, 32, 48, 64})
    sizes.points.push_back({n, square_problem(batch, channels, filters, n, kernel)});
  for (const int k : {3, 5, 7, 9, 11, 13})
    kernels.points.push_back({k, square_problem(batch, channels, filters, size, k)});
  for (const int eighths : {1, 2, 4, 6, 8}) {
    const int images = std::max(1, batch * eighths / 8);
    if (batches.points.empty() || batches.points.back().first != images)
      batches.points.push_back({images, square_problem(images, channels, filters, size, kernel)});
  }
  return {sizes, kernels, batches};
}

void print(const Figure3Row& series, const std::vector<BenchRow>& rows, const std::vector<std::string>& engines) {
  std::vector<std::string> header{series.name, "pass"};
  for (const std::string& engine : engines) header.push_back(engine + ", ms");
  TextTable table(header);
  for (const BenchRow& row : rows) {
    if (row.engine != engines.front()) continue;
    std::vector<std::string> cells{row.layer, std::string(to_string(row.pass))};
    for (const std::string& engine : engines) {
      const auto same = std::find_if(rows.begin(), rows.end(), [&](const BenchRow& other) {
        return other.engine == engine && other.layer == row.layer && other.pass == row.pass && other.measured();
      });
      cells.push_back(same == rows.end() ? "-" : fmt::format("{:.3f}", same->milliseconds));
    }
    table.add(cells);
  }
  fmt::print("{}\n", table.text());
  std::fflush(stdout);
}

BenchResult curves(const BenchRequest& request) {
  BenchOptions options = request.options;
  const int batch = options.batch > 0 ? options.batch : 128;
  options.batch = 0, options.whole_steps = false;
  LayerBench bench(options);
  std::vector<std::string> engines;
  for (const ConvEngine* engine : bench.engines())
    if (engine->name().find('(') == std::string_view::npos) engines.emplace_back(engine->name());
  BenchResult result;
  std::vector<std::string> charts;
  for (const Figure3Row& series : figure3(batch)) {
    std::vector<BenchRow> rows;
    for (const auto& [value, problem] : series.points)
      for (const BenchRow& row : bench.run({std::to_string(value), problem})) rows.push_back(row);
    if (request.print) print(series, rows, engines);
    for (const ConvPass pass : options.passes) {
      std::vector<Curve> lines;
      for (const std::string& engine : engines) {
        Curve line{engine, {}};
        for (const BenchRow& row : rows)
          if (row.engine == engine && row.pass == pass && row.measured())
            line.points.emplace_back(std::stod(row.layer), row.milliseconds);
        lines.push_back(line);
      }
      charts.push_back(
          Chart{.title = std::string(to_string(pass)), .x_title = series.name, .y_title = "ms", .curves = lines}.svg());
    }
    for (const BenchRow& row : rows) {
      Json json = {{"over", series.name},
                   {"value", std::stoi(row.layer)},
                   {"pass", to_string(row.pass)},
                   {"engine", row.engine}};
      if (row.measured())
        json["ms"] = row.milliseconds;
      else
        json["failure"] = row.failure;
      result.rows.push_back(json);
    }
  }
  result.svg = svg_page({.all = charts, .columns = static_cast<int>(options.passes.size())});
  if (request.print)
    fmt::print(
        "96 to 256 planes of 32 x 32, kernels 7 x 7, batch {} where they are not varied: the paper's figure 3\n\n",
        batch);
  return result;
}

}  // namespace

BenchResult bench_mathieu(const BenchRequest& request) {
  const std::vector<std::string> known{"layers", "network", "memory", "curves"};
  const std::vector<std::string>& parts = request.parts.empty() ? known : request.parts;
  for (const std::string& part : parts)
    if (std::find(known.begin(), known.end(), part) == known.end())
      throw Error(ErrorKind::config, unknown_name("part", part, known));
  const auto wanted = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  BenchResult result;
  if (wanted("layers"))
    append(result, "layers", bench_layers(request, chosen_layers(request, mathieu_layers()), mathieu_table()));
  if (wanted("network")) append(result, "network", bench_networks(request, {"mathieu"}, mathieu_network()));
  if (wanted("memory")) append(result, "memory", bench_spectra_memory(request));
  if (wanted("curves")) {
    const BenchResult drawn = curves(request);
    append(result, "curves", drawn);
    result.svg = drawn.svg;
  }
  return result;
}

}  // namespace twiddle
