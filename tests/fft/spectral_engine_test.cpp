#include "fft/spectral_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <utility>

#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"
#include "tests/support/limits.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

const std::vector<SpectrumStorage> two_storages{SpectrumStorage::interleaved_doubles, SpectrumStorage::interleaved};

SpectralEngine plain_engine(const std::vector<FrequencyGrid>& grids, std::size_t limit = plenty) {
  return {plain_backend(grids), std::make_shared<FrequencyBuffers>(limit), plenty};
}

double error_of(Context& ctx, const SpectralEngine& engine, const ConvProblem& problem, ConvPass pass) {
  return plan_error(ctx, *first_plan(engine, problem, pass), problem, pass);
}

int images_at_once(const SpectralEngine& engine, const ConvProblem& problem, ConvPass pass) {
  return dynamic_cast<const SpectralPlan&>(*first_plan(engine, problem, pass)).images_at_once();
}

std::vector<std::string> names(const ConvPlans& plans) {
  std::vector<std::string> all_names;
  for (const auto& plan : plans) all_names.push_back(plan->facts().name);
  return all_names;
}

TEST(SpectralEngine, MatchesReferenceOnPlanesAndTiles) {
  Context ctx;
  for (const ConvProblem& problem :
       conv_problems({"2x3x6x7 * 4x3x3x3 pad 1", "1x1x1x1 * 1x1x1x1", "3x2x5x4 * 3x2x5x4", "2x2x4x4 * 3x2x3x3 pad 4",
                      "2x4x6x5 * 6x2x2x3 pad 1x2 groups 2", "5x2x7x6 * 3x2x1x4 pad 0x3"})) {
    const int h = least_height(problem), w = least_width(problem);
    for (const FrequencyGrid& grid :
         {whole_plane(problem, h, w), whole_plane(problem, h + 3, w + 2),
          tiled(problem, problem.kernel_h + 1, problem.kernel_w + 2), tiled(problem, problem.kernel_h, w)})
      for (const ConvPass pass : every_pass) {
        SpectralEngine engine = plain_engine({grid});
        EXPECT_LE(error_of(ctx, engine, problem, pass), promise(Precision::fp32))
            << to_string(problem) << ", " << to_string(grid) << ", " << to_string(pass);
      }
  }
}

TEST(SpectralEngine, SlicesBatchToFitLimit) {
  Context ctx;
  const ConvProblem problem = conv_problem("7x4x6x6 * 4x2x3x3 pad 1 groups 2");
  const FrequencyGrid grid = whole_plane(problem, 7, 8);
  for (const ConvPass pass : every_pass) {
    SpectralEngine whole = plain_engine({grid});
    const std::size_t limit = scratch_bytes(whole, problem, pass) * 6 / 10;
    SpectralEngine engine = plain_engine({grid}, limit);
    if (!engine.supports(problem, pass)) continue;  // another pass needs more
    EXPECT_LT(images_at_once(engine, problem, pass), problem.batch);
    EXPECT_LE(scratch_bytes(engine, problem, pass), limit);
    EXPECT_LE(error_of(ctx, engine, problem, pass), promise(Precision::fp32));
    EXPECT_LE(engine.buffers().use().peak, limit);
  }
}

// Needs no scratch for slices of four images, much for smaller ones, and too much for larger ones. Counts how often it
// received less than it needs.
class ScratchyProduct final : public FrequencyProduct {
 public:
  static constexpr std::size_t much = std::size_t(1) << 22;
  ScratchyProduct(std::shared_ptr<FrequencyBuffers> buffers, int& handed_less)
      : buffers_(std::move(buffers)), handed_less_(handed_less) {}
  std::string_view name() const override { return "scratchy"; }
  SpectrumStorage storage() const override { return plain_->storage(); }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    const std::int64_t images = gemm.transpose_a ? gemm.k : gemm.m;
    return images > 4 ? 2 * much : images < 4 ? much : 0;
  }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    handed_less_ += buffers_->use().held < scratch_bytes(gemm);
    plain_->run(ctx, gemm, a, b, c, scratch);
  }

 private:
  std::shared_ptr<FrequencyBuffers> buffers_;
  int& handed_less_;
  std::unique_ptr<FrequencyProduct> plain_ = std::move(plain_backend({}).products.front());
};

