#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "apps/command_line/verb_options.h"
#include "apps/verbs/open.h"
#include "apps/verbs/plan_table.h"
#include "apps/verbs/verbs.h"
#include "apps/version.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/sequential.h"

namespace twiddle {
namespace {

struct TuneArguments {
  std::string config;
  bool retune = false, plans = false;
};

// The selected plan for one pass of one layer.
struct Tuned {
  std::string layer, problem_text;
  ConvProblem problem;
  ConvPass pass;  // of the layer
  ConvTuner::Choice choice;
  Measurement measured;
};

std::string text_of(const TunedConvolution& convolution, const ConvProblem& problem) {
  return (convolution.transposed() ? "transposed " : "") + to_string(problem);
}

Tuned tune_pass(Context& ctx, const TunedConvolution& convolution, const ConvProblem& problem, ConvPass of_layer) {
  const ConvPass pass = convolution.pass_for(of_layer);
  const ConvTuner::Choice& choice = convolution.tuner().choose(ctx, problem, pass, convolution.engine());
  const Measurement measured = measure(ctx, *choice.plan, problem, pass);
  ctx.stream->release_unused();
  return {convolution.layer(), text_of(convolution, problem), problem, of_layer, choice, measured};
}

std::vector<Tuned> tune_model(Context& ctx, const Model& model, std::int64_t batch, bool progress) {
  std::vector<Tuned> rows;
  for (const TunedConvolution* convolution : model.net->convolutions()) {
    const ConvProblem problem = convolution->problem(batch);
    for (const ConvPass pass : every_pass) {
      if (!convolution->in_training(pass)) continue;
      if (progress)
        write_stderr(fmt::format("{} {}: {}\n", convolution->layer(), to_string(pass), text_of(*convolution, problem)));
      rows.push_back(tune_pass(ctx, *convolution, problem, pass));
    }
  }
  return rows;
}

void print(const std::vector<Tuned>& rows) {
  TextTable table({"layer", "pass", "engine", "plan", "ms", "error", "workspace", "chosen because"});
  double sum = 0;
  for (const Tuned& row : rows) {
    const bool worked = row.measured.failure.empty();
    sum += row.measured.milliseconds();
    const ConvPlan::Facts& plan = row.choice.plan->facts();
    table.add({row.layer, std::string(to_string(row.pass)), plan.engine, plan.name.empty() ? "-" : plan.name,
               worked ? fmt::format("{:.3f}", row.measured.milliseconds()) : "-",
               worked ? fmt::format("{:.1e}", row.measured.error) : "-", format_bytes(plan.scratch_bytes),
               worked ? row.choice.reason : row.choice.reason + "; failed: " + row.measured.failure});
  }
  fmt::print("{}{:.3f} ms in all\n", table.text(), sum);
}

void print_plans(const std::vector<Tuned>& rows) {
  for (const Tuned& row : rows)
    if (row.choice.candidates.empty())
      fmt::print("\n{} {}: {}, no plan was measured; --retune does\n", row.layer, to_string(row.pass),
                 row.choice.reason);
    else
      fmt::print("\n{} {}\n{}", row.layer, to_string(row.pass), plan_table(row.choice.candidates));
}

nlohmann::json to_json(const Tuned& row) {
  const ConvPlan::Facts& plan = row.choice.plan->facts();
  nlohmann::json json = {{"layer", row.layer},
                         {"problem", row.problem_text},
                         {"pass", to_string(row.pass)},
                         {"engine", plan.engine},
                         {"plan", plan.name},
                         {"reason", row.choice.reason},
                         {"flops", row.problem.flops()},
                         {"workspace_bytes", plan.scratch_bytes}};
  if (!row.choice.candidates.empty()) json["plans"] = row.choice.candidates;
  if (row.measured.failure.empty()) {
    json["ms"] = row.measured.milliseconds(), json["error"] = row.measured.error;
    json.update(to_json(row.measured.timing));
  } else {
    json["failure"] = row.measured.failure;
  }
  return json;
}

bool is_kept(const ConvTuner& convolutions) {
  return convolutions.measures("") && !convolutions.policy().cache_file.empty() &&
         convolutions.cache().write_failure().empty();
}

// Returns whether and where the plans were stored.
std::string where_kept(const ConvTuner& convolutions) {
  const std::string& engine = convolutions.policy().engine;
  if (!convolutions.measures(engine)) return "not kept: `engine: " + printable(engine) + "` names the plan";
  const std::string& file = convolutions.policy().cache_file;
  const std::string& failure = convolutions.cache().write_failure();
  if (file.empty()) return "not kept: convolution.cache is off";
  if (!failure.empty()) return "not kept: " + printable(failure);
  return "kept in " + printable(file) + "; training with `engine: " + engine + "` reads it";
}

int tune(Flags flags, const TuneArguments& arguments) {
  if (arguments.retune) flags.overrides.push_back({"convolution.retune", "true", "--retune"});
  const Experiment experiment = open_experiment(arguments.config, flags, {.tunes = true});
  const Config& config = experiment.config;
  if (config.deterministic)
    throw Error(ErrorKind::config,
                "'deterministic: true' excludes engines that are measured, so no run would read what tune keeps");
  const Model& model = experiment.model;
  const std::string& engine = model.convolutions->policy().engine;
  use_threads_of(experiment);
  Context ctx(experiment.device, config.seed);
  const std::int64_t batch = config.train.batch_size;
  const std::string device = describe(ctx.stream->device());
  const bool text = flags.json != "-";
  if (text)
    fmt::print("{}  batch {}x{}  {}  engine {}, workspace limit {}  {}\n", printable(config.name), batch,
               to_string(config.input), to_string(config.convolution.precision), printable(engine),
               format_bytes(config.convolution.workspace_limit), device);
  std::fflush(stdout);
  // loads cached plans, so that only missing ones are measured
  static_cast<void>(recall_choices(model, ctx.stream->device(), batch));
  const std::vector<Tuned> rows = tune_model(ctx, model, batch, flags.verbosity >= 0);
  if (text) {
    print(rows);
    if (arguments.plans) print_plans(rows);
    fmt::print("{}\n", where_kept(*model.convolutions));
  }
  nlohmann::json layers = nlohmann::json::array();
  for (const Tuned& row : rows) layers.push_back(to_json(row));
  const nlohmann::json json = {{"model", config.name},
                               {"batch_size", batch},
                               {"engine", engine},
                               {"precision", to_string(config.convolution.precision)},
                               {"workspace_limit_bytes", config.convolution.workspace_limit},
                               {"device", device},
                               {"twiddle", version()},
                               {"commit", commit()},
                               {"cache", config.convolution.cache_file},
                               {"kept", is_kept(*model.convolutions)},
                               {"layers", layers}};
  write_json(flags, json);
  return 0;
}

}  // namespace

Action add_tune(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<TuneArguments>();
  verb.add_option("CONFIG", arguments->config, "A YAML file or a run folder", {.required = true});
  verb.add_flag("--plans", arguments->plans, "Show every plan with its time, error and why it lost");
  verb.add_flag("--retune", arguments->retune, "Measure again what is known already");
  return [&flags, arguments] { return tune(flags, *arguments); };
}

}  // namespace twiddle
