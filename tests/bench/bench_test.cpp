#include "apps/bench/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "apps/bench/pass_stages.h"
#include "tests/apps/run_program.h"
#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

using Json = nlohmann::json;

std::vector<std::string> small(std::vector<std::string> arguments) {
  for (const char* more : {"--device", "cpu", "--batch-size", "1", "--milliseconds", "0"}) arguments.emplace_back(more);
  return arguments;
}

TEST(Bench, WritesRowsAsCsv) {
  const nlohmann::ordered_json rows = {{{"a", 1}, {"b", "x, \"y\""}}, {{"a", 2}, {"in", {{"c", 0.5}, {"d", "z"}}}}};
  EXPECT_EQ(to_csv(rows), "a,b,in.c,in.d\n1,\"x, \"\"y\"\"\",,\n2,,0.5,z\n");
}

TEST(LayerBench, MeasuresEveryEngineAndPass) {
  LayerBench bench({.engines = {"gemm", "fft"}, .budget_ms = 0});
  const std::vector<BenchRow> rows = bench.run({"small", square_problem(2, 3, 4, 8, 3)});
  ASSERT_EQ(rows.size(), 6u);
  for (const BenchRow& row : rows) {
    EXPECT_TRUE(row.measured()) << row.failure;
    EXPECT_GT(row.milliseconds, 0);
    EXPECT_LT(row.error, promise(Precision::fp32));
    EXPECT_EQ(row.in_step_ms > 0, row.engine == "fft");
  }
  EXPECT_EQ(bench.run({"first", square_problem(2, 3, 4, 8, 3), true}).size(), 4u);  // no gradient of its input
  EXPECT_EQ(bench.run({"strided", square_problem(2, 3, 4, 8, 3, 2)}).size(), 3u);   // gemm alone
  EXPECT_EQ(bench.vendor(), nullptr);
  ASSERT_EQ(bench.spectral().size(), 1u);
  EXPECT_EQ(bench.spectral().front()->name(), "fft");
}

TEST(LayerBench, ComputesSpeedUp) {
  LayerBench bench({.engines = {"gemm"}});
  BenchRow slow, fast, failed;
  slow.engine = "gemm", slow.milliseconds = 6;
  fast.engine = "fft", fast.milliseconds = 2;
  failed.engine = "fft", failed.failure = "out of memory";
  EXPECT_DOUBLE_EQ(speed_up(fast, {fast, slow}, bench.engines().front()), 3);
  EXPECT_DOUBLE_EQ(speed_up(failed, {failed, slow}, bench.engines().front()), 0);
  EXPECT_DOUBLE_EQ(speed_up(fast, {fast}, bench.engines().front()), 0);
  EXPECT_DOUBLE_EQ(speed_up(fast, {fast, slow}, nullptr), 0);
}

TEST(Bench, SelectsLayersByName) {
  std::set<std::string> names;
  for (const BenchLayer& layer : every_layer()) EXPECT_TRUE(names.insert(layer.name).second) << layer.name;
  BenchRequest request;
  EXPECT_EQ(chosen_layers(request, fbfft_layers()).size(), 6u);
  request.layers = {"over2", "L3"};
  const std::vector<BenchLayer> chosen = chosen_layers(request, fbfft_layers());
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].problem, overfeat_layers()[1].problem);
  EXPECT_EQ(chosen[1].name, "L3");
}

TEST(Bench, ChecksOutputPathsBeforeMeasuring) {
  for (const char* flag : {"--csv", "--svg"}) {
    const Finished run = run_program({"sweep", "--device", "cpu", "--sample", "1", flag, "/proc/no/such.file"});
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.out, "") << flag;
  }
}

