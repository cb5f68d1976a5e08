#include "models/training/shared_plans.h"

#include <memory>
#include <utility>

#include "framework/interrupted.h"
#include "framework/ranks/communicator.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/sequential.h"
#include "models/builder.h"

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

// While it lives, measuring ends with Interrupted once `stop` is true. It must not live longer: a rank that left its
// training step this way would leave the others waiting.
class StopsMeasuring {
 public:
  StopsMeasuring(std::shared_ptr<Measuring> measuring, const Measuring::Stop& stop) : measuring_(std::move(measuring)) {
    if (measuring_) measuring_->stop_if(stop);
  }
  ~StopsMeasuring() {
    if (measuring_) measuring_->stop_if({});
  }
  StopsMeasuring(const StopsMeasuring&) = delete;
  StopsMeasuring& operator=(const StopsMeasuring&) = delete;

 private:
  std::shared_ptr<Measuring> measuring_;
};

}  // namespace

void share_plans(Context& ctx, const Model& model, std::int64_t batch, Communicator& ranks,
                 const Measuring::Stop& stop) {
  if (ranks.size() == 1) return;
  const bool first = ranks.rank() == 0;
  ConvTuner& tuner = *model.convolutions;
  const StopsMeasuring stops(tuner.policy().measuring, stop);
  each_measured(model, [&](const TunedConvolution& convolution, ConvPass pass) {
    const ConvProblem problem = convolution.problem(batch);
    const auto choose = [&] {
      if (stop && stop()) throw Interrupted();
      return first ? full_name(*tuner.choose(ctx, problem, pass, convolution.engine()).plan) : std::string();
    };
    const std::string chosen = gather_or_fail(ranks, choose).front();
    if (!first) tuner.adopt(problem, pass, convolution.engine(), chosen);
  });
}

}  // namespace twiddle
