#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/bench.h"
#include "apps/command_line/text_table.h"
#include "framework/error.h"
#include "layers/conv/tuner/conv_check.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;
using ProductPlan = std::shared_ptr<const SpectralPlan>;

// Returns one plan per spectral product, all on the grid of the engine's highest-ranked plan.
std::vector<ProductPlan> plans_on_one_grid(const SpectralEngine& engine, const ConvProblem& problem, ConvPass pass) {
  std::vector<ProductPlan> found;
  for (const auto& plan : engine.plans(problem, pass)) {
    ProductPlan spectral = std::dynamic_pointer_cast<const SpectralPlan>(plan);
    if (spectral == nullptr || spectral->parts().product == nullptr) continue;
    const auto is_like = [&](const ProductPlan& other) { return other->parts().product == spectral->parts().product; };
    if (!found.empty() && spectral->parts().grid != found.front()->parts().grid) continue;
    if (std::none_of(found.begin(), found.end(), is_like)) found.push_back(std::move(spectral));
  }
  return found;
}

bool is_real(const SpectralParts& parts) {
  const SpectrumStorage storage = parts.product->storage();
  return storage == SpectrumStorage::real || storage == SpectrumStorage::real_apart;
}

// A complex multiply-add is four multiplications and four additions.
double operations_of(const SpectralParts& parts, const FrequencyGemm& gemm) {
  const double terms =
      static_cast<double>(gemm.bins) * static_cast<double>(gemm.groups * gemm.m) * static_cast<double>(gemm.n * gemm.k);
  return terms * (is_real(parts) ? 2 : 8);
}

// Returns the milliseconds of the product, repeated on spectra of the operands.
double time_product(Context& ctx, const SpectralParts& parts, const SpectralSlice& slice, ConvOperands& operands,
                    double budget_ms) {
  Stream& stream = *ctx.stream;
  const std::shared_ptr<void> scratch = stream.allocate(slice.scratch_bytes), a = stream.allocate(slice.a_bytes),
                              b = stream.allocate(slice.b_bytes), c = stream.allocate(slice.c_bytes);
  parts.transform->forward(ctx, slice.a, tensor_of(operands, slice.a_is).read(), a.get(), scratch.get());
  parts.transform->forward(ctx, slice.b, tensor_of(operands, slice.b_is).read(), b.get(), scratch.get());
  const auto multiply = [&] { parts.product->run(ctx, slice.gemm, a.get(), b.get(), c.get(), scratch.get()); };
  multiply();
  return time_calls(stream, budget_ms, multiply);
}

// One pass of one layer: random operands, and the expected result.
class PassProducts {
 public:
  PassProducts(Context& ctx, const ConvProblem& problem, ConvPass pass)
      : ctx_(ctx),
        problem_(problem),
        pass_(pass),
        operands_(random_operands(*ctx.stream, problem, pass)),
        check_(*ctx.stream, problem, pass, operands_, samples) {}

  // Measures the time of the product alone, and the error of the whole plan.
  Json measure(const SpectralPlan& plan, double budget_ms) {
    const SpectralParts& parts = plan.parts();
    const SpectralSlice slice = slice_of(problem_, pass_, parts, plan.images_at_once());
    Json row = {{"pass", to_string(pass_)},
                {"engine", plan.facts().engine},
                {"grid", to_string(parts.grid)},
                {"product", parts.product->name()},
                {"groups", slice.gemm.groups},
                {"bins", slice.gemm.bins},
                {"m", slice.gemm.m},
                {"n", slice.gemm.n},
                {"k", slice.gemm.k}};
    try {
      const double ms = time_product(ctx_, parts, slice, operands_, budget_ms);
      const auto bytes = static_cast<double>(slice.a_bytes + slice.b_bytes + slice.c_bytes);
      row["ms"] = ms;
      row["operations_per_second"] = operations_of(parts, slice.gemm) / (ms * 1e-3);
      row["bytes_per_second"] = bytes / (ms * 1e-3);
      plan.run(ctx_, operands_);
      row["error"] = check_.error(*ctx_.stream, result());
    } catch (const Error& error) {
      row["failure"] = error.what();
    }
    return row;
  }

 private:
  static constexpr int samples = 1000;

  Tensor& result() {
    using enum ConvOperand;
    return tensor_of(operands_, pass_ == ConvPass::forward ? y : pass_ == ConvPass::backward_input ? x : w);
  }

  Context& ctx_;
  ConvProblem problem_;
  ConvPass pass_;
  ConvOperands operands_;
  ConvCheck check_;
};

void add_product(TextTable& table, const Json& row) {
  std::vector<std::string> cells{
      row["pass"], row["engine"], row["grid"],
      fmt::format("{} bins of {}{} x {} x {}", row["bins"].get<std::int64_t>(),
                  row["groups"] == 1 ? "" : fmt::format("{} times ", row["groups"].get<std::int64_t>()),
                  row["m"].get<std::int64_t>(), row["n"].get<std::int64_t>(), row["k"].get<std::int64_t>()),
      row["product"]};
  if (row.contains("failure")) {
    const std::string why = row["failure"];
    cells.push_back("failed: " + why.substr(0, why.find('\n')));
  } else {
    cells.push_back(fmt::format("{:.4f}", row["ms"].get<double>()));
    cells.push_back(fmt::format("{:.3g}", row["operations_per_second"].get<double>() * 1e-12));
    cells.push_back(fmt::format("{:.3g}", row["bytes_per_second"].get<double>() * 1e-12));
    cells.push_back(fmt::format("{:.1e}", row["error"].get<double>()));
  }
  cells.resize(9);
  table.add(cells);
}

}  // namespace

BenchResult bench_products(const BenchRequest& request) {
  LayerBench bench(request.options);
  if (bench.spectral().empty())
    throw Error(ErrorKind::config, "none of these engines computes FFT convolutions, whose products are measured");
  BenchResult result;
  for (const BenchLayer& layer : chosen_layers(request, fbfft_layers())) {
    const ConvProblem problem = bench.problem_of(layer);
    TextTable table({"pass", "engine", "grid", "m x n x k", "product", "ms", "TFLOP/s", "TB/s", "error"});
    for (const ConvPass pass : bench.passes_of(layer)) {
      PassProducts products(bench.context(), problem, pass);
      for (const SpectralEngine* engine : bench.spectral())
        for (const ProductPlan& plan : plans_on_one_grid(*engine, problem, pass)) {
          Json row = {{"layer", layer.name}, {"problem", to_string(problem)}};
          row.update(products.measure(*plan, request.options.budget_ms));
          add_product(table, row);
          result.rows.push_back(row);
        }
    }
    bench.renew();
    if (request.print) fmt::print("{}  {}\n{}\n", layer.name, to_string(problem), table.text());
    std::fflush(stdout);
  }
  if (request.print)
    fmt::print(
        "Products of spectra alone, again and again on the same ones; the error is of the convolution around them.\n"
        "TFLOP/s: eight operations a complex multiply-add, two a real one. TB/s: both factors read and the result "
        "written, each once.\n");
  return result;
}

}  // namespace twiddle
