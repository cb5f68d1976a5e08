#include "layers/linear.h"

#include "fft/pair_product.h"
#include "framework/for_each.h"
#include "framework/tensor_ops.h"
#include "layers/conv/tuner.h"

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

// Of smaller matrices, and of short sums, cuBLAS is as fast.
constexpr std::int64_t least_side = 64, least_sum = 256, least_work = std::int64_t(1) << 26;
bool by_tensor_cores(const Gemm& g) {
  return !g.tf32 && g.m >= least_side && g.n >= least_side && g.k >= least_sum && g.m * g.n * g.k >= least_work;
}

// c = op(a) op(b), by tensor cores in the fp32 class where the device has such and it pays.
void multiply(Stream& stream, const Gemm& g, const float* a, const float* b, float* c) {
  const std::vector<TensorCores> cores =
      by_tensor_cores(g) ? tensor_cores(stream.device()) : std::vector<TensorCores>{};
  if (cores.empty()) return stream.gemm(g, a, b, c);
  run_pair_product(stream, cores.front(),
                   {.m = g.m,
                    .n = g.n,
                    .k = g.k,
                    .a = plain_matrix(a, g.transpose_a ? g.m : g.k),
                    .b = plain_matrix(b, g.transpose_b ? g.k : g.n),
                    .a_along_k = !g.transpose_a,
                    .b_along_k = g.transpose_b,
                    .c = plain_matrix(c, g.n)});
}

}  // namespace

Linear::Linear(const Site& site, Params& params)
    : Layer(site.name, {}),
      inputs_(count_of(site.input)),
      outputs_(params.integer("outputs", std::nullopt, 1, 1 << 24)),
      tf32_(site.convolutions.policy().precision == Precision::tf32) {
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

Variable Linear::forward(Context& ctx, const Variable& x) {
  Stream& stream = *ctx.stream;
  const std::int64_t batch = x.value().dim(0), inputs = inputs_, outputs = outputs_;
  const bool tf32 = tf32_;
  const Tensor value = x.value();
  const Variable weight = weight_->variable, bias = bias_ != nullptr ? bias_->variable : Variable();

  Tensor y(stream, {batch, outputs});
  const bool start_from_bias = bias_ != nullptr && !on_gpu(stream);
  if (start_from_bias) for_each_index(stream, batch, FillRows{outputs, bias.value().read(), y.write()}, outputs);
  multiply(
      stream,
      {.transpose_b = true, .m = batch, .n = outputs, .k = inputs, .beta = start_from_bias ? 1.0f : 0.0f, .tf32 = tf32},
      value.read(), weight.value().read(), y.write());
  if (bias_ != nullptr && !start_from_bias) add_bias(stream, bias.value(), 1, y);

  return ctx.tape.record(
      name(), y, {x, weight, bias},
      [x, value, weight, bias, batch, inputs, outputs, tf32](Context& backward_ctx, const Tensor& grad_y) {
        Stream& back = *backward_ctx.stream;
        if (bias.needs_grad()) bias.add_grad(backward_ctx, sum_over_channels(back, grad_y, outputs, 1));
        if (weight.needs_grad()) {
          Tensor grad_weight(back, {outputs, inputs});
          multiply(back, {.transpose_a = true, .m = outputs, .n = inputs, .k = batch, .tf32 = tf32}, grad_y.read(),
                   value.read(), grad_weight.write());
          weight.add_grad(backward_ctx, grad_weight);
        }
        if (x.needs_grad()) {
          Tensor grad_x(back, value.shape());
          multiply(back, {.m = batch, .n = inputs, .k = outputs, .tf32 = tf32}, grad_y.read(), weight.value().read(),
                   grad_x.write());
          x.add_grad(backward_ctx, grad_x);
        }
      });
}

}  // namespace twiddle
