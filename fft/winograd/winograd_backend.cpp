#include <algorithm>

#include "fft/cuda/products/real_products.h"
#include "fft/spectral_engine.h"
#include "fft/winograd/winograd_transform.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

// F(4x4) multiplies an error of the product by 4.8, so that sums must be short: in one register over a thousand
// channels it would miss 2e-6 (2.2e-6 by oneDNN).
constexpr std::int64_t longest_sum = 128;

struct Add {
  const float* summand;
  float* sum;
  TWIDDLE_HD void operator()(std::int64_t i) const { sum[i] += summand[i]; }
};

// On a CPU, one matrix product after the other by the stream's GEMM.
class GemmProduct final : public FrequencyProduct {
 public:
  std::string_view name() const override { return "gemm"; }
  SpectrumStorage storage() const override { return SpectrumStorage::real; }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    return adds_apart(gemm) ? static_cast<std::size_t>(gemm.m * gemm.n) * sizeof(float) : 0;
  }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const auto* a_bin = static_cast<const float*>(a);
    const auto* b_bin = static_cast<const float*>(b);
    auto* c_bin = static_cast<float*>(c);
    for (std::int64_t bin = 0; bin < gemm.bins; ++bin) {
      multiply(*ctx.stream, gemm, a_bin, b_bin, c_bin, static_cast<float*>(scratch));
      a_bin += gemm.m * gemm.k, b_bin += gemm.k * gemm.n, c_bin += gemm.m * gemm.n;
    }
  }

 private:
  // A product with a vector adds to C term by term, whatever the length of a part: parts go to the scratch first.
  static bool adds_apart(const FrequencyGemm& gemm) {
    return (gemm.m == 1 || gemm.n == 1) && (gemm.k > longest_sum || gemm.accumulate);
  }
  static void multiply(Stream& stream, const FrequencyGemm& gemm, const float* a, const float* b, float* c,
                       float* scratch) {
    const std::int64_t parts = (gemm.k + longest_sum - 1) / longest_sum, part = (gemm.k + parts - 1) / parts;
    Gemm shape{.transpose_a = gemm.transpose_a, .transpose_b = gemm.transpose_b, .m = gemm.m, .n = gemm.n};
    shape.lda = gemm.transpose_a ? gemm.m : gemm.k, shape.ldb = gemm.transpose_b ? gemm.k : gemm.n;
    for (std::int64_t k = 0; k < gemm.k; k += part) {
      const bool adds = gemm.accumulate || k > 0, apart = adds && adds_apart(gemm);
      shape.k = std::min(part, gemm.k - k);
      shape.beta = adds && !apart ? 1.0f : 0.0f;
      stream.gemm(shape, a + k * (gemm.transpose_a ? gemm.m : 1), b + k * (gemm.transpose_b ? 1 : gemm.n),
                  apart ? scratch : c);
      if (apart) for_each_index(stream, gemm.m * gemm.n, Add{scratch, c});
    }
  }
};

}  // namespace

SpectralBackend winograd(Device device) {
  SpectralBackend backend;
  backend.engine = "winograd";
  backend.transforms.push_back(std::make_unique<WinogradTransform<4>>());
  backend.transforms.push_back(std::make_unique<WinogradTransform<2>>());
  if (device.kind == Device::Kind::cpu)
    backend.products.push_back(std::make_unique<GemmProduct>());
  else
    backend.products = make_real_products();
  backend.pays = [](const ConvProblem&) { return false; };
  return backend;
}

}  // namespace twiddle
