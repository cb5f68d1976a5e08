#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/bench/bench.h"
#include "apps/bench/fft_bench.h"
#include "apps/bench/svg_page.h"
#include "apps/command_line/text_table.h"
#include "apps/report/svg.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

// Sizes of one kind, with one table per direction.
struct Series {
  const char* part;
  bool planes;
  BinLayout layout;
  std::vector<int> points;
  bool drawn;
  std::optional<int> missing = {};  // rows and columns that a convolution pads with zeros; null: whole planes, no bias

  FftBatch batch(int n, std::int64_t count) const {
    const bool two_steps = planes && n > 64;
    return {.height = planes ? n : 1,
            .width = n,
            .count = count,
            .layout = two_steps && layout == BinLayout::packed ? BinLayout::frequency_major : layout};
  }
  std::string name() const {
    if (missing)
      return fmt::format("planes {0} x {0} of a convolution, frequency-major; back with bias and ReLU",
                         *missing == 0 ? std::string("n") : fmt::format("(n-{})", *missing));
    return fmt::format("{}, {}", planes ? "planes n x n" : "rows of n",
                       layout == BinLayout::plane_major ? "plane-major" : "frequency-major");
  }
};

std::vector<Series> series_of(bool gpu) {
  const std::vector<int> powers{8, 16, 32, 64, 128, 256}, rows{2, 4, 8, 16, 32, 64, 128, 256},
      even{10, 12, 14, 18, 20, 24, 28, 30, 36, 40, 48},
      whole{8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 64};
  if (!gpu)
    return {{"1d", false, BinLayout::frequency_major, rows, false},
            {"2d", true, BinLayout::frequency_major, {8, 14, 16, 28, 32, 64, 128}, false}};
  return {{"1d", false, BinLayout::plane_major, rows, true},     {"2d", true, BinLayout::plane_major, powers, true},
          {"1d", false, BinLayout::frequency_major, rows, true}, {"2d", true, BinLayout::packed, powers, true},
          {"even", false, BinLayout::plane_major, even, false},  {"even", true, BinLayout::plane_major, even, false},
          {"even", true, BinLayout::packed, even, false},        {"conv", true, BinLayout::packed, whole, false, 0},
          {"conv", true, BinLayout::packed, whole, false, 1}};
}

// Throws if a part is unknown, or needs a GPU.
void check_parts(const std::vector<std::string>& parts, bool gpu) {
  const std::vector<std::string> known{"1d", "2d", "even", "conv"};
  for (const std::string& part : parts) {
    if (std::find(known.begin(), known.end(), part) == known.end())
      throw Error(ErrorKind::config, unknown_name("part", part, known));
    if (!gpu && (part == "even" || part == "conv"))
      throw Error(ErrorKind::config, "part '" + part + "' of fft needs a GPU; a CPU has 1d and 2d");
  }
}

std::vector<std::int64_t> batches_of(const BenchRequest& request, bool gpu) {
  if (request.options.batch > 0) return {request.options.batch};
  std::vector<std::int64_t> batches;
  for (std::int64_t batch = 1; batch <= (gpu ? 1 << 22 : 1 << 14); batch *= gpu ? 4 : 16) batches.push_back(batch);
  return batches;
}

const FftRow* find(const std::vector<FftRow>& rows, const FftBatch& batch, bool inverse) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const FftRow& row) { return row.batch == batch && row.inverse == inverse; });
  return found == rows.end() ? nullptr : &*found;
}

const char* name_of(bool inverse) {
  return inverse ? "C2R" : "R2C";
}

// Prints at least two significant digits: 1,234 and 12 but 3.4 and 0.012.
std::string format_gigabytes(double rate) {
  return rate < 9.95 ? fmt::format("{:#.2g}", rate) : format_count(std::llround(rate));
}

// Returns GB/s, the percentage of a copy's rate, and the speed-up over the vendor's library if measured.
std::string cell_of(const FftRow* row, double copy) {
  if (row == nullptr) return "";
  if (row->milliseconds <= 0) return "failed";
  std::string cell = format_gigabytes(row->bytes_per_second() / 1e9);
  if (copy > 0) cell += fmt::format(" {:.0f}%", 100 * row->bytes_per_second() / copy);
  if (row->vendor_ms > 0) cell += fmt::format(" {:.2f}x", row->speed_up());
  return cell;
}

void print(const Series& series, const std::vector<std::int64_t>& batches, const std::vector<FftRow>& rows,
           double copy) {
  for (const bool inverse : {false, true}) {
    std::vector<std::string> header{"batch"};
    for (const int n : series.points) header.push_back(fmt::format("n = {}", n));
    TextTable table(header);
    for (const std::int64_t count : batches) {
      std::vector<std::string> cells{format_count(count)};
      for (const int n : series.points) cells.push_back(cell_of(find(rows, series.batch(n, count), inverse), copy));
      table.add(cells);
    }
    fmt::print("{}, {}\n{}\n", name_of(inverse), series.name(), table.text());
  }
  std::fflush(stdout);
}

