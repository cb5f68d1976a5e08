#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"
#include "framework/tensor.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {
namespace {

constexpr int sizes_in_mb[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 600};
constexpr int samples = 5;
constexpr double ms_of_a_sample = 20;

// The collectives for gradients and weights. Each rank sends and receives factor * (n - 1) / n of the bytes, as in a
// ring.
struct Collective {
  const char* name;
  void (Communicator::*run)(Stream& stream, float* values, std::int64_t count);
  int factor;
};
constexpr Collective collectives[] = {{"sum", &Communicator::all_reduce, 2},
                                      {"scatter", &Communicator::reduce_scatter, 1},
                                      {"gather", &Communicator::all_gather, 1}};

// Returns rank 0's number of calls per sample, because all ranks must make the same calls.
int calls_of_a_sample(Communicator& ranks, double ms) {
  const int own = std::clamp(static_cast<int>(ms_of_a_sample / std::max(ms, 1e-3)), 1, 1000);
  return std::stoi(ranks.gather(std::to_string(own)).front());
}

double milliseconds_of(Communicator& ranks, Stream& stream, const Collective& collective, float* values,
                       std::int64_t count) {
  const auto call = [&] { (ranks.*collective.run)(stream, values, count); };
  time_in_a_row(stream, 3, call);
  const int calls = calls_of_a_sample(ranks, time_in_a_row(stream, 3, call));
  std::vector<double> times;
  for (int sample = 0; sample < samples; ++sample) times.push_back(time_in_a_row(stream, calls, call));
  std::sort(times.begin(), times.end());
  return times[samples / 2];
}

}  // namespace

BenchResult bench_allreduce(const BenchRequest& request) {
  Communicator& ranks = *request.ranks;
  require(ranks.size() > 1, "one process has no other ranks: start several with --gpus 2 or a launcher");
  const auto stream = make_stream(request.options.device);
  ranks.use(request.options.device);
  const double n = ranks.size();
  const std::int64_t most = std::int64_t(250000) * sizes_in_mb[std::size(sizes_in_mb) - 1];
  Tensor values = Tensor::filled(*stream, {most + ranks.size()}, 0);
  TextTable table({"MB", "sum, ms", "GB/s of bus", "scatter, ms", "GB/s", "gather, ms", "GB/s"});
  BenchResult result;
  for (const int mb : sizes_in_mb) {
    const std::int64_t count = (std::int64_t(250000) * mb + ranks.size() - 1) / ranks.size() * ranks.size();
    std::vector<std::string> cells{std::to_string(mb)};
    nlohmann::ordered_json row{{"mb", mb}, {"ranks", ranks.size()}};
    for (const Collective& collective : collectives) {
      const double ms = milliseconds_of(ranks, *stream, collective, values.write(), count);
      const double bus = collective.factor * (n - 1) / n * 4e-6 * static_cast<double>(count) / ms;
      cells.insert(cells.end(), {fmt::format("{:.3f}", ms), fmt::format("{:.0f}", bus)});
      row.update({{join(collective.name, "_ms"), ms}, {join(collective.name, "_gb_per_s"), bus}});
    }
    table.add(cells);
    result.rows.push_back(row);
  }
  if (request.print)
    fmt::print(
        "{} ranks; a sum of S bytes is 2 (n - 1) / n S over the bus, each half of it (scatter, gather) one half\n{}",
        ranks.size(), table.text());
  return result;
}

}  // namespace twiddle
