#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "framework/convolution.h"
#include "layers/conv/tuner/autotuner.h"
#include "layers/conv/tuner/measuring.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {

// One convolution over arrays from a file: `input` [batch, channels, height, width], `weight` [filters, channels /
// groups, kernel_h, kernel_w], and optionally `bias` [filters] and `grad_output`. With precision bf16 or fp16 all but
// the bias are rounded to that type first.
struct ConvJob {
  std::string in, out;
  std::string engine = "rule";
  std::array<int, 2> stride = {1, 1}, pad = {0, 0};
  int dilation = 1, groups = 1;
  Precision precision = Precision::fp32;
  int repeat = 5;  // timed runs of each pass, after one untimed run
  Device device;
  std::shared_ptr<Measuring> measuring = {};  // progress messages while engine "measured" benchmarks plans
};

// The passes that ran, with their times.
struct ConvReport {
  struct Pass {
    ConvPass pass = ConvPass::forward;
    std::string engine;
    Timing timing = {};
    std::size_t workspace = 0;
    std::vector<Candidate> candidates = {};  // the benchmarked plans; empty unless "measured" ran a benchmark
  };
  ConvProblem problem;
  std::vector<Pass> passes;
  std::vector<std::string> written;  // names of the arrays in the file
};

// Writes `output` and, with grad_output, `grad_input`, `grad_weight` and `grad_bias`, all in f32. Throws an Error if
// the arrays do not fit.
ConvReport run_conv(const ConvJob& job);

}  // namespace twiddle