Json to_json(const FftRow& row, double copy, const std::string& vendor) {
  Json json = {
      {"dimensions", row.batch.height == 1 ? 1 : 2}, {"points", row.batch.width},         {"batch", row.batch.count},
      {"layout", to_string(row.batch.layout)},       {"direction", name_of(row.inverse)}, {"bytes", row.bytes()}};
  if (row.batch.height > 1) json["plane"] = row.batch.width - row.missing;
  if (row.milliseconds > 0)
    json.update(Json{{"ms", row.milliseconds}, {"bytes_per_second", row.bytes_per_second()}});
  else
    json["failure"] = row.failure;
  if (row.milliseconds > 0 && copy > 0) json["share_of_copy"] = row.bytes_per_second() / copy;
  if (row.vendor_ms > 0)
    json.update(Json{{"vendor", vendor},
                     {"vendor_ms", row.vendor_ms},
                     {"vendor_bytes_per_second", row.vendor_bytes_per_second()},
                     {"speed_up", row.speed_up()}});
  else if (!row.vendor_failure.empty())
    json["vendor_failure"] = row.vendor_failure;
  return json;
}

// Draws the paper's figures 7 (rows) and 8 (planes): speed-up over cuFFT, by batch size.
std::string chart(const Series& series, bool inverse, const std::vector<std::int64_t>& batches,
                  const std::vector<FftRow>& rows) {
  std::vector<Curve> curves;
  for (const int n : series.points) {
    if (n < 8) continue;  // the paper starts at 8
    Curve curve{fmt::format("n = {}", n), {}};
    for (const std::int64_t count : batches)
      if (const FftRow* row = find(rows, series.batch(n, count), inverse); row != nullptr && row->speed_up() > 0)
        curve.points.emplace_back(std::log2(static_cast<double>(count)), row->speed_up());
    curves.push_back(curve);
  }
  return Chart{.title = fmt::format("{}, {}", name_of(inverse), series.name()),
               .x_title = "batch, as a power of two",
               .y_title = "times as fast as cuFFT",
               .curves = curves,
               .mark = 1}
      .svg();
}

}  // namespace

BenchResult bench_fft(const BenchRequest& request) {
  check_parts(request.parts, request.options.device.kind == Device::Kind::cuda);
  constexpr double share_of_budget = 0.2;  // small, because there are many transforms
  FftBench bench(request.options.device, share_of_budget * request.options.budget_ms);
  const bool gpu = bench.on_gpu();
  const std::vector<std::string> usual{"1d", "2d"};
  const std::vector<std::string>& parts = request.parts.empty() ? usual : request.parts;
  const double copy = gpu ? bench.copy_bytes_per_second() : 0;
  if (request.print && gpu)
    fmt::print(
        "A copy on the device reads and writes {:.0f} GB/s. In each cell: GB/s that must be read and written, their\n"
        "share of the copy's, and, but in convolutions, how many times as fast as cuFFT; by replays of captured "
        "calls.\n\n",
        copy / 1e9);
  if (request.print && !gpu)
    fmt::print(
        "GB/s that must be read and written, by the transform of the engine fft, for which a row is a plane of "
        "one.\n{}\n\n",
        bench.vendor().empty()
            ? "FFTW is timed as well if it is installed (libfftw3f.so.3); here it is not."
            : "And how many times as fast as " + bench.vendor() + ", plane-major, as it plans by measurement.");
  BenchResult result;
  std::vector<std::string> charts;
  const std::vector<std::int64_t> batches = batches_of(request, gpu);
  for (const Series& series : series_of(gpu)) {
    if (std::find(parts.begin(), parts.end(), series.part) == parts.end()) continue;
    std::vector<FftRow> rows;
    for (const int n : series.points)
      for (const std::int64_t count : batches) {
        const FftBatch batch = series.batch(n, count);
        if (!bench.fits(batch)) continue;
        for (const FftRow& row : series.missing ? bench.run_in_convolution(batch, *series.missing) : bench.run(batch))
          rows.push_back(row);
      }
    if (request.print) print(series, batches, rows, copy);
    for (const FftRow& row : rows) result.rows.push_back(to_json(row, copy, bench.vendor()));
    if (!series.drawn) continue;
    for (const bool inverse : {false, true}) charts.push_back(chart(series, inverse, batches, rows));
  }
  if (!charts.empty()) result.svg = svg_page({.all = charts, .columns = 2});
  return result;
}

}  // namespace twiddle
