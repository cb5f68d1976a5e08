#include "tests/support/spectral_plan.h"

#include <algorithm>

#include "framework/error.h"

namespace twiddle {

std::shared_ptr<const ConvPlan> spectral_plan(const std::shared_ptr<const SpectralBackend>& backend,
                                              const std::shared_ptr<FrequencyBuffers>& buffers,
                                              const ConvProblem& problem, ConvPass pass, const FrequencyGrid& grid,
                                              const std::string& product) {
  SpectralParts parts{backend->transforms.front().get(), grid};
  const auto found = std::find_if(backend->products.begin(), backend->products.end(),
                                  [&](const auto& each) { return each->name() == product; });
  require(product.empty() || found != backend->products.end(), backend->engine, " has no product ", product);
  if (product.empty())
    parts.fused = backend->fused.get();
  else
    parts.product = found->get();
  const int images = images_within(buffers->budget(), problem, pass, parts);
  require(images > 0, "not one image fits");
  ConvPlan::Facts facts{.engine = backend->engine, .name = to_string(grid) + ", " + product};
  facts.fuses_epilogue_backward = parts.transform->masks_and_sums();
  return std::make_shared<SpectralPlan>(std::move(facts), backend, buffers, problem, pass, parts, images);
}

}  // namespace twiddle