TEST(SpectralEngine, ReservesScratchForLargerLastSlice) {
  Context ctx;
  const ConvProblem problem = conv_problem("7x4x6x6 * 4x4x3x3 pad 1");
  for (const ConvPass pass : every_pass) {
    const auto buffers = std::make_shared<FrequencyBuffers>(ScratchyProduct::much * 3 / 2);
    int handed_less = 0;
    SpectralBackend backend = plain_backend({whole_plane(problem, 7, 8)});
    backend.products.front() = std::make_unique<ScratchyProduct>(buffers, handed_less);
    SpectralEngine engine(std::move(backend), buffers, plenty);
    EXPECT_EQ(images_at_once(engine, problem, pass), 4);
    EXPECT_GE(scratch_bytes(engine, problem, pass), ScratchyProduct::much);
    EXPECT_LE(error_of(ctx, engine, problem, pass), promise(Precision::fp32));
    EXPECT_EQ(handed_less, 0) << to_string(pass);
    EXPECT_LE(buffers->use().peak, buffers->budget());
  }
}

TEST(SpectralEngine, RejectsUnsupportedProblems) {
  const SpectralEngine engine = plain_engine({FrequencyGrid{8, 8, 1, 1, 6, 6}});
  for (const ConvProblem& problem :
       conv_problems({"1x1x7x7 * 1x1x3x3 stride 2 pad 1", "1x1x6x6 * 1x1x3x3 pad 1 dilation 2"}))
    EXPECT_FALSE(engine.supports(problem, ConvPass::forward));
  const SpectralEngine narrow = plain_engine({FrequencyGrid{8, 8, 1, 1, 6, 6}}, 100);
  EXPECT_FALSE(narrow.supports(conv_problem("1x1x6x6 * 1x1x3x3 pad 1"), ConvPass::forward));
  SpectralEngine none = plain_engine({});
  EXPECT_FALSE(none.supports(conv_problem("1x1x6x6 * 1x1x3x3 pad 1"), ConvPass::forward));
}

// A layer's step: six transforms instead of nine, since two passes use each operand.
TEST(SpectralEngine, SharesSpectraBetweenPasses) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  SpectralEngine engine = plain_engine({whole_plane(problem, 7, 8)});
  const Tensor x = random_operands(*ctx.stream, problem, ConvPass::forward).x;
  Tensor w = random_operands(*ctx.stream, problem, ConvPass::forward).w;
  const Tensor grad_y = random_operands(*ctx.stream, problem, ConvPass::backward_input).y;
  for (int step = 0; step < 2; ++step) {
    ConvOperands forward{x, w, Tensor(*ctx.stream, problem.output_shape())};
    run(engine, ctx, problem, ConvPass::forward, forward);
    ConvOperands weight{x, Tensor(*ctx.stream, problem.weight_shape()), grad_y};
    run(engine, ctx, problem, ConvPass::backward_weight, weight);
    ConvOperands input{Tensor(*ctx.stream, problem.input_shape()), w, grad_y};
    run(engine, ctx, problem, ConvPass::backward_input, input);
    EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_input, input, all_samples), promise(Precision::fp32));
    EXPECT_EQ(engine.buffers().use().computed, step == 0 ? 3 : 4);  // the second time only w is new
    w.write();
  }
}

// The weight's spectrum stays cached while spectra of batch slices, which no other pass reads, are replaced.
TEST(SpectralEngine, TransformsWeightOnceInEvaluation) {
  Context ctx;
  ctx.training = false;
  const ConvProblem problem = conv_problem("7x4x6x6 * 4x4x3x3 pad 1");
  const FrequencyGrid grid = whole_plane(problem, 7, 8);
  SpectralEngine whole = plain_engine({grid});
  const std::size_t limit = scratch_bytes(whole, problem, ConvPass::backward_weight) * 7 / 10;
  SpectralEngine engine = plain_engine({grid}, limit);
  EXPECT_LT(images_at_once(engine, problem, ConvPass::forward), problem.batch);
  ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
  for (int batch = 0; batch < 3; ++batch) {
    operands.x.write();
    run(engine, ctx, problem, ConvPass::forward, operands);
  }
  EXPECT_LE(conv_error(ctx, problem, ConvPass::forward, operands, all_samples), promise(Precision::fp32));
  EXPECT_EQ(engine.buffers().use().computed, 1);  // of those that are kept
  EXPECT_LE(engine.buffers().use().peak, limit);
  operands.w.write();
  run(engine, ctx, problem, ConvPass::forward, operands);
  EXPECT_EQ(engine.buffers().use().computed, 2);
}

