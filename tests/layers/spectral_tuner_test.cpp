#include "layers/conv/spectral_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "framework/error.h"
#include "framework/interrupted.h"
#include "layers/conv/choice_cache.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/measure.h"
#include "layers/conv/measuring.h"
#include "tests/support/conv_problem.h"
#include "tests/support/plain_backend.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

constexpr std::size_t plenty = std::size_t(1) << 30;

// Fast, and wrong or without memory.
class PoorProduct final : public FrequencyProduct {
 public:
  explicit PoorProduct(bool throws) : throws_(throws) {}
  std::string_view name() const override { return "poor"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved_doubles; }
  std::size_t scratch_bytes(const FrequencyGemm&) const override { return 0; }
  void run(Context&, const FrequencyGemm& gemm, const void*, const void*, void* c, void*) override {
    if (throws_) throw Error(ErrorKind::device, "out of memory");
    std::fill_n(static_cast<double*>(c), 2 * gemm.bins * gemm.m * gemm.n, 0.0);
  }

 private:
  bool throws_;
};

// Has no memory for the gradient of x.
class NoInputGradientProduct final : public FrequencyProduct {
 public:
  std::string_view name() const override { return "no input gradient"; }
  SpectrumStorage storage() const override { return plain_->storage(); }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override { return plain_->scratch_bytes(gemm); }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    if (!gemm.transpose_a && !gemm.transpose_b) throw Error(ErrorKind::device, "out of memory");
    plain_->run(ctx, gemm, a, b, c, scratch);
  }

 private:
  std::unique_ptr<FrequencyProduct> plain_ = std::move(plain_backend({}).products.front());
};

// Another one, over and over.
class SlowProduct final : public FrequencyProduct {
 public:
  explicit SlowProduct(std::unique_ptr<FrequencyProduct> product) : product_(std::move(product)) {}
  std::string_view name() const override { return "slow"; }
  SpectrumStorage storage() const override { return product_->storage(); }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override { return product_->scratch_bytes(gemm); }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    for (int i = 0; i < 20; ++i) product_->run(ctx, gemm, a, b, c, scratch);
  }

 private:
  std::unique_ptr<FrequencyProduct> product_;
};

SpectralEngine engine_of(SpectralBackend backend, const std::shared_ptr<ChoiceCache>& cache) {
  return SpectralEngine(std::move(backend), std::make_shared<FrequencyBuffers>(plenty), plenty,
                        spectral_tuner(cache, plenty));
}

class SpectralTuner : public testing::Test {
 protected:
  SpectralBackend backend() const { return plain_backend({large, small}); }
  double error(SpectralEngine& engine, ConvPass pass) { return measure_tuned(ctx, engine, problem, pass, 0).error; }

  Context ctx;
  const ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  const FrequencyGrid small = whole_plane(problem, 7, 8), large = whole_plane(problem, 21, 24);
};

TEST_F(SpectralTuner, TakesTheFastestGridForAllPasses) {
  SpectralEngine engine = engine_of(backend(), nullptr);
  for (const ConvPass pass : every_pass) {
    EXPECT_LE(error(engine, pass), promise(Precision::fp32));
    EXPECT_EQ(engine.strategy(problem, pass).grid, small);  // of ninefold cost is the other
  }
}

TEST_F(SpectralTuner, TakesNoProductThatIsWrongOrFails) {
  for (const bool throws : {false, true}) {
    SpectralBackend with_poor = backend();
    with_poor.products.push_back(std::make_unique<PoorProduct>(throws));
    SpectralEngine engine = engine_of(std::move(with_poor), nullptr);
    for (const ConvPass pass : every_pass) {
      EXPECT_LE(error(engine, pass), promise(Precision::fp32));
      EXPECT_EQ(engine.strategy(problem, pass).product, 0u);
    }
  }
}

TEST_F(SpectralTuner, ReplacesAUsualProductThatIsWrong) {
  SpectralBackend with_poor = backend();
  with_poor.products.insert(with_poor.products.begin(), std::make_unique<PoorProduct>(false));
  SpectralEngine engine = engine_of(std::move(with_poor), nullptr);
  for (const ConvPass pass : every_pass) EXPECT_LE(error(engine, pass), promise(Precision::fp32));
}

TEST_F(SpectralTuner, TakesAFasterTransformOfAnotherStorage) {
  SpectralBackend two = plain_backend({small}, {SpectrumStorage::interleaved_doubles, SpectrumStorage::interleaved});
  two.products.front() = std::make_unique<SlowProduct>(std::move(two.products.front()));
  SpectralEngine engine = engine_of(std::move(two), nullptr);
  for (const ConvPass pass : every_pass) {
    EXPECT_LE(error(engine, pass), promise(Precision::fp32));
    EXPECT_EQ(engine.strategy(problem, pass), (SpectralStrategy{small, 1, 1}));
  }
}

TEST_F(SpectralTuner, LeavesTheFirstStrategyWhereNothingKeepsThePrecision) {
  SpectralBackend poor = backend();
  poor.products.clear();
  poor.products.push_back(std::make_unique<PoorProduct>(false));
  const std::string file = temp_path("tuner_poor.txt");
  SpectralEngine engine = engine_of(std::move(poor), std::make_shared<ChoiceCache>(file));
  EXPECT_GT(error(engine, ConvPass::forward), promise(Precision::fp32));
  EXPECT_EQ(engine.strategy(problem, ConvPass::forward).grid, large);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(SpectralTuner, RehearsesWhatTrainingHasUseForAlone) {
  for (const bool input_gradient : {true, false}) {
    ConvProblem layer = problem;
    layer.input_gradient = input_gradient;
    SpectralBackend poor = backend();
    poor.products.front() = std::make_unique<NoInputGradientProduct>();
    SpectralEngine engine = engine_of(std::move(poor), nullptr);
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_weight}) {
      EXPECT_LE(measure_tuned(ctx, engine, layer, pass, 0).error, promise(Precision::fp32));
      EXPECT_EQ(engine.strategy(layer, pass).grid, input_gradient ? large : small);  // large: the first, untuned
    }
  }
}

TEST_F(SpectralTuner, RemembersWhatItChose) {
  const std::string file = temp_path("tuner.txt");
  ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
  SpectralEngine first = engine_of(backend(), std::make_shared<ChoiceCache>(file));
  first.tune(ctx, problem);
  first.run(ctx, problem, ConvPass::forward, operands);
  EXPECT_GT(first.buffers().use().computed, 2);

  SpectralEngine again = engine_of(backend(), std::make_shared<ChoiceCache>(file));
  again.tune(ctx, problem);
  again.run(ctx, problem, ConvPass::forward, operands);
  EXPECT_EQ(again.buffers().use().computed, 2);  // nothing was rehearsed
  for (const ConvPass pass : every_pass) EXPECT_EQ(again.strategy(problem, pass), first.strategy(problem, pass));
}

TEST_F(SpectralTuner, StopsBetweenTwoLooks) {
  int looks = 0;
  SpectralEngine engine(
      backend(), std::make_shared<FrequencyBuffers>(plenty), plenty,
      spectral_tuner(nullptr, plenty, std::make_shared<Measuring>(nullptr, [&] { return ++looks > 1; })));
  EXPECT_THROW(engine.tune(ctx, problem), Interrupted);
  EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace twiddle
