#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

// One problem of section 5.4 of Vasilache et al. 2014: both engines in the three passes.
struct Race {
  int size, planes;
  double cufft_ms[3] = {}, fbfft_ms[3] = {};
  std::string failure;

  double ratio(std::size_t pass) const { return cufft_ms[pass] / fbfft_ms[pass]; }
  double total(const double (&ms)[3]) const { return ms[0] + ms[1] + ms[2]; }
  double ratio() const { return total(cufft_ms) / total(fbfft_ms); }
};

Race race(LayerBench& bench, int size, int planes) {
  Race result{size, planes, {}, {}, {}};
  int measured = 0;
  for (const BenchRow& row : bench.run({"", square_problem(planes, planes, planes, size, 3)})) {
    if (!row.measured()) {
      result.failure = row.engine + ": " + row.failure;
      continue;
    }
    (row.engine == "fbfft" ? result.fbfft_ms : result.cufft_ms)[static_cast<std::size_t>(row.pass)] = row.milliseconds;
    ++measured;
  }
  if (measured < 6 && result.failure.empty()) result.failure = "not supported within the workspace limit";
  return result;
}

Json to_json(const Race& race) {
  Json json = {{"size", race.size}, {"planes", race.planes}};
  if (!race.failure.empty()) {
    json["failure"] = race.failure;
    return json;
  }
  for (const ConvPass pass : every_pass) {
    const auto at = static_cast<std::size_t>(pass);
    json[std::string(to_string(pass))] = {
        {"cufft_ms", race.cufft_ms[at]}, {"fbfft_ms", race.fbfft_ms[at]}, {"ratio", race.ratio(at)}};
  }
  json["ratio"] = race.ratio();
  return json;
}

std::vector<std::string> cells_of(const Race& race) {
  std::vector<std::string> cells{std::to_string(race.size), std::to_string(race.planes)};
  if (!race.failure.empty()) {
    cells.push_back("failed: " + race.failure.substr(0, race.failure.find('\n')));
    cells.resize(9);
    return cells;
  }
  for (std::size_t pass = 0; pass < 3; ++pass) {
    cells.push_back(fmt::format("{:.4f} / {:.4f}", race.cufft_ms[pass], race.fbfft_ms[pass]));
    cells.push_back(fmt::format("{:.2f}", race.ratio(pass)));
  }
  cells.push_back(fmt::format("{:.2f}", race.ratio()));
  return cells;
}

struct Statistics {
  double mean = 0, geometric_mean = 0, least = 0, deviation = 0;
};

Statistics statistics_of(const std::vector<double>& ratios) {
  const auto count = static_cast<double>(ratios.size());
  Statistics all;
  for (const double ratio : ratios) all.mean += ratio / count, all.geometric_mean += std::log(ratio) / count;
  all.geometric_mean = std::exp(all.geometric_mean);
  for (const double ratio : ratios) all.deviation += (ratio - all.mean) * (ratio - all.mean) / count;
  all.deviation = std::sqrt(all.deviation);
  all.least = *std::min_element(ratios.begin(), ratios.end());
  return all;
}

void add(TextTable& table, BenchResult& result, const char* what, const std::vector<double>& ratios) {
  if (ratios.empty()) return;
  const Statistics all = statistics_of(ratios);
  const auto number = [](double value) { return fmt::format("{:.2f}", value); };
  table.add({what, std::to_string(ratios.size()), number(all.mean), number(all.geometric_mean), number(all.least),
             number(all.deviation)});
  result.rows.push_back({{"over", what},
                         {"ratios", ratios.size()},
                         {"mean", all.mean},
                         {"geometric_mean", all.geometric_mean},
                         {"minimum", all.least},
                         {"standard_deviation", all.deviation}});
}

}  // namespace

BenchResult bench_fbfft_conv(const BenchRequest& request) {
  BenchOptions options = request.options;
  if (options.device.kind != Device::Kind::cuda)
    throw Error(ErrorKind::device,
                "fbfft-conv compares the engines fbfft and cufft, which need a "
                "GPU: --device cuda");
  options.engines = {"cufft", "fbfft"};
  options.whole_steps = false;
  LayerBench bench(options);
  TextTable table({"x", "S, f, f'", "forward, ms", "ratio", "backward_input, ms", "ratio", "backward_weight, ms",
                   "ratio", "together"});
  BenchResult result;
  std::vector<double> of_passes, of_sums;
  for (const int size : {13, 16, 27, 32, 57, 64})
    for (const int planes : {16, 32, 64, 128}) {
      const Race found = race(bench, size, planes);
      table.add(cells_of(found));
      result.rows.push_back(to_json(found));
      if (!found.failure.empty()) continue;
      for (std::size_t pass = 0; pass < 3; ++pass) of_passes.push_back(found.ratio(pass));
      of_sums.push_back(found.ratio());
    }
  TextTable summary({"ratios of", "number", "mean", "geometric mean", "minimum", "standard deviation"});
  add(summary, result, "each pass", of_passes);
  add(summary, result, "three passes together", of_sums);
  summary.add({"the paper, K40m", "", "1.51", "", "1.21", ""});
  if (request.print)
    fmt::print(
        "3 x 3 kernels, batch, channels and filters alike; cufft / fbfft, ms, and how many times as fast\n{}\n{}",
        table.text(), summary.text());
  return result;
}

}  // namespace twiddle
