#include "models/shared_plans.h"

#include <sstream>

#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner.h"

namespace twiddle {

namespace {

// visit(convolution, pass) for all that is measured, in the same order on all ranks.
template <class Visit>
void each_measured(const Model& model, const Visit& visit) {
  for (const TunedConvolution* convolution : model.net->convolutions())
    for (const ConvPass pass : every_pass)
      if (convolution->in_training(pass) && model.convolutions->measures(convolution->engine()))
        visit(*convolution, convolution->pass_for(pass));
}

// A line for each.
std::string choose_plans(Context& ctx, const Model& model, std::int64_t batch) {
  std::string names;
  each_measured(model, [&](const TunedConvolution& convolution, ConvPass pass) {
    const auto& choice = model.convolutions->choose(ctx, convolution.problem(batch), pass, convolution.engine());
    names += full_name(*choice.plan) + '\n';
  });
  return names;
}

}  // namespace

void share_plans(Context& ctx, const Model& model, std::int64_t batch, Communicator& ranks) {
  if (ranks.size() == 1) return;
  const bool first = ranks.rank() == 0;
  std::istringstream names(
      gather_or_fail(ranks, [&] { return first ? choose_plans(ctx, model, batch) : std::string(); }).front());
  if (first) return;
  each_measured(model, [&](const TunedConvolution& convolution, ConvPass pass) {
    std::string name;
    std::getline(names, name);
    model.convolutions->adopt(convolution.problem(batch), pass, convolution.engine(), name);
  });
}

}  // namespace twiddle