TEST(Bench, PrintsMeasuredAndPublishedTimes) {
  const auto folder = fresh_folder("bench");
  const std::string csv = (folder / "table.csv").string();
  const Finished run =
      run_program(small({"table4", "--layers", "L4", "--engines", "gemm", "--csv", csv, "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Json table = Json::parse(run.out);
  EXPECT_EQ(table.at("bench"), "table4");
  ASSERT_EQ(table.at("rows").size(), 3u);
  for (const Json& row : table.at("rows")) {
    EXPECT_EQ(row.at("layer"), "L4");
    EXPECT_EQ(row.at("multiply_adds"), 128.0 * 128 * 49 * 10 * 10);
    EXPECT_GT(row.at("ms").get<double>(), 0);
    EXPECT_LT(row.at("error").get<double>(), 2e-6);
    EXPECT_EQ(row.at("paper_ms").size(), 2u);
  }
  EXPECT_EQ(table.at("rows")[0].at("paper_ms").at("K40m cuFFT"), 4.88);
  const std::string text = read_text(csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  std::filesystem::remove_all(folder);
}

TEST(Bench, PrintsOneTablePerLayer) {
  const Finished run =
      run_program(small({"mathieu", "--parts", "layers", "--layers", "ma.1", "--engines", "fft,gemm"}));
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* part : {"On a CPU", "ma.1  1x3x32x32 * 96x3x11x11", "their FFT", "together", "gemm"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part << " is not in\n" << run.out;
  EXPECT_EQ(run.out.find("backward_input "), std::string::npos) << run.out;
}

TEST(PassStages, SumToPassTime) {
  LayerBench bench({.engines = {"fft"}});
  const ConvProblem problem = square_problem(2, 3, 4, 8, 3);
  for (const ConvPass pass : every_pass) {
    const PassStages stages =
        measure_stages(bench.context(), *first_plan(*bench.spectral().front(), problem, pass), problem, pass);
    EXPECT_GT(stages.fft_a, 0);
    EXPECT_GT(stages.fft_b, 0);
    EXPECT_GT(stages.product, 0);
    EXPECT_GT(stages.ifft_c, 0);
    EXPECT_NEAR(stages.fft_a + stages.transpose_a + stages.fft_b + stages.transpose_b + stages.product +
                    stages.transpose_c + stages.ifft_c + stages.padding + stages.rest,
                stages.whole, 1e-9);
  }
}

TEST(Bench, TimesFrequencyProductsOnly) {
  const Finished run = run_program(small({"products", "--layers", "L5", "--engines", "fft,winograd", "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  std::set<std::string> engines;
  const Json result = Json::parse(run.out);
  for (const Json& row : result.at("rows")) {
    engines.insert(row.at("engine"));
    const double terms = row.at("bins").get<double>() * row.at("m").get<double>() * row.at("n").get<double>() *
                         row.at("k").get<double>();
    const double rate = row.at("operations_per_second"), seconds = row.at("ms").get<double>() / 1e3;
    EXPECT_NEAR(rate * seconds / terms, row.at("engine") == "fft" ? 8 : 2, 1e-6) << row;
    EXPECT_GT(row.at("bytes_per_second"), 0) << row;
    EXPECT_LT(row.at("error"), promise(Precision::fp32)) << row;
  }
  EXPECT_EQ(engines, (std::set<std::string>{"fft", "winograd"}));
}

TEST(Bench, SumsTimesOfNetworkConvolutions) {
  const auto folder = fresh_folder("networks");
  std::ofstream(folder / "tiny.yaml") << "version: 1\nmodel:\n  input: [3, 9, 9]\n  layers:\n"
                                         "    - conv2d: {filters: 4, kernel: 3, stride: 2}\n    - relu\n"
                                         "    - conv2d: {filters: 4, kernel: 3}\n    - linear: {outputs: 10}\n"
                                         "data: {train: {format: synthetic, images: 4, classes: 10}}\n";
  const Finished run = run_program(small({"table3", "--models", folder.string(), "--networks", "tiny", "--engines",
                                          "gemm,fft,fft+gemm", "-q", "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = Json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_GT(rows[0].at("total_ms").get<double>(), 0);
  EXPECT_TRUE(rows[1].contains("failure"));  // the first layer has strides
  EXPECT_EQ(rows[2].at("engine"), "fft+gemm");
  EXPECT_GT(rows[2].at("backward_weight_ms").get<double>(), 0);
  std::filesystem::remove_all(folder);
}

TEST(Bench, ReportsSpectrumMemory) {
  const Finished run = run_program(small({"mathieu", "--parts", "memory", "--engines", "gemm", "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = Json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[0].at("formula_bytes"), 4.0 * 16 * 17 * (96 + 256 + 96 * 256));
  EXPECT_EQ(rows[0].at("forward_bytes"), 0);  // no spectra

  const Finished whole = run_program({"mathieu", "--parts", "memory", "--engines", "gemm", "--json", "-"});
  const Json printed = Json::parse(whole.out);
  for (const Json& row : printed.at("rows"))  // the paper's table is its formula
    EXPECT_NEAR(row.at("formula_bytes").get<double>(), row.at("paper_bytes").get<double>(), 1e6) << row;

  LayerBench bench({.engines = {"fft"}});
  const ConvProblem problem = square_problem(4, 8, 16, 8, 3);
  const std::size_t forward = peak_of_spectra(bench, problem, false), step = peak_of_spectra(bench, problem, true);
  EXPECT_GT(static_cast<double>(forward), mathieu_formula_bytes(problem) / 2);
  EXPECT_GT(step, forward);  // the first pass's spectra stay for the others
}

TEST(Bench, TimesTransformsOnly) {
  const Finished run = run_program(small({"fft", "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = Json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), (8u + 7u) * 2);  // sizes of rows and of planes, there and back
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("batch"), 1);
    const double n = row.at("points"), height = row.at("dimensions") == 1 ? 1 : n;
    EXPECT_EQ(row.at("bytes"), height * (4 * n + 8 * (n / 2 + 1))) << row;
    EXPECT_NEAR(row.at("bytes_per_second").get<double>() * row.at("ms").get<double>() / 1e3, row.at("bytes"), 1);
  }
}

TEST(Bench, TimesTransformsOfConvolution) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
  const Finished run = run_program(
      {"fft", "--device", "cuda", "--parts", "conv", "--batch-size", "3", "--milliseconds", "0", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = Json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 15u * 2 * 2);  // sizes, whole planes and smaller ones, there and back
  for (const Json& row : rows) {
    const int n = row.at("points"), plane = row.at("plane");
    EXPECT_TRUE(plane == n || plane == n - 1) << row;
    EXPECT_EQ(row.at("bytes"), 3 * (4 * plane * plane + 8 * (n * n / 2 + 2))) << row;
    EXPECT_GT(row.at("ms"), 0) << row;
  }
}

TEST(Bench, RunsFbfftOnlyOnGpu) {
  const Finished run = run_program(small({"fbfft-conv"}));
  EXPECT_EQ(run.code, 4);
  EXPECT_NE(run.err.find("need a GPU"), std::string::npos) << run.err;
}

TEST(Bench, HelpListsBenchmarksAndTheirOptions) {
  const Finished all = run_program({"--help"});
  EXPECT_EQ(all.code, 0);
  for (const char* name : {"table3", "sweep", "fbfft-conv", "allreduce"})
    EXPECT_NE(all.out.find(std::string("\n  ") + name + " "), std::string::npos) << all.out;
  EXPECT_EQ(run_program({"--version"}).out.rfind("twiddle-bench ", 0), 0u);
  const Finished sweep = run_program({"sweep", "--help"});
  EXPECT_NE(sweep.out.find("--recorded"), std::string::npos) << sweep.out;
  EXPECT_EQ(sweep.out.find("--layers"), std::string::npos) << sweep.out;
}

TEST(Bench, FailsIfThreadsCannotStart) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer reserves the address space";
#endif
  const Finished run = run_shell("ulimit -v 1500000; exec \"$TWIDDLE\" table4 --threads 1000 --device cpu");
  EXPECT_EQ(run.code, 4);
  EXPECT_NE(run.err.find("error: cannot start "), std::string::npos) << run.err;
}

TEST(Bench, RefusesUnknownArguments) {
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"tabel4"}, "did you mean 'table4'?"},
      {{"table4", "--layers", "L9"}, "unknown layer 'L9'"},
      {{"table4", "--engines", "gem"}, "did you mean 'gemm'?"},
      {{"table4", "--passes", "forwards"}, "did you mean 'forward'?"},
      {{"table4", "--svg", "none.svg"}, "unknown flag '--svg'; see 'twiddle-bench table4 --help'"},
      {{"sweep", "--layers", "L1"}, "unknown flag '--layers'"},
      {{"table4", "--workspace-limit", "much"}, "found 'much'"},
      {{"table5", "--engines", "gemm"}, "computes FFT convolutions"},
      {{"products", "--engines", "gemm"}, "computes FFT convolutions"},
      {{"table3", "--models", "nowhere"}, "no folder 'nowhere'"},
      {{"fft", "--parts", "3d"}, "unknown part '3d'"},
      {{"fft", "--device", "cpu", "--parts", "2d,even"}, "part 'even' of fft needs a GPU; a CPU has 1d and 2d"},
      {{"fft", "--device", "cpu", "--parts", "conv"}, "part 'conv' of fft needs a GPU"},
      {{"--epochs", "1", "table4"}, "unknown flag '--epochs'"},
      {{"mathieu", "--parts", "layer"}, "did you mean 'layers'?"}};
  for (const auto& [arguments, message] : mistakes) {
    const Finished run = run_program(small(arguments));
    EXPECT_EQ(run.code, 2);
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace twiddle
