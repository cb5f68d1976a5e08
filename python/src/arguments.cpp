#include "python/src/arguments.h"

#include <limits>
#include <map>
#include <mutex>

#include "framework/error.h"
#include "framework/text.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

int as_int(std::int64_t value, const char* what) {
  require(value >= 0 && value <= std::numeric_limits<int>::max(), what, " of ", value, " is impossible");
  return static_cast<int>(value);
}

Precision precision_of(const std::string& name) {
  for (const Precision precision : {Precision::fp32, Precision::tf32})
    if (name == to_string(precision)) return precision;
  throw Error(ErrorKind::config, join("precision '", name, "' is none of: fp32, tf32"));
}

// For the rest of the process: a library's variables may be gone at its end, while PyTorch still calls.
struct AllArguments {
  std::mutex mutex;
  std::map<ConvArguments, std::int64_t> ids;
  std::vector<const ConvArguments*> by_id;
};
AllArguments& all_arguments() {
  static auto& all = *new AllArguments;
  return all;
}

}  // namespace

std::int64_t id_of(const ConvArguments& arguments) {
  AllArguments& all = all_arguments();
  const std::lock_guard lock(all.mutex);
  const auto [entry, is_new] = all.ids.try_emplace(arguments, static_cast<std::int64_t>(all.by_id.size()));
  if (is_new) all.by_id.push_back(&entry->first);
  return entry->second;
}

const ConvArguments& arguments_of(std::int64_t id) {
  AllArguments& all = all_arguments();
  const std::lock_guard lock(all.mutex);
  require(id >= 0 && id < static_cast<std::int64_t>(all.by_id.size()), "no arguments have the id ", id);
  return *all.by_id[static_cast<std::size_t>(id)];
}

// What is told is put together only where there is something to tell: a call takes microseconds in all.
void expect_shape(const char* what, const Shape& found, const Shape& wanted) {
  if (found != wanted) throw Error(join("a ", what, " of ", to_string(wanted), " is expected, got ", to_string(found)));
}

void check_operands(const torch::stable::Tensor& first, const torch::stable::Tensor& second) {
  for (const torch::stable::Tensor* tensor : {&first, &second})
    require(tensor->scalar_type() == torch::headeronly::ScalarType::Float, "twiddle's operators take float32 alone");
  if (device_of(first) != device_of(second))
    throw Error(join("operands lie on ", to_string(device_of(first)), " and on ", to_string(device_of(second))));
}

ConvProblem problem_of(const Shape& x, const Shape& weight, bool bias, const ConvArguments& arguments) {
  if (x.size() != 4 || weight.size() != 4)
    throw Error(
        join("twiddle::conv2d takes tensors of four dimensions, got ", to_string(x), " and ", to_string(weight)));
  for (const auto* pair : {&arguments.stride, &arguments.padding, &arguments.dilation})
    require(pair->size() == 2, "stride, padding and dilation are pairs of numbers");
  require(arguments.dilation[0] == arguments.dilation[1],
          "dilations that differ between rows and columns are not supported");
  ConvProblem problem;
  problem.batch = as_int(x[0], "a batch");
  problem.channels = as_int(x[1], "a number of channels");
  problem.height = as_int(x[2], "a height"), problem.width = as_int(x[3], "a width");
  problem.filters = as_int(weight[0], "a number of filters");
  problem.kernel_h = as_int(weight[2], "a kernel"), problem.kernel_w = as_int(weight[3], "a kernel");
  problem.stride_h = as_int(arguments.stride[0], "a stride"),
  problem.stride_w = as_int(arguments.stride[1], "a stride");
  problem.pad_h = as_int(arguments.padding[0], "a padding"), problem.pad_w = as_int(arguments.padding[1], "a padding");
  problem.dilation = as_int(arguments.dilation[0], "a dilation");
  problem.groups = as_int(arguments.groups, "a number of groups");
  problem.precision = precision_of(arguments.precision);
  problem.bias = bias;
  ConvProblem of_one_image = problem;  // a batch may be empty
  of_one_image.batch = 1;
  validate(of_one_image);
  expect_shape("weight", weight, problem.weight_shape());
  return problem;
}

ConvOptions options_of(const ConvArguments& arguments) {
  require(arguments.workspace_limit >= 0, "a workspace_limit of ", arguments.workspace_limit, " bytes is impossible");
  return {arguments.engine, static_cast<std::size_t>(arguments.workspace_limit), arguments.deterministic};
}

}  // namespace twiddle
