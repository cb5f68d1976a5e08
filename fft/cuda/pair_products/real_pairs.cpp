#include "fft/cuda/pair_products/real_pairs.h"

#include <algorithm>

#include "fft/cuda/pair_products/tuned_on_h100.h"
#include "fft/pair_product.h"

namespace twiddle {

namespace {

// The most consecutively added terms: the error of a sum of 8,192, 3e-7, would be 1.5e-6 after F(4x4).
constexpr std::int64_t longest_sum = 2048;

PairProduct product_of(const FrequencyGemm& gemm, const float* a, const float* b, float* c) {
  PairProduct product = pair_product_of(
      {.transpose_a = gemm.transpose_a, .transpose_b = gemm.transpose_b, .m = gemm.m, .n = gemm.n, .k = gemm.k}, a, b,
      c);
  product.balance = !gemm.transpose_a;  // for transpose_a the sum is over tiles of images
  product.add = gemm.accumulate;
  product.longest_sum = longest_sum;
  product.batch = gemm.bins;
  return product;
}

class RealPairs final : public FrequencyProduct {
 public:
  RealPairs(Device device, TensorCores cores) : device_(device), cores_(cores) {}
  std::string_view name() const override { return cores_ == TensorCores::wgmma ? "pairs" : "pairs_mma"; }
  SpectrumStorage storage() const override { return SpectrumStorage::real; }
  bool supports(const FrequencyGemm& gemm) const override {
    return gemm.groups == 1 && std::min({gemm.m, gemm.n, gemm.k}) >= pairs::least_side &&
           gemm.bins * gemm.m * gemm.n * gemm.k >= pairs::least_multiplications;
  }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    return scratch_of_pair_product(device_, cores_, product_of(gemm, nullptr, nullptr, nullptr));
  }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const PairProduct product =
        product_of(gemm, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c));
    run_pair_product(*ctx.stream, cores_, product, scratch);
  }

 private:
  Device device_;
  TensorCores cores_;
};

}  // namespace

std::vector<std::unique_ptr<FrequencyProduct>> make_real_pair_products(Device device) {
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  for (const TensorCores cores : tensor_cores(device)) products.push_back(std::make_unique<RealPairs>(device, cores));
  return products;
}

}  // namespace twiddle
