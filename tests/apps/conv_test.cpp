#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/verbs/conv_job.h"
#include "framework/error.h"
#include "framework/random.h"
#include "layers/conv/engines/engines.h"
#include "models/checkpoints/safetensors.h"
#include "tests/apps/run_program.h"
#include "tests/support/temp_path.h"

namespace twiddle {

namespace {

HostArray array_of(const Shape& shape, const std::vector<float>& values) {
  HostArray array{DType::f32, shape, std::vector<std::uint8_t>(values.size() * 4)};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::vector<float> values_of(const HostArray& array) {
  std::vector<float> values(array.bytes.size() / 4);
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

HostArray random_array(const Shape& shape, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = RandomSequence{seed, 0}.normal(static_cast<std::int64_t>(i));
  return array_of(shape, values);
}

// A job on files of this test.
ConvJob job_of(const SafeTensors& contents) {
  ConvJob job;
  job.in = temp_path("conv_in.safetensors");
  job.out = temp_path("conv_out.safetensors");
  job.repeat = 1;
  write_safetensors(job.in, contents);
  return job;
}

std::string error_of(const ConvJob& job) {
  try {
    run_conv(job);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_within(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas not: " << part;
}

// Every element of a result against the sum in double.
void expect_reference(const ConvProblem& problem, ConvPass pass, const HostArray& result, const float* x,
                      const float* w, const float* y, const float* bias) {
  const std::vector<float> values = values_of(result);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = conv_reference(problem, pass, x, w, y, bias, static_cast<std::int64_t>(i));
    difference += std::pow(values[i] - expected, 2), norm += expected * expected;
  }
  EXPECT_LE(std::sqrt(difference / norm), promise(problem.precision, pass)) << to_string(pass);
}

}  // namespace

// 1 2 3     1 0              1+5 2+6       6  8
// 4 5 6  *  0 1  + bias 10:  4+8 5+9  ->  12 14  + 10
// 7 8 9
TEST(Conv, ByHand) {
  SafeTensors contents;
  contents.arrays["input"] = array_of({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  contents.arrays["weight"] = array_of({1, 1, 2, 2}, {1, 0, 0, 1});
  contents.arrays["bias"] = array_of({1}, {10});
  contents.arrays["grad_output"] = array_of({1, 1, 2, 2}, {1, 2, 3, 4});
  ConvJob job = job_of(contents);
  job.engine = "gemm";  // whose sums of small whole numbers are exact
  const ConvReport report = run_conv(job);
  const SafeTensors results = read_safetensors(job.out);
  EXPECT_EQ(report.written, (std::vector<std::string>{"grad_bias", "grad_input", "grad_weight", "output"}));
  EXPECT_EQ(report.passes.size(), 3u);
  EXPECT_EQ(values_of(results.arrays.at("output")), (std::vector<float>{16, 18, 22, 24}));
  EXPECT_EQ(values_of(results.arrays.at("grad_input")), (std::vector<float>{1, 2, 0, 3, 5, 2, 0, 3, 4}));
  EXPECT_EQ(values_of(results.arrays.at("grad_weight")), (std::vector<float>{37, 47, 67, 77}));
  EXPECT_EQ(values_of(results.arrays.at("grad_bias")), std::vector<float>{10});
}

TEST(Conv, EveryEngineAgreesWithTheReference) {
  ConvProblem problem{.batch = 2, .channels = 4, .height = 9, .width = 7, .filters = 6, .kernel_h = 3, .kernel_w = 2};
  problem.stride_h = 2, problem.pad_h = 1, problem.pad_w = 2, problem.groups = 2;
  SafeTensors contents;
  contents.arrays["input"] = random_array(problem.input_shape(), 1);
  contents.arrays["weight"] = random_array(problem.weight_shape(), 2);
  contents.arrays["bias"] = random_array({problem.filters}, 3);
  contents.arrays["grad_output"] = random_array(problem.output_shape(), 4);
  const std::vector<float> x = values_of(contents.arrays["input"]), w = values_of(contents.arrays["weight"]);
  const std::vector<float> bias = values_of(contents.arrays["bias"]),
                           grad_y = values_of(contents.arrays["grad_output"]);

  for (const auto& engine : make_conv_engines({})) {
    SCOPED_TRACE(std::string(engine->name()));
    if (!engine->supports(problem, ConvPass::forward)) continue;
    ConvJob job = job_of(contents);
    job.engine = engine->name();
    job.stride = {2, 1}, job.pad = {1, 2}, job.groups = 2;
    const ConvReport report = run_conv(job);
    EXPECT_EQ(report.problem, problem);
    EXPECT_TRUE(report.passes.front().engine.starts_with(engine->name())) << report.passes.front().engine;
    const SafeTensors results = read_safetensors(job.out);
    expect_reference(problem, ConvPass::forward, results.arrays.at("output"), x.data(), w.data(), nullptr, bias.data());
    expect_reference(problem, ConvPass::backward_input, results.arrays.at("grad_input"), nullptr, w.data(),
                     grad_y.data(), nullptr);
    expect_reference(problem, ConvPass::backward_weight, results.arrays.at("grad_weight"), x.data(), nullptr,
                     grad_y.data(), nullptr);
  }
}

// The file holds f32 on both sides.
TEST(Conv, StoresArraysIn16Bits) {
  ConvProblem problem{.batch = 2, .channels = 4, .height = 9, .width = 7, .filters = 6, .kernel_h = 3, .kernel_w = 2};
  SafeTensors contents;
  contents.arrays["input"] = random_array(problem.input_shape(), 1);
  contents.arrays["weight"] = random_array(problem.weight_shape(), 2);
  contents.arrays["grad_output"] = random_array(problem.output_shape(), 4);
  const auto rounded = [](const HostArray& array) {
    std::vector<float> values = values_of(array);
    for (float& value : values) value = to_float(from_float<Bf16>(value));
    return values;
  };
  const std::vector<float> x = rounded(contents.arrays["input"]), w = rounded(contents.arrays["weight"]);
  const std::vector<float> grad_y = rounded(contents.arrays["grad_output"]);
  ConvJob job = job_of(contents);
  job.precision = Precision::bf16;
  const ConvReport report = run_conv(job);
  EXPECT_GT(report.passes.front().workspace, 0u);
  const SafeTensors results = read_safetensors(job.out);
  for (const char* name : {"output", "grad_input"})
    EXPECT_EQ(values_of(results.arrays.at(name)), rounded(results.arrays.at(name))) << name;
  EXPECT_NE(values_of(results.arrays.at("grad_weight")), rounded(results.arrays.at("grad_weight")));
  expect_reference(report.problem, ConvPass::forward, results.arrays.at("output"), x.data(), w.data(), nullptr,
                   nullptr);
  expect_reference(report.problem, ConvPass::backward_input, results.arrays.at("grad_input"), nullptr, w.data(),
                   grad_y.data(), nullptr);
  expect_reference(report.problem, ConvPass::backward_weight, results.arrays.at("grad_weight"), x.data(), nullptr,
                   grad_y.data(), nullptr);
}

TEST(Conv, WritesOnlyOutputWithoutGradOutput) {
  SafeTensors contents;
  contents.arrays["input"] = random_array({1, 1, 3, 3}, 1);
  contents.arrays["weight"] = random_array({1, 1, 3, 3}, 2);
  const ConvReport report = run_conv(job_of(contents));
  EXPECT_EQ(report.written, std::vector<std::string>{"output"});
}

TEST(Conv, JsonHoldsPrintedResults) {
  SafeTensors contents;
  contents.arrays["input"] = random_array({2, 4, 5, 6}, 1);
  contents.arrays["weight"] = random_array({6, 2, 3, 3}, 2);
  contents.arrays["grad_output"] = random_array({2, 6, 3, 2}, 3);
  const ConvJob job = job_of(contents);
  const std::vector<std::string> arguments{"conv",  job.in, job.out,    "--engine", "gemm",     "--stride", "2,3",
                                           "--pad", "1",    "--groups", "2",        "--repeat", "3"};
  std::vector<std::string> with_json = arguments;
  with_json.insert(with_json.end(), {"--json", "-"});
  const Finished words = run_program(arguments), run = run_program(with_json);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  expect_within("2x4x5x6 * 6x2x3x3 stride 2x3 pad 1 groups 2, fp32", words.out);
  const auto facts = nlohmann::json::parse(run.out);
  EXPECT_EQ(facts.at("input"), (Shape{2, 4, 5, 6}));
  EXPECT_EQ(facts.at("output"), (Shape{2, 6, 3, 2}));
  EXPECT_EQ(facts.at("stride"), (std::vector<int>{2, 3}));
  EXPECT_EQ(facts.at("groups"), 2);
  EXPECT_EQ(facts.at("precision"), "fp32");
  EXPECT_EQ(facts.at("repeat"), 3);
  EXPECT_EQ(facts.at("written").size(), 4u);
  ASSERT_EQ(facts.at("passes").size(), 3u);
  for (const auto& pass : facts.at("passes")) {
    EXPECT_EQ(pass.at("engine"), "gemm");
    EXPECT_GT(pass.at("ms").get<double>(), 0);
    EXPECT_EQ(pass.at("median_ms"), pass.at("ms"));
    EXPECT_LE(pass.at("p10_ms").get<double>(), pass.at("p90_ms").get<double>());
    EXPECT_EQ(pass.at("samples"), 3);
    EXPECT_TRUE(pass.at("workspace_bytes").is_number_unsigned());
    expect_within(pass.at("pass").get<std::string>() + " ", words.out);
  }

  with_json[1] = "none.safetensors";
  const Finished failed = run_program(with_json);
  EXPECT_EQ(failed.code, 3);
  EXPECT_EQ(failed.out, "");
  expect_within("none.safetensors", failed.err);
}

TEST(Conv, ReportsShapeMismatch) {
  SafeTensors fine;
  fine.arrays["input"] = random_array({1, 4, 5, 5}, 1);
  fine.arrays["weight"] = random_array({6, 4, 3, 3}, 2);
  const auto error_with = [&fine](const std::string& name, const Shape& shape) {
    SafeTensors contents = fine;
    contents.arrays[name] = random_array(shape, 3);
    return error_of(job_of(contents));
  };
  EXPECT_EQ(error_of(job_of(fine)), "");
  expect_within("'input' is 4x5x5; it must have 4 axes, (batch, channels, height, width)",
                error_with("input", {4, 5, 5}));
  expect_within("'weight' 6x3x3x3 reads 3 channels a group; 'input' 1x4x5x5 in 1 group has 4",
                error_with("weight", {6, 3, 3, 3}));
  expect_within("'bias' is 5; for this convolution it must be 6", error_with("bias", {5}));
  expect_within("'grad_output' is 1x6x5x5; for this convolution it must be 1x6x3x3",
                error_with("grad_output", {1, 6, 5, 5}));
  expect_within("does not fit the input", error_with("weight", {6, 4, 7, 7}));
  expect_within("batch is 0", error_with("input", {0, 4, 5, 5}));
  expect_within("unknown array 'grad_outputs'", error_with("grad_outputs", {1}));

  SafeTensors contents = fine;
  contents.arrays.erase("weight");
  expect_within("has no 'weight'", error_of(job_of(contents)));
  contents = fine;
  contents.arrays["input"].type = DType::i32;
  expect_within("'input' has dtype I32", error_of(job_of(contents)));

  ConvJob job = job_of(fine);
  job.groups = 3;
  expect_within("cannot be split into 3 equal groups", error_of(job));
  job = job_of(fine);
  job.engine = "gemn";
  expect_within("unknown convolution engine 'gemn'", error_of(job));
}

}  // namespace twiddle
