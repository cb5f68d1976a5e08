#include "fft/spectral_engine.h"

#include <algorithm>

#include "framework/error.h"

namespace twiddle {

SpectralEngine::SpectralEngine(SpectralBackend backend, std::shared_ptr<FrequencyBuffers> buffers, std::size_t limit)
    : backend_(std::make_shared<const SpectralBackend>(std::move(backend))),
      buffers_(std::move(buffers)),
      limit_(std::min(limit, buffers_->budget())) {}

ConvPlans SpectralEngine::plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const {
  ConvPlans found;
  const auto add = [&](const SpectralParts& parts) {
    if (found.size() >= most) return;
    if (auto made = make_plan(problem, pass, parts)) found.push_back(std::move(made));
  };
  if (problem.stride_h > 1 || problem.stride_w > 1 || problem.dilation > 1) return found;
  for (const auto& transform : backend_->transforms) {
    for (const FrequencyGrid& grid : transform->grids(problem)) {
      if (found.size() >= most) return found;
      SpectralParts parts{transform.get(), grid};
      const SpectralSlice slice = slice_of(problem, pass, parts, problem.batch);
      const std::vector<FrequencyProduct*> products = products_for(*transform, problem, slice.gemm);
      if (products.empty()) continue;
      parts.product = products.front();
      if (!fits(problem, parts)) continue;
      if (can_fuse(*transform, slice)) add({transform.get(), grid, nullptr, backend_->fused.get()});
      for (FrequencyProduct* const product : products) parts.product = product, add(parts);
    }
  }
  return found;
}

std::vector<FrequencyProduct*> SpectralEngine::products_for(const SpectralTransform& transform,
                                                            const ConvProblem& problem,
                                                            const FrequencyGemm& gemm) const {
  std::vector<FrequencyProduct*> products;
  for (const auto& product : backend_->products)
    if (product->storage() == transform.storage() && product->supports(gemm) &&
        (product->keeps_fp32() || (problem.precision != Precision::fp32 && transform.takes_tf32_products())))
      products.push_back(product.get());
  // What rounds its factors is faster where it may.
  std::stable_partition(products.begin(), products.end(), [](const auto* product) { return !product->keeps_fp32(); });
  return products;
}

// The gradient of weights is a sum over slices of the batch, which an inverse of each would not give.
bool SpectralEngine::can_fuse(const SpectralTransform& transform, const SpectralSlice& slice) const {
  const auto& fused = backend_->fused;
  return fused && fused->storage() == transform.storage() && slice.c_is != ConvOperand::w &&
         fused->supports(slice.gemm, slice.c);
}

bool SpectralEngine::fits(const ConvProblem& problem, const SpectralParts& usual) const {
  return std::all_of(std::begin(every_pass), std::end(every_pass),
                     [&](ConvPass pass) { return images_within(limit_, problem, pass, usual) > 0; });
}

std::shared_ptr<const ConvPlan> SpectralEngine::make_plan(const ConvProblem& problem, ConvPass pass,
                                                          const SpectralParts& parts) const {
  const int images = images_within(limit_, problem, pass, parts);
  if (images == 0) return nullptr;
  const SpectralSlice whole = slice_of(problem, pass, parts, problem.batch);
  ConvPlan::Facts facts{backend_->engine, describe(parts)};
  facts.scratch_bytes = scratch_bytes(problem, pass, parts, images);
  facts.kept_bytes = std::min(buffers_->budget(), whole.a_bytes + whole.b_bytes);
  facts.fuses_epilogue_backward = parts.transform->masks_and_sums();
  facts.shares = join(backend_->engine, " ", to_string(parts.grid), " ", parts.transform->name(), ", ",
                      static_cast<int>(parts.transform->storage()));
  return std::make_shared<SpectralPlan>(std::move(facts), backend_, buffers_, problem, pass, parts, images);
}

// "4x4 in 7x7 tiles, F(2x2), tiles". Omits a transform or product that has no alternative, and a transform with the
// engine's name.
std::string SpectralEngine::describe(const SpectralParts& parts) const {
  std::string text = to_string(parts.grid);
  if (backend_->transforms.size() > 1 && parts.transform->name() != backend_->engine)
    text += join(", ", parts.transform->name());
  if (parts.fused != nullptr)
    text += join(", ", parts.fused->name());
  else if (backend_->products.size() > 1)
    text += join(", ", parts.product->name());
  return text;
}

}  // namespace twiddle