// The plain backend's transform; throws OutOfMemory on its first call.
class FailingOnceTransform final : public SpectralTransform {
 public:
  explicit FailingOnceTransform(std::unique_ptr<SpectralTransform> plain) : plain_(std::move(plain)) {}
  std::string_view name() const override { return plain_->name(); }
  SpectrumStorage storage() const override { return plain_->storage(); }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override { return plain_->grids(problem); }
  std::size_t spectrum_bytes(const Planes& planes) const override { return plain_->spectrum_bytes(planes); }
  std::size_t scratch_bytes(const Planes& planes) const override { return plain_->scratch_bytes(planes); }
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override {
    if (!std::exchange(failed_, true)) throw OutOfMemory("out of memory");
    plain_->forward(ctx, planes, source, spectrum, scratch);
  }
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override {
    plain_->inverse(ctx, planes, spectrum, target, epilogue, scratch);
  }

 private:
  std::unique_ptr<SpectralTransform> plain_;
  bool failed_ = false;
};

TEST(SpectralEngine, DiscardsSpectrumIfTransformFails) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  SpectralBackend backend = plain_backend({whole_plane(problem, 7, 8)});
  backend.transforms.front() = std::make_unique<FailingOnceTransform>(std::move(backend.transforms.front()));
  SpectralEngine engine(std::move(backend), std::make_shared<FrequencyBuffers>(plenty), plenty);
  ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
  EXPECT_THROW(run(engine, ctx, problem, ConvPass::forward, operands), OutOfMemory);
  EXPECT_EQ(engine.buffers().use().held, 0u);
  run(engine, ctx, problem, ConvPass::forward, operands);
  EXPECT_LE(conv_error(ctx, problem, ConvPass::forward, operands, all_samples), promise(Precision::fp32));
}

// Plans of one grid can reuse each other's spectra; plans of another grid cannot.
TEST(SpectralEngine, OnlyPlansOfSameGridShare) {
  const ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  const SpectralEngine engine = plain_engine({whole_plane(problem, 7, 8), tiled(problem, 4, 4)});
  const ConvPlans forward = engine.plans(problem, ConvPass::forward);
  EXPECT_EQ(names(forward), (std::vector<std::string>{"7x8", "4x4 in 3x3 tiles"}));
  EXPECT_NE(forward[0]->facts().shares, forward[1]->facts().shares);
  for (const ConvPass pass : every_pass) {
    const ConvPlans plans = engine.plans(problem, pass);
    ASSERT_EQ(plans.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(plans[i]->facts().shares, forward[i]->facts().shares);
    EXPECT_EQ(engine.plans(problem, pass, 1).size(), 1u);
    EXPECT_EQ(engine.plan(problem, pass, "4x4 in 3x3 tiles")->facts().name, "4x4 in 3x3 tiles");
    EXPECT_EQ(engine.plan(problem, pass, "4x4")->facts().name, "4x4 in 3x3 tiles");
    EXPECT_EQ(engine.plan(problem, pass, "4"), nullptr);
  }
}

// A fused inverse of the plain backend's parts.
class PlainFusedInverse final : public FusedInverse {
 public:
  std::string_view name() const override { return "at once"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved_doubles; }
  bool supports(const FrequencyGemm& gemm, const Planes&) const override { return gemm.k <= 2 && gemm.conjugate_b; }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, const Planes& planes, float* target,
           const PlaneEpilogue& epilogue, void*) override {
    ++runs;
    std::vector<std::complex<double>> c(static_cast<std::size_t>(gemm.bins * gemm.groups * gemm.m * gemm.n));
    parts_.products.front()->run(ctx, gemm, a, b, c.data(), nullptr);
    parts_.transforms.front()->inverse(ctx, planes, c.data(), target, epilogue, nullptr);
  }
  int runs = 0;

 private:
  SpectralBackend parts_ = plain_backend({});
};

