#include "layers/conv/engines/engines.h"

#include <limits>
#include <utility>

#include "fft/native_product.h"
#include "fft/pair_product.h"
#include "framework/context.h"
#include "framework/tensor_ops.h"
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

// The same for 16-bit matrices, which are not split, without pointers.
NativeProduct native_product_of(const ConvProblem& p, ConvPass pass) {
  NativeProduct product{.type = storage_of(p.precision)};
  if (is_linear(p)) {
    const Gemm gemm = linear_product(p, pass);
    product.m = gemm.m, product.n = gemm.n, product.k = gemm.k;
    product.a_along_k = !gemm.transpose_a, product.b_along_k = gemm.transpose_b;
    return product;
  }
  const std::int64_t places = std::int64_t(p.height) * p.width;
  const bool forward = pass == ConvPass::forward;
  product.matrices = p.batch;
  if (pass == ConvPass::backward_weight) {
    product.m = p.filters, product.n = p.channels, product.k = places;
    product.sums_matrices = true;
  } else {
    product.m = forward ? p.filters : p.channels, product.n = places, product.k = forward ? p.channels : p.filters;
    product.a_along_k = forward, product.b_along_k = false, product.one_a = true, product.bias_of_rows = true;
  }
  return product;
}

// A and B of that product.
std::pair<const Tensor*, const Tensor*> native_factors(const ConvProblem& p, ConvPass pass, const ConvOperands& of) {
  if (pass == ConvPass::backward_weight) return {&of.y, &of.x};
  const Tensor* const data = pass == ConvPass::forward ? &of.x : &of.y;
  return is_linear(p) ? std::pair(data, &of.w) : std::pair(&of.w, data);
}

void run_native(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  NativeProduct product = native_product_of(problem, pass);
  const auto [left, right] = native_factors(problem, pass, operands);
  // The gradient of a network's output is f32.
  const Tensor a = cast(stream, *left, product.type), b = cast(stream, *right, product.type);
  Tensor& result = result_of(pass, operands);
  product.a = elements_of(a), product.b = elements_of(b);
  product.c = write_elements_of(result), product.type_of_c = result.type();
  if (pass == ConvPass::forward) {
    product.bias = read_if_defined(operands.bias);
    product.relu = operands.relu;
  }
  const std::size_t bytes = scratch_bytes(stream.device(), product);
  const std::shared_ptr<void> scratch = bytes > 0 ? stream.allocate(bytes) : nullptr;
  multiply_native(stream, product, scratch.get());
}

class PairsEngine final : public ConvEngine {
 public:
  explicit PairsEngine(Device device) : device_(device), cores_(tensor_cores(device)) {}
  std::string_view name() const override { return "pairs"; }

  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    const std::int64_t columns = std::int64_t(problem.batch) * problem.height * problem.width;
    ConvPlans found;
    if (!is_product(problem) || problem.groups > 1 || columns > std::numeric_limits<int>::max()) return found;
    if (takes_16_bits(problem, pass)) {
      found.push_back(plan_of(
          {.engine = "pairs",
           .name = "wgmma",
           .scratch_bytes = scratch_bytes(device_, native_product_of(problem, pass))},
          [problem, pass](Context& ctx, ConvOperands& operands) { run_native(*ctx.stream, problem, pass, operands); }));
      return found;
    }
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
    return p.channels >= 64 && p.filters >= 64 && p.flops() > 5e8 && p.precision != Precision::tf32;
  }

  bool takes_16_bits(const ConvProblem& problem, ConvPass pass) const override {
    return storage_of(problem.precision) != DType::f32 && is_product(problem) && problem.groups == 1 &&
           can_multiply_native(device_, native_product_of(problem, pass));
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
