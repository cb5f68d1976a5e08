#include "models/config/read_optimizer.h"

namespace twiddle {

std::unique_ptr<Optimizer> read_optimizer(Params& train) {
  auto [name, options] = train.named("optimizer", "sgd");
  static_cast<void>(train.has("learning_rate"));  // where an optimizer's unknown key 'lr' belongs
  const OptimizerRegistry optimizers = builtin_optimizers();
  if (!optimizers.has(name)) {
    train.error("optimizer", optimizers.unknown(name));
    return nullptr;
  }
  std::unique_ptr<Optimizer> optimizer = optimizers.make(name, options);
  options.finish();
  return optimizer;
}

}  // namespace twiddle
