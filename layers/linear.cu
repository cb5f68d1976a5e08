#include "layers/linear.h"

#include <algorithm>
#include <optional>

#include "fft/pair_product.h"
#include "framework/config/params.h"
#include "framework/for_each.h"
#include "framework/tensor_ops.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/elementwise.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

// On the CPU every row starts as the bias and the product is added to it, which saves a pass over y; on a GPU cuBLAS is
// twice as fast where it need not read y, and adding the bias costs little.
struct FillRows {
  std::int64_t outputs;
  const float* bias;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    for (std::int64_t i = 0; i < outputs; ++i) y[row * outputs + i] = bias[i];
  }
};

struct RowBiasAndRelu {  // y as rows of outputs
  const float* bias;     // null: none
  bool relu;
  struct Row {
    const float* bias;
    bool relu;
    TWIDDLE_HD float operator()(std::int64_t output, float y) const {
      const float sum = bias != nullptr ? y + bias[output] : y;
      return relu && sum < 0 ? 0 : sum;
    }
  };
  TWIDDLE_HD Row row(std::int64_t) const { return {bias, relu}; }
};

// cuBLAS is as fast for smaller matrices and for short sums. With wgmma and two long sides, the sum limit is lower.
constexpr std::int64_t least_side = 64, least_sum = 128, least_work = std::int64_t(1) << 26;
constexpr std::int64_t long_side = 1000, least_sum_of_long_sides = 64;
std::optional<TensorCores> cores_for(const Device& device, const Gemm& g) {
  const std::int64_t side = std::min(g.m, g.n);
  if (g.tf32 || side < least_side || g.k < least_sum_of_long_sides || g.m * g.n * g.k < least_work) return {};
  const std::vector<TensorCores> cores = tensor_cores(device);
  if (cores.empty()) return {};
  const bool short_sum_pays = cores.front() == TensorCores::wgmma && side >= long_side;
  return g.k >= least_sum || short_sum_pays ? std::optional(cores.front()) : std::nullopt;
}

// c = op(a) op(b), by tensor cores within the fp32 error limit if the device has them and it pays.
void multiply(Stream& stream, const Gemm& g, const float* a, const float* b, float* c) {
  if (const auto cores = cores_for(stream.device(), g))
    run_pair_product(stream, *cores, pair_product_of(g, a, b, c));
  else
    stream.gemm(g, a, b, c);
}

// y = op(a) op(b) + bias, and max(y, 0).
void multiply(Stream& stream, Gemm g, const float* a, const float* b, const RowBiasAndRelu& then, Tensor& y) {
  if (const auto cores = cores_for(stream.device(), g)) {
    PairProduct product = pair_product_of(g, a, b, y.write());
    product.bias = then.bias, product.bias_of_columns = !product.transpose_c, product.relu = then.relu;
    return run_pair_product(stream, *cores, product);
  }
  const bool start_from_bias = then.bias != nullptr && !on_gpu(stream);
  if (start_from_bias) for_each_index(stream, g.m, FillRows{g.n, then.bias, y.write()}, g.n);
  g.beta = start_from_bias ? 1.0f : 0.0f;
  stream.gemm(g, a, b, y.write());
  const RowBiasAndRelu left{start_from_bias ? nullptr : then.bias, then.relu};
  if (left.bias != nullptr || left.relu) map_rows(stream, g.m, g.n, left, 1, y.write(), y.read());
}

}  // namespace

