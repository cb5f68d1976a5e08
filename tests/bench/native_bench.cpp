// Products of 16-bit matrices: our kernel and cuBLAS, by shape. Prints a Markdown table. usage: twiddle_native_bench
// The shapes are the passes of linear and 1x1 layers of the shipped networks at their batch sizes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "fft/cuda/products/blas.h"
#include "fft/native_product.h"
#include "framework/context.h"
#include "framework/tensor_ops.h"
#include "layers/conv/tuner/timing.h"
#include "tests/support/noise.h"

using namespace twiddle;

namespace {

struct Shaped {
  std::string name;
  NativeProduct product;
};

std::vector<Shaped> linear_layer(const std::string& name, std::int64_t batch, std::int64_t inputs,
                                 std::int64_t outputs) {
  return {{name + " forward", {.m = batch, .n = outputs, .k = inputs}},
          {name + " backward_input", {.m = batch, .n = inputs, .k = outputs, .b_along_k = false}},
          {name + " backward_weight",
           {.m = outputs, .n = inputs, .k = batch, .a_along_k = false, .b_along_k = false, .type_of_c = DType::f32}}};
}

std::vector<Shaped> layer_1x1(const std::string& name, std::int64_t images, std::int64_t channels, std::int64_t filters,
                              std::int64_t places) {
  return {
      {name + " forward",
       {.m = filters, .n = places, .k = channels, .b_along_k = false, .matrices = images, .one_a = true}},
      {name + " backward_input",
       {.m = channels,
        .n = places,
        .k = filters,
        .a_along_k = false,
        .b_along_k = false,
        .matrices = images,
        .one_a = true}},
      {name + " backward_weight",
       {.m = filters, .n = channels, .k = places, .matrices = images, .sums_matrices = true, .type_of_c = DType::f32}}};
}

// cuBLAS has columns where we have rows: it computes the transposed product. A sum over matrices is a product of each,
// added one after another by beta = 1.
void multiply_by_cublas(cublasHandle_t handle, const NativeProduct& p) {
  const auto side = [](std::int64_t count) { return static_cast<int>(count); };
  const cudaDataType type = p.type == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
  const cudaDataType of_c = p.type_of_c == DType::f32 ? CUDA_R_32F : type;
  const float one = 1, zero = 0;
  const auto transposed = [](bool is) { return is ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const int width_of_a = side(p.a_along_k ? p.k : p.m), width_of_b = side(p.b_along_k ? p.k : p.n);
  const std::int64_t apart_a = p.one_a ? 0 : p.m * p.k, apart_b = p.one_b ? 0 : p.n * p.k;
  if (!p.sums_matrices) {
    check(cublasGemmStridedBatchedEx(handle, transposed(p.b_along_k), transposed(!p.a_along_k), side(p.n), side(p.m),
                                     side(p.k), &one, p.b, type, width_of_b, apart_b, p.a, type, width_of_a, apart_a,
                                     &zero, p.c, of_c, side(p.n), p.m * p.n, side(p.matrices), CUBLAS_COMPUTE_32F,
                                     CUBLAS_GEMM_DEFAULT));
    return;
  }
  for (std::int64_t i = 0; i < p.matrices; ++i)
    check(cublasGemmEx(handle, transposed(p.b_along_k), transposed(!p.a_along_k), side(p.n), side(p.m), side(p.k), &one,
                       static_cast<const Bf16*>(p.b) + i * apart_b, type, width_of_b,
                       static_cast<const Bf16*>(p.a) + i * apart_a, type, width_of_a, i == 0 ? &zero : &one, p.c, of_c,
                       side(p.n), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

void time_product(Context& ctx, Shaped shaped) {
  Stream& stream = *ctx.stream;
  NativeProduct& p = shaped.product;
  const auto factor = [&](std::int64_t lines, bool one) {
    const std::int64_t count = (one ? 1 : p.matrices) * lines * p.k;
    return cast(stream, Tensor::from(stream, {count}, noise(count)), p.type);  // random: constant data needs less power
  };
  const Tensor a = factor(p.m, p.one_a), b = factor(p.n, p.one_b);
  Tensor c(stream, {(p.sums_matrices ? 1 : p.matrices) * p.m * p.n}, p.type_of_c);
  Tensor workspace(stream, {static_cast<std::int64_t>(most_blas_workspace) / 4});
  p.a = a.read<Bf16>(), p.b = b.read<Bf16>();
  with_type(p.type_of_c, [&](auto type) { p.c = c.write<decltype(type)>(); });
  Blas blas;
  const cublasHandle_t handle = blas.on(stream, workspace.write(), most_blas_workspace);
  const double by_cublas = time_calls(stream, 50, [&] { multiply_by_cublas(handle, p); });
  double ours = 0;
  if (can_multiply_native(stream.device(), p)) {
    Tensor scratch(stream, {static_cast<std::int64_t>(scratch_bytes(stream.device(), p) / 4 + 1)});
    ours = time_calls(stream, 50, [&] { multiply_native(stream, p, scratch.write()); });
  }
  const double flops = 2e-9 * static_cast<double>(p.m * p.n * p.k * p.matrices);  // in a millisecond: TFLOP/s
  const double bytes = static_cast<double>(a.bytes() + b.bytes() + c.bytes());
  std::printf("| %s | %.4f | %.4f | %.2f | %.0f | %.2f |\n", shaped.name.c_str(), ours, by_cublas,
              ours > 0 ? by_cublas / ours : 0, ours > 0 ? flops / ours : 0, bytes * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main() {
  Context ctx(Device{Device::Kind::cuda, 0});
  std::printf(
      "| product | ours, ms | cuBLAS, ms | cuBLAS / ours | ours, TFLOP/s | GB |\n| --- | ---: | ---: | ---: | ---: | "
      "---: |\n");
  const auto run = [&ctx](const std::vector<Shaped>& all) {
    for (const Shaped& each : all) time_product(ctx, each);
  };
  run({{"8192 x 8192 x 8192", {.m = 8192, .n = 8192, .k = 8192}}});
  run(linear_layer("alexnet fc6", 128, 9216, 4096));
  run(linear_layer("alexnet fc7", 128, 4096, 4096));
  run(linear_layer("vgg_e fc6", 64, 25088, 4096));
  run(layer_1x1("resnet50 64 to 256, 56x56", 64, 64, 256, 56 * 56));
  run(layer_1x1("resnet50 256 to 64, 56x56", 64, 256, 64, 56 * 56));
  run(layer_1x1("resnet50 512 to 128, 28x28", 64, 512, 128, 28 * 28));
  run(layer_1x1("resnet50 1024 to 256, 14x14", 64, 1024, 256, 14 * 14));
  run(layer_1x1("convnext_t 96 to 384, 56x56", 64, 96, 384, 56 * 56));
  run(layer_1x1("convnext_t 768 to 192, 28x28", 64, 768, 192, 28 * 28));
  run(layer_1x1("replknet31b 128 to 512, 56x56", 64, 128, 512, 56 * 56));
  run(layer_1x1("replknet31b 1024 to 256, 28x28", 64, 1024, 256, 28 * 28));
}
