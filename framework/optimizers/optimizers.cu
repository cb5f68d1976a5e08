#include "framework/optimizers/adam.h"
#include "framework/optimizers/lion.h"
#include "framework/optimizers/optimizer.h"
#include "framework/optimizers/sgd.h"

namespace twiddle {

// Only this file includes rules: a .cpp file would compile them for the CPU alone, and each .cu file costs nvcc 6 s
// before its first kernel.
OptimizerRegistry builtin_optimizers() {
  OptimizerRegistry optimizers("optimizer");
  optimizers.add(Sgd::kind, make_sgd);
  optimizers.add<RuleOptimizer<Adam>>(Adam::kind);
  optimizers.add<RuleOptimizer<AdamW>>(AdamW::kind);
  optimizers.add<RuleOptimizer<Lion>>(Lion::kind);
  return optimizers;
}

}  // namespace twiddle