Linear::Linear(const Site& site, Params& params)
    : Layer(site.name, {}),
      inputs_(count_of(site.input)),
      outputs_(params.integer("outputs", std::nullopt, 1, 1 << 24)),
      tf32_(site.convolutions.policy().precision == Precision::tf32),
      input_gradient_(site.input_gradient) {
  Parameter weight;
  weight.name = "weight";
  weight.shape = {outputs_, inputs_};
  weight.initializer = read_initializer(params, "init", {Initializer::Kind::he, 0});
  weight.fan_in = inputs_;
  weight.fan_out = outputs_;
  weight.learning_rate = static_cast<float>(params.number("lr", 1, 0, 1e6));

  const bool with_bias = params.flag("bias", true);
  Parameter bias;
  bias.name = "bias";
  bias.shape = {outputs_};
  bias.initializer = read_initializer(params, "bias_init", {Initializer::Kind::constant, 0});
  bias.fan_in = inputs_;
  bias.fan_out = outputs_;
  bias.weight_decay = false;
  bias.learning_rate = static_cast<float>(params.number("bias_lr", 1, 0, 1e6));

  const bool told = params.has("inputs");  // else it follows from the layers before, whatever becomes of them
  const std::int64_t expected = told ? params.integer("inputs", inputs_, 1, std::int64_t(1) << 40) : inputs_;
  if (expected != inputs_)
    throw Error(ErrorKind::config,
                join("linear expects ", expected, " inputs, gets ", inputs_, " (", to_string(site.input),
                     "); change the shapes before it, or drop 'inputs' to let it be inferred"));
  set_output_shape({outputs_});
  weight_ = &add_parameter(std::move(weight));
  if (with_bias) bias_ = &add_parameter(std::move(bias));
}

std::string Linear::describe() const {
  return join(inputs_, " to ", outputs_, bias_ != nullptr ? "" : ", no bias");
}

Gemm Linear::product(ConvPass pass, std::int64_t batch) const {
  switch (pass) {
    case ConvPass::forward:
      return {.transpose_b = true, .m = batch, .n = outputs_, .k = inputs_, .tf32 = tf32_};
    case ConvPass::backward_input:
      return {.m = batch, .n = inputs_, .k = outputs_, .tf32 = tf32_};
    default:
      return {.transpose_a = true, .m = outputs_, .n = inputs_, .k = batch, .tf32 = tf32_};
  }
}

std::size_t Linear::scratch_bytes(const Device& device, std::int64_t batch) const {
  std::size_t most = 0;
  for (const ConvPass pass : every_pass) {
    if (pass == ConvPass::backward_input && !input_gradient_) continue;
    const Gemm g = product(pass, batch);
    if (const auto cores = cores_for(device, g))
      most = std::max(most, scratch_of_pair_product(device, *cores, pair_product_of(g, nullptr, nullptr, nullptr)));
  }
  return most;
}

Variable Linear::forward(Context& ctx, const Variable& x) {
  Stream& stream = *ctx.stream;
  const Tensor value = x.value();
  const Variable bias = bias_ != nullptr ? bias_->variable : Variable();
  Tensor y(stream, {value.dim(0), outputs_});
  multiply(stream, product(ConvPass::forward, value.dim(0)), value.read(), weight_->variable.value().read(),
           {bias_ != nullptr ? bias.value().read() : nullptr, relu_}, y);
  const Tensor output = relu_ ? y : Tensor();
  return ctx.tape.record(name(), y, {x, weight_->variable, bias},
                         [this, x, value, output](Context& backward_ctx, const Tensor& grad_y) {
                           backward(backward_ctx, x, value, output, grad_y);
                         });
}

void Linear::backward(Context& ctx, const Variable& x, const Tensor& value, const Tensor& output, Tensor grad_y) const {
  Stream& stream = *ctx.stream;
  const std::int64_t batch = value.dim(0);
  if (relu_) grad_y = map_tensors(stream, ReluBackward{}, 1, output, grad_y);
  if (bias_ != nullptr && bias_->variable.needs_grad())
    bias_->variable.add_grad(ctx, sum_over_channels(stream, grad_y, outputs_, 1));
  const Variable& weight = weight_->variable;
  if (weight.needs_grad()) {
    Tensor grad_weight = weight.new_grad(stream);
    multiply(stream, product(ConvPass::backward_weight, batch), grad_y.read(), value.read(), grad_weight.write());
    weight.add_grad(ctx, grad_weight);
  }
  if (x.needs_grad()) {
    Tensor grad_x(stream, value.shape());
    multiply(stream, product(ConvPass::backward_input, batch), grad_y.read(), weight.value().read(), grad_x.write());
    x.add_grad(ctx, grad_x);
  }
}

}  // namespace twiddle