TEST(SpectralEngine, FusesProductAndInverse) {
  Context ctx;
  const ConvProblem few = conv_problem("5x4x6x6 * 6x2x3x3 pad 1 groups 2"), many = conv_problem("2x3x6x6 * 4x3x3x3");
  SpectralBackend backend = plain_backend({whole_plane(few, 7, 8)});
  auto owned = std::make_unique<PlainFusedInverse>();
  const PlainFusedInverse& fused = *owned;
  backend.fused = std::move(owned);
  SpectralEngine engine(std::move(backend), std::make_shared<FrequencyBuffers>(plenty), plenty);
  for (const ConvPass pass : every_pass) {
    EXPECT_LE(error_of(ctx, engine, few, pass), promise(Precision::fp32));
    EXPECT_EQ(first_plan(engine, few, pass)->facts().name, pass == ConvPass::forward ? "7x8, at once" : "7x8");
    EXPECT_EQ(fused.runs, 1);  // of all groups
  }
  const ConvPlans plans = engine.plans(few, ConvPass::forward);
  EXPECT_LT(plans[0]->facts().scratch_bytes, plans[1]->facts().scratch_bytes);
  EXPECT_LE(plan_error(ctx, *plans[1], few, ConvPass::forward), promise(Precision::fp32));
  EXPECT_LE(error_of(ctx, engine, many, ConvPass::forward), promise(Precision::fp32));
  EXPECT_EQ(fused.runs, 1);
}

TEST(SpectralEngine, CombinesTransformsAndProductsByStorage) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x2x6x6 * 4x2x3x3 pad 1");
  const FrequencyGrid grid = whole_plane(problem, 7, 8);
  SpectralBackend backend = plain_backend({grid}, two_storages);
  auto owned = std::make_unique<PlainFusedInverse>();
  const PlainFusedInverse& fused = *owned;
  backend.fused = std::move(owned);
  std::swap(backend.products.front(), backend.products.back());  // the floats' first, the doubles' second
  SpectralEngine engine(std::move(backend), std::make_shared<FrequencyBuffers>(plenty), plenty);
  for (const ConvPass pass : every_pass) {
    const ConvPlans plans = engine.plans(problem, pass);
    EXPECT_EQ(plans.size(), pass == ConvPass::forward ? 3u : 2u) << "doubles, fused too, and floats";
    for (const auto& plan : plans) EXPECT_LE(plan_error(ctx, *plan, problem, pass), promise(Precision::fp32));
  }
  EXPECT_EQ(fused.runs, 1);
}

TEST(SpectralEngine, OffersNothingWithoutMatchingStorage) {
  const ConvProblem problem = conv_problem("2x2x6x6 * 4x2x3x3 pad 1");
  SpectralBackend backend = plain_backend({whole_plane(problem, 7, 8)}, two_storages);
  backend.fused = std::make_unique<PlainFusedInverse>();
  backend.transforms.pop_back();                     // that of the floats
  backend.products.erase(backend.products.begin());  // that of the doubles
  const SpectralEngine engine(std::move(backend), std::make_shared<FrequencyBuffers>(plenty), plenty);
  EXPECT_FALSE(engine.supports(problem, ConvPass::forward));
}

// Has only a name: it never runs.
class CoarseProduct final : public FrequencyProduct {
 public:
  std::string_view name() const override { return "coarse"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved_doubles; }
  bool keeps_fp32() const override { return false; }
  std::size_t scratch_bytes(const FrequencyGemm&) const override { return 0; }
  void run(Context&, const FrequencyGemm&, const void*, const void*, void*, void*) override {}
};

TEST(SpectralEngine, ListsRoundingProductsFirstInTf32) {
  ConvProblem problem = conv_problem("2x2x6x6 * 4x2x3x3 pad 1");
  SpectralBackend backend = plain_backend({whole_plane(problem, 7, 8)});
  const std::string grid = to_string(whole_plane(problem, 7, 8));
  const std::string fine = join(grid, ", ", backend.products.front()->name()), coarse = join(grid, ", coarse");
  backend.products.push_back(std::make_unique<CoarseProduct>());
  const SpectralEngine engine(std::move(backend), std::make_shared<FrequencyBuffers>(plenty), plenty);
  EXPECT_EQ(names(engine.plans(problem, ConvPass::forward)), (std::vector{fine}));
  problem.precision = Precision::tf32;
  EXPECT_EQ(names(engine.plans(problem, ConvPass::forward)), (std::vector{coarse, fine}));
}

TEST(SpectralEngine, DoesNotShareSpectraAcrossStorages) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  SpectralEngine engine(plain_backend({whole_plane(problem, 7, 8)}, two_storages),
                        std::make_shared<FrequencyBuffers>(plenty), plenty);
  ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
  for (const auto& plan : engine.plans(problem, ConvPass::forward)) {
    plan->run(ctx, operands);
    EXPECT_LE(conv_error(ctx, problem, ConvPass::forward, operands, all_samples), promise(Precision::fp32));
  }
  EXPECT_EQ(engine.buffers().use().computed, 4);
  EXPECT_EQ(engine.buffers().use().reused, 0);
}

}  // namespace
}  // namespace twiddle
