#include "layers/conv/engines/engines.h"

#include <limits>

#include "fft/pair_product.h"
#include "framework/context.h"
#include "framework/error.h"

namespace twiddle {

namespace {

// With P places a plane, w is [filters][channels] and the planes of an image are a matrix [channels][P] or
// [filters][P].
bool is_product(const ConvProblem& p) {
  const bool is_one = p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1;
  return is_one && p.pad_h == 0 && p.pad_w == 0 && p.groups == 1;
}

template <class Number>
StridedMatrix<Number> planes(Number* values, std::int64_t places, std::int64_t channels) {
  return {values, places, places, channels * places};
}

struct Operands {
  const float *x = nullptr, *w = nullptr, *y = nullptr;
  float* result = nullptr;
};

PairProduct product_of(const ConvProblem& p, ConvPass pass, const Operands& at) {
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

class PairsPlan final : public ConvPlan {
 public:
  PairsPlan(Facts facts, const ConvProblem& problem, ConvPass pass, TensorCores cores)
      : ConvPlan(std::move(facts)), problem_(problem), pass_(pass), cores_(cores) {}

  void run(Context& ctx, ConvOperands& operands) const override {
    Operands at;
    if (pass_ != ConvPass::backward_input) at.x = operands.x.read();
    if (pass_ != ConvPass::backward_weight) at.w = operands.w.read();
    if (pass_ != ConvPass::forward) at.y = operands.y.read();
    at.result = result(operands).write();
    PairProduct product = product_of(problem_, pass_, at);
    if (pass_ == ConvPass::forward) {
      product.bias = operands.bias.defined() ? operands.bias.read() : nullptr;
      product.relu = operands.relu;
    }
    run_pair_product(*ctx.stream, cores_, product);
  }

 private:
  Tensor& result(ConvOperands& operands) const {
    return pass_ == ConvPass::forward ? operands.y : pass_ == ConvPass::backward_input ? operands.x : operands.w;
  }

  ConvProblem problem_;
  ConvPass pass_;
  TensorCores cores_;
};

class PairsEngine final : public ConvEngine {
 public:
  explicit PairsEngine(Device device) : device_(device), cores_(tensor_cores(device)) {}
  std::string_view name() const override { return "pairs"; }

  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    const std::int64_t columns = std::int64_t(problem.batch) * problem.height * problem.width;
    ConvPlans found;
    if (!is_product(problem) || columns > std::numeric_limits<int>::max()) return found;
    for (const TensorCores cores : cores_) {
      if (found.size() == most) break;
      ConvPlan::Facts facts{"pairs", cores == TensorCores::wgmma ? "wgmma" : "mma"};
      facts.scratch_bytes = scratch_of_pair_product(device_, cores, product_of(problem, pass, {}));
      found.push_back(std::make_shared<PairsPlan>(std::move(facts), problem, pass, cores));
    }
    return found;
  }

  // Of thin matrices most of a tile would be zeros, and of small ones launches take longer than products.
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
