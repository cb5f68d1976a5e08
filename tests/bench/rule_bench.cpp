// What the rule of a CPU chooses among, problem by problem: milliseconds of processor time of one thread, which other
// programs on the machine disturb little, for the three passes by each engine as its name runs it.
//   twiddle_rule_bench '8x64x28x28 * 64x8x31x31 pad 15 groups 8' ...
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>

#include "framework/context.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "layers/conv/tuner/tuner.h"
#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

double processor_ms() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// The best of up to ten runs, or the first if it was slow.
double milliseconds(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass) {
  constexpr double budget = 60, long_enough = 400;
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  double best = std::numeric_limits<double>::infinity(), all = 0;
  for (int run = 0; run < 11 && all < budget && !(best > long_enough && run > 0); ++run) {
    operands.x.write(), operands.w.write(), operands.y.write();  // new numbers: nothing that was kept holds
    const double start = processor_ms();
    plan.run(ctx, operands);
    const double taken = processor_ms() - start;
    best = std::min(best, taken);
    if (run > 0) all += taken;
  }
  return best;
}

}  // namespace
}  // namespace twiddle

int main(int argc, char** argv) {
  using namespace twiddle;
  omp_set_num_threads(1);
  Context ctx;
  ConvTuner rule(make_conv_engines({}), {.engine = "rule"});
  std::printf("%s\n\n| problem | engine | forward | backward_input | backward_weight | sum |\n",
              describe(Device{}).c_str());
  std::printf("| --- | --- | ---: | ---: | ---: | ---: |\n");
  for (int i = 1; i < argc; ++i) {
    const ConvProblem problem = conv_problem(argv[i]);
    const std::string taken = rule.choose(ctx, problem, ConvPass::forward).plan->facts().engine;
    for (const char* name : {"winograd", "fft", "depthwise", "onednn", "gemm"}) {
      const std::vector<std::string> known = rule.names();
      if (std::find(known.begin(), known.end(), name) == known.end()) continue;
      ConvEngine& engine = rule.engine(name);
      if (!engine.supports(problem, ConvPass::forward)) continue;
      double sum = 0;
      std::printf("| %s | %s%s |", argv[i], name, taken == name ? " (rule)" : "");
      for (const ConvPass pass : every_pass) {
        const double time = milliseconds(ctx, *first_plan(engine, problem, pass), problem, pass);
        sum += time;
        std::printf(" %.2f |", time);
      }
      std::printf(" %.2f |\n", sum);
      std::fflush(stdout);
    }
  }
}
