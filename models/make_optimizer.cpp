#include "models/make_optimizer.h"

#include "framework/error.h"

namespace twiddle {

std::unique_ptr<Optimizer> make_optimizer(const Config& config) {
  Diagnostics diagnostics;
  ConfigNode holder;  // `named` reads a key of a mapping
  holder.kind = ConfigNode::Kind::mapping;
  holder.place = config.train.optimizer.place;
  if (config.train.optimizer.kind != ConfigNode::Kind::null)
    holder.entries.push_back({"optimizer", config.train.optimizer.place, config.train.optimizer});
  Params train(holder, "train", diagnostics);
  auto [name, options] = train.named("optimizer", "sgd");
  const OptimizerRegistry registry = builtin_optimizers();
  if (!registry.has(name)) {
    train.error("optimizer", registry.unknown(name));
    diagnostics.throw_if_any();
  }
  std::unique_ptr<Optimizer> optimizer = registry.make(name, options);
  options.finish();
  diagnostics.throw_if_any();
  return optimizer;
}

}  // namespace twiddle
