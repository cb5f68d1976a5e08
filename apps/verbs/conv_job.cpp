#include "apps/verbs/conv_job.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "apps/verbs/iteration_timer.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/tensor_ops.h"
#include "framework/text.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/timing.h"
#include "layers/conv/tuner/tuner.h"
#include "models/checkpoints/safetensors.h"

namespace twiddle {
namespace {

// The arrays of the input file, checked against the operands of a convolution.
class Inputs {
 public:
  explicit Inputs(const std::string& path) : path_(path), contents_(read_safetensors(path)) {
    for (const auto& [name, array] : contents_.arrays) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) fail(unknown_name("array", name, known_));
      if (array.type != DType::f32) fail("'", name, "' has dtype I32; F32 is needed");
    }
    for (const char* name : {"input", "weight"}) {
      const Shape& shape = get(name).shape;
      if (shape.size() != 4) fail("'", name, "' is ", to_string(shape), "; it must have 4 axes, ", axes_of(name));
    }
  }

  const HostArray& get(const std::string& name) const {
    const auto found = contents_.arrays.find(name);
    if (found == contents_.arrays.end())
      fail("has no '", name, "'; needed are input and weight, and may be bias and grad_output");
    return found->second;
  }
  bool has(const std::string& name) const { return contents_.arrays.count(name) > 0; }

  int dim(const std::string& name, std::size_t axis) const {
    const std::int64_t size = get(name).shape[axis];
    if (size > std::numeric_limits<int>::max()) fail("'", name, "' ", to_string(get(name).shape), " is too large");
    return static_cast<int>(size);
  }

  void expect_shape(const std::string& name, const Shape& shape) const {
    if (has(name) && get(name).shape != shape)
      fail("'", name, "' is ", to_string(get(name).shape), "; for this convolution it must be ", to_string(shape));
  }

  Tensor tensor(Stream& stream, const std::string& name) const {
    return has(name) ? to_tensor(stream, get(name)) : Tensor();
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(ErrorKind::data, join(printable(path_), ": ", parts...));
  }

 private:
  static const char* axes_of(std::string_view name) {
    return name == "input" ? "(batch, channels, height, width)"
                           : "(filters, channels / groups, kernel height, kernel width)";
  }

  std::string path_;
  SafeTensors contents_;
  std::vector<std::string> known_ = {"input", "weight", "bias", "grad_output"};
};

ConvProblem problem_of(const ConvJob& job, const Inputs& inputs) {
  ConvProblem problem;
  problem.batch = inputs.dim("input", 0), problem.channels = inputs.dim("input", 1);
  problem.height = inputs.dim("input", 2), problem.width = inputs.dim("input", 3);
  problem.filters = inputs.dim("weight", 0);
  problem.kernel_h = inputs.dim("weight", 2), problem.kernel_w = inputs.dim("weight", 3);
  problem.stride_h = job.stride[0], problem.stride_w = job.stride[1];
  problem.pad_h = job.pad[0], problem.pad_w = job.pad[1];
  problem.dilation = job.dilation, problem.groups = job.groups;
  problem.precision = job.precision;
  validate(problem);
  if (inputs.dim("weight", 1) != problem.channels / problem.groups)
    inputs.fail("'weight' ", to_string(inputs.get("weight").shape), " reads ", inputs.dim("weight", 1),
                " channels a group; 'input' ", to_string(problem.input_shape()), " in ", problem.groups,
                problem.groups == 1 ? " group has " : " groups has ", problem.channels / problem.groups);
  inputs.expect_shape("bias", {problem.filters});
  inputs.expect_shape("grad_output", problem.output_shape());
  return problem;
}

Timing time_runs(Stream& stream, int repeat, const std::function<void()>& run) {
  run();  // untimed: creates plans and allocates memory
  Timing timing;
  for (int i = 0; i < repeat; ++i) timing.samples.push_back(time_in_a_row(stream, 1, run));
  return timing;
}

}  // namespace

ConvReport run_conv(const ConvJob& job) {
  require(job.repeat > 0, "repeat is ", job.repeat, "; it must be 1 or more");
  const Inputs inputs(job.in);
  ConvReport report{problem_of(job, inputs), {}, {}};
  const ConvProblem& problem = report.problem;

  Context ctx(job.device);
  Stream& stream = *ctx.stream;
  constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  ConvTuner tuner(
      make_conv_engines(job.device, {.workspace_limit = unlimited}),
      {.engine = job.engine, .precision = job.precision, .workspace_limit = unlimited, .measuring = job.measuring});
  if (job.measuring) job.measuring->expect(1);
  tuner.check_name(job.engine);
  ctx.training = inputs.has("grad_output");  // the passes are chosen together

  const DType type = storage_of(job.precision);
  const auto stored = [&](const char* name) { return cast(stream, inputs.tensor(stream, name), type); };
  const Tensor x = stored("input"), w = stored("weight"), grad_y = stored("grad_output");
  const Tensor bias = inputs.tensor(stream, "bias");
  std::map<std::string, Tensor> results;
  // Runs a pass and stores its result under a name.
  const auto run_pass = [&](ConvPass pass, ConvOperands operands, const Tensor& written, const std::string& name) {
    const ConvTuner::Choice& choice = tuner.choose(ctx, problem, pass);
    const ConvPlan& plan = *choice.plan;
    Timing timing = time_runs(stream, job.repeat, [&] { plan.run(ctx, operands); });
    report.passes.push_back({pass, full_name(plan), std::move(timing), plan.facts().scratch_bytes, choice.candidates});
    results[name] = cast(stream, written, DType::f32);
  };

  const Tensor y(stream, problem.output_shape(), type);
  run_pass(ConvPass::forward, {x, w, y, bias}, y, "output");
  if (grad_y.defined()) {
    const Tensor grad_x(stream, problem.input_shape(), type), grad_w(stream, problem.weight_shape());
    run_pass(ConvPass::backward_input, {grad_x, w, grad_y, {}}, grad_x, "grad_input");
    run_pass(ConvPass::backward_weight, {x, grad_w, grad_y, {}}, grad_w, "grad_weight");
    const std::int64_t plane = std::int64_t(problem.out_height()) * problem.out_width();
    results["grad_bias"] = sum_over_channels(stream, grad_y, problem.filters, plane);
  }
  write_safetensors(job.out, source_of(stream, results, {}));
  for (const auto& [name, array] : results) report.written.push_back(name);
  return report;
}

}  // namespace twiddle
