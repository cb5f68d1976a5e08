#include <fmt/core.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "apps/command_line/verb_options.h"
#include "apps/verbs/conv_job.h"
#include "apps/verbs/open.h"
#include "apps/verbs/plan_table.h"
#include "apps/verbs/verbs.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {
namespace {

struct ConvArguments {
  ConvJob job;
  std::string stride = "1", pad = "0", precision = "fp32";  // as typed
  bool list = false;
};

constexpr int largest_size = 65536;

// Parses "2", or "2,1" for height and width.
std::array<int, 2> pair(const char* flag, const std::string& text, int least) {
  const Validator error_of = whole_number_between(least, largest_size);
  const std::size_t comma = text.find(',');
  const std::string height = text.substr(0, comma), width = comma == text.npos ? height : text.substr(comma + 1);
  if (!error_of(height).empty() || !error_of(width).empty())
    throw Error(ErrorKind::config, fmt::format("{} must be H or H,W with whole numbers from {} to {}, found '{}'", flag,
                                               least, largest_size, text));
  return {std::stoi(height), std::stoi(width)};
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision : every_precision)
    if (text == to_string(precision)) return precision;
  throw Error(ErrorKind::config, unknown_name("precision", text, {"fp32", "tf32", "bf16", "fp16"}));
}

void print(const ConvJob& job, const ConvReport& report, bool list) {
  fmt::print("{}, {}, {}\n", to_string(report.problem), to_string(job.precision), to_string(job.device));
  TextTable table({"pass", "engine", "ms", "GFLOP/s", "workspace"});
  for (const ConvReport::Pass& pass : report.passes) {
    const double median = pass.timing.quantile(0.5);
    table.add({std::string(to_string(pass.pass)), pass.engine, fmt::format("{:.3f}", median),
               fmt::format("{:.1f}", report.problem.flops() / median / 1e6), format_bytes(pass.workspace)});
  }
  fmt::print("{}median of {}; wrote {} to {}\n", table.text(), job.repeat, join_names(report.written),
             printable(job.out));
  for (const ConvReport::Pass& pass : report.passes)
    if (!pass.candidates.empty() && list)
      fmt::print("\nevery plan for {}\n{}", to_string(pass.pass), plan_table(pass.candidates));
}

nlohmann::json to_json(const ConvJob& job, const ConvReport& report) {
  const ConvProblem& problem = report.problem;
  nlohmann::json passes = nlohmann::json::array();
  for (const ConvReport::Pass& pass : report.passes) {
    passes.push_back({{"pass", to_string(pass.pass)},
                      {"engine", pass.engine},
                      {"ms", pass.timing.quantile(0.5)},
                      {"workspace_bytes", pass.workspace}});
    passes.back().update(to_json(pass.timing));
    if (!pass.candidates.empty()) passes.back()["plans"] = pass.candidates;
  }
  return {{"input", problem.input_shape()},
          {"weight", problem.weight_shape()},
          {"output", problem.output_shape()},
          {"stride", {problem.stride_h, problem.stride_w}},
          {"pad", {problem.pad_h, problem.pad_w}},
          {"dilation", problem.dilation},
          {"groups", problem.groups},
          {"precision", to_string(job.precision)},
          {"engine", job.engine},
          {"device", to_string(job.device)},
          {"flops", problem.flops()},
          {"repeat", job.repeat},
          {"passes", passes},
          {"file", job.out},
          {"written", report.written}};
}

int run(const ConvArguments& arguments, const Flags& flags) {
  ConvJob job = arguments.job;
  if (arguments.list) job.engine = "measured";
  job.stride = pair("--stride", arguments.stride, 1);
  job.pad = pair("--pad", arguments.pad, 0);
  job.precision = parse_precision(arguments.precision);
  job.device = open_device(flags);
  if (flags.verbosity >= 0)
    job.measuring = std::make_shared<Measuring>([](const std::string& text) { write_stderr(printable(text) + "\n"); });
  use_threads_of(flags);

  refuse_to_overwrite("OUT", job.out, {job.in});
  refuse_to_overwrite("--json", flags.json, {job.in, job.out});
  const ConvReport report = run_conv(job);
  write_json(flags, to_json(job, report));
  if (flags.json != "-") print(job, report, arguments.list);
  return 0;
}

}  // namespace

Action add_conv(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<ConvArguments>();
  ConvJob& job = arguments->job;
  verb.add_option("IN", job.in,
                  "safetensors file with input (batch, channels, h, w), weight (filters, channels / groups, kh, kw), "
                  "and, optionally, bias and grad_output",
                  {.required = true});
  verb.add_option("OUT", job.out, "File for output and, with grad_output, the three gradients", {.required = true});
  verb.add_option("--engine", job.engine, "rule, measured, ENGINE or ENGINE:PLAN", {.value = "NAME"});
  verb.add_flag("--list", arguments->list, "Measure, and show every plan with its time, error and why it lost");
  verb.add_option("--stride", arguments->stride, "", {.value = "H[,W]"});
  verb.add_option("--pad", arguments->pad, "", {.value = "H[,W]"});
  verb.add_option("--dilation", job.dilation, "", {.value = "N", .check = whole_number_between(1, largest_size)});
  verb.add_option("--groups", job.groups, "", {.value = "N", .check = whole_number_between(1, largest_size)});
  verb.add_option("--precision", arguments->precision,
                  "fp32, tf32, bf16 or fp16: error limit of results, and storage of arrays", {.value = "CLASS"});
  verb.add_option("--repeat", job.repeat, "Timed runs of each pass; the median is printed",
                  {.value = "N", .check = whole_number_between(1, 1'000'000)});
  return [&flags, arguments] { return run(*arguments, flags); };
}

}  // namespace twiddle
