#include "framework/convolution.h"

#include <utility>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// No tensor of a convolution may hold more elements (4 TiB), no single size be larger: products then stay far from
// overflow.
constexpr std::int64_t largest_count = std::int64_t(1) << 40, largest_size = std::int64_t(1) << 24;

template <class... Parts>
void demand(bool condition, const Parts&... parts) {
  if (!condition) throw Error(ErrorKind::config, join(parts...));
}

void demand_size(const char* name, int value, int least) {
  demand(value >= least && value <= largest_size, name, " is ", value, "; it must be from ", least, " to ",
         largest_size);
}

// Messages are built only on failure, because PyTorch's operators validate in each call.
void demand_count(const char* name, const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size > largest_count / count) demand(false, "the ", name, " ", to_string(shape), " is too large");
    count *= size;
  }
}

std::string by(int height, int width) {
  return join(height, "x", width);
}

}  // namespace

double promise(Precision precision, ConvPass pass) {
  switch (precision) {
    case Precision::tf32:
      return 1e-3;
    case Precision::bf16:
      return pass == ConvPass::backward_weight ? 2e-3 : 2.5e-3;
    case Precision::fp16:
      return 7e-4;
    default:
      return 2e-6;
  }
}

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    default:
      return "fp32";
  }
}

double ConvProblem::flops() const {
  return 2.0 * batch * filters * out_height() * out_width() * (channels / groups) * kernel_h * kernel_w;
}

void validate(const ConvProblem& problem) {
  const std::pair<const char*, int> sizes[] = {
      {"batch", problem.batch},           {"channels", problem.channels}, {"height", problem.height},
      {"width", problem.width},           {"filters", problem.filters},   {"kernel height", problem.kernel_h},
      {"kernel width", problem.kernel_w}, {"stride", problem.stride_h},   {"stride", problem.stride_w},
      {"dilation", problem.dilation},     {"groups", problem.groups}};
  for (const auto& [name, value] : sizes) demand_size(name, value, 1);
  demand_size("pad", problem.pad_h, 0);
  demand_size("pad", problem.pad_w, 0);
  demand(problem.channels % problem.groups == 0, problem.channels, " channels cannot be split into ", problem.groups,
         " equal groups");
  demand(problem.filters % problem.groups == 0, problem.filters, " filters cannot be split into ", problem.groups,
         " equal groups");

  const std::int64_t reach_h = std::int64_t(problem.dilation) * (problem.kernel_h - 1) + 1;
  const std::int64_t reach_w = std::int64_t(problem.dilation) * (problem.kernel_w - 1) + 1;
  const std::int64_t padded_h = problem.height + 2 * std::int64_t(problem.pad_h);
  const std::int64_t padded_w = problem.width + 2 * std::int64_t(problem.pad_w);
  if (reach_h > padded_h || reach_w > padded_w)
    demand(false, "kernel ", by(problem.kernel_h, problem.kernel_w),
           problem.dilation > 1 ? join(" with dilation ", problem.dilation, " (", reach_h, "x", reach_w, ")") : "",
           " does not fit the input ", by(problem.height, problem.width), " with pad ",
           format_sides(problem.pad_h, problem.pad_w), ": the padded input is ", padded_h, "x", padded_w);
  demand_count("input", problem.input_shape());
  demand_count("weight", problem.weight_shape());
  demand_count("output", problem.output_shape());
}

std::string to_string(const ConvProblem& problem) {
  std::string text = to_string(problem.input_shape()) + " * " + to_string(problem.weight_shape());
  if (problem.stride_h > 1 || problem.stride_w > 1)
    text += " stride " + format_sides(problem.stride_h, problem.stride_w);
  if (problem.pad_h > 0 || problem.pad_w > 0) text += " pad " + format_sides(problem.pad_h, problem.pad_w);
  if (problem.dilation > 1) text += " dilation " + std::to_string(problem.dilation);
  if (problem.groups > 1) text += " groups " + std::to_string(problem.groups);
  return text;
}

std::string full_name(const ConvPlan& plan) {
  const ConvPlan::Facts& facts = plan.facts();
  return facts.name.empty() ? facts.engine : facts.engine + ":" + facts.name;
}

std::shared_ptr<const ConvPlan> ConvEngine::plan(const ConvProblem& problem, ConvPass pass,
                                                 std::string_view name) const {
  const ConvPlans all = plans(problem, pass);
  for (const auto& plan : all)
    if (plan->facts().name == name) return plan;
  for (const auto& plan : all) {
    const std::string& whole = plan->facts().name;
    if (whole.starts_with(name) && std::string_view(" ,").find(whole[name.size()]) != std::string_view::npos)
      return plan;
  }
  return nullptr;
}

std::string_view to_string(ConvPass pass) {
  switch (pass) {
    case ConvPass::backward_input:
      return "backward_input";
    case ConvPass::backward_weight:
      return "backward_weight";
    default:
      return "forward";
  }
}

}  // namespace twiddle
