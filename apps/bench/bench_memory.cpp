#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"
#include "fft/spectral_engine.h"

namespace twiddle {
namespace {

// Their table: S, n, f, f' and megabytes of 10^6 bytes. It prints batch 128 for the last four rows, too, but their
// megabytes are those of 64 by its own formula.
struct PaperMemory {
  int batch, size, channels, filters, megabytes;
};
constexpr PaperMemory paper_memory[] = {{128, 16, 96, 256, 76},   {128, 32, 96, 256, 294}, {64, 64, 96, 256, 784},
                                        {128, 64, 96, 256, 1159}, {64, 16, 256, 384, 151}, {64, 32, 256, 384, 588},
                                        {64, 16, 384, 384, 214},  {64, 32, 384, 384, 830}};
constexpr int memory_kernel = 5;  // not in the table; irrelevant for whole planes

}  // namespace

double mathieu_formula_bytes(const ConvProblem& p) {
  const double planes = 1.0 * p.batch * p.channels + 1.0 * p.batch * p.filters + 1.0 * p.channels * p.filters;
  return 4.0 * p.height * (p.height + 1) * planes;
}

std::size_t peak_of_spectra(LayerBench& bench, const ConvProblem& problem, bool all_passes) {
  bench.renew();
  const std::vector<SpectralEngine*> engines = bench.spectral();
  if (engines.empty() || !engines.front()->supports(problem, ConvPass::forward)) return 0;
  SpectralEngine& engine = *engines.front();
  Context& ctx = bench.context();
  const Tensor x(*ctx.stream, problem.input_shape()), w(*ctx.stream, problem.weight_shape()),
      y(*ctx.stream, problem.output_shape());
  ConvOperands forward{x, w, y}, weight{x, Tensor(*ctx.stream, w.shape()), y},
      input{Tensor(*ctx.stream, x.shape()), w, y};
  const auto run = [&](ConvPass pass, ConvOperands& operands) {
    engine.plans(problem, pass, 1).front()->run(ctx, operands);
  };
  run(ConvPass::forward, forward);
  if (all_passes) run(ConvPass::backward_weight, weight), run(ConvPass::backward_input, input);
  return engine.buffers().use().peak;
}

BenchResult bench_spectra_memory(const BenchRequest& request) {
  LayerBench bench(request.options);
  TextTable table({"S", "n", "f", "f'", "the paper", "its formula", "forward", "three passes"});
  BenchResult result;
  for (const PaperMemory& row : paper_memory) {
    const int batch = request.options.batch > 0 ? std::min(request.options.batch, row.batch) : row.batch;
    ConvProblem problem = square_problem(batch, row.channels, row.filters, row.size, memory_kernel);
    problem.precision = request.options.precision;
    const double formula = mathieu_formula_bytes(problem);
    const std::size_t forward = peak_of_spectra(bench, problem, false), step = peak_of_spectra(bench, problem, true);
    const auto bytes = [](std::size_t value) {
      return value > 0 ? fmt::format("{:.0f} MB", static_cast<double>(value) / 1e6) : "-";
    };
    table.add({std::to_string(batch), std::to_string(row.size), std::to_string(row.channels),
               std::to_string(row.filters), batch == row.batch ? fmt::format("{} MB", row.megabytes) : "-",
               fmt::format("{:.0f} MB", formula / 1e6), bytes(forward), bytes(step)});
    result.rows.push_back({{"batch", batch},
                           {"size", row.size},
                           {"channels", row.channels},
                           {"filters", row.filters},
                           {"formula_bytes", formula},
                           {"forward_bytes", forward},
                           {"three_passes_bytes", step}});
    if (batch == row.batch) result.rows.back()["paper_bytes"] = row.megabytes * 1e6;
  }
  if (request.print)
    fmt::print(
        "memory for spectra: 4 n (n + 1) (S f + S f' + f f') bytes by the paper's formula, and as measured, scratch\n"
        "included, of kernels {0} x {0} by the first plan of the engine. The paper prints a batch of 128 in the last "
        "four\n"
        "rows, too, but its megabytes are those of 64.\n{1}\n",
        memory_kernel, table.text());
  return result;
}

}  // namespace twiddle
