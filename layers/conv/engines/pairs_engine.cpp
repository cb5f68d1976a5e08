#include "layers/conv/engines/engines.h"

#include <limits>

#include "fft/pair_product.h"
#include "framework/context.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

// With P places a plane, w is [filters][channels] and the planes of an image are a matrix [channels][P] or
// [filters][P].
template <class Number>
StridedMatrix<Number> planes(Number* values, std::int64_t places, std::int64_t channels) {
  return {values, places, places, channels * places};
}

PairProduct product_of(const ConvProblem& p, ConvPass pass, const PassArrays& at) {
  if (is_linear(p)) {
    const auto [a, b] = linear_factors(pass, at);
    return pair_product_of(linear_product(p, pass), a, b, at.result);
  }
  const std::int64_t places = std::int64_t(p.height) * p.width, columns = p.batch * places;
  const auto x = planes(at.x, places, p.channels), y = planes(at.y, places, p.filters);
  if (pass == ConvPass::backward_weight) {
    const bool fewer_filters = p.filters <= p.channels;
    return {.m = fewer_filters ? p.filters : p.channels,
            .n = fewer_filters ? p.channels : p.filters,
            .k = columns,
            .a = fewer_filters ? y : x,
            .b = fewer_filters ? x : y,
            .balance = false,  // what is summed over are the places of images
            .c = plain_matrix(at.result, p.channels),
            .transpose_c = !fewer_filters};
  }
  const bool forward = pass == ConvPass::forward;  // else with w transposed
  const int m = forward ? p.filters : p.channels;
  return {.m = m,
          .n = columns,
          .k = forward ? p.channels : p.filters,
          .a = plain_matrix(at.w, p.channels),
          .b = forward ? x : y,
          .a_along_k = forward,
          .b_along_k = false,
          .c = planes(at.result, places, m)};
}

void run_pairs(Stream& stream, TensorCores cores, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  PairProduct product = product_of(problem, pass, arrays_of(pass, operands));
  if (pass == ConvPass::forward) {
    product.bias = read_if_defined(operands.bias);
    product.bias_of_columns = is_linear(problem) && !product.transpose_c;
    product.relu = operands.relu;
  }
  run_pair_product(stream, cores, product);
}

class PairsEngine final : public ConvEngine {
 public:
  explicit PairsEngine(Device device) : device_(device), cores_(tensor_cores(device)) {}
  std::string_view name() const override { return "pairs"; }

  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    const std::int64_t columns = std::int64_t(problem.batch) * problem.height * problem.width;
    ConvPlans found;
    if (!is_product(problem) || problem.groups > 1 || columns > std::numeric_limits<int>::max()) return found;
    for (const TensorCores cores : cores_) {
      if (found.size() == most) break;
      found.push_back(plan_of({.engine = "pairs",
                               .name = cores == TensorCores::wgmma ? "wgmma" : "mma",
                               .scratch_bytes = scratch_of_pair_product(device_, cores, product_of(problem, pass, {}))},
                              [problem, pass, cores](Context& ctx, ConvOperands& operands) {
                                run_pairs(*ctx.stream, cores, problem, pass, operands);
                              }));
    }
    return found;
  }

  // For thin matrices most of a tile would be zeros; for small ones launches take longer than products.
  bool pays(const ConvProblem& p) const override {
    return p.channels >= 64 && p.filters >= 64 && p.flops() > 5e8 && p.precision == Precision::fp32;
  }

 private:
  Device device_;
  std::vector<TensorCores> cores_;
};

}  // namespace

std::unique_ptr<ConvEngine> make_pairs_engine(Device device) {
  if (tensor_cores(device).empty()) return nullptr;
  return std::make_unique<PairsEngine>(device);
}

}  // namespace twiddle
