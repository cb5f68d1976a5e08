#pragma once
#include <string>
#include <vector>

#include "framework/context.h"
#include "framework/convolution.h"

namespace twiddle {

// Milliseconds per stage of an FFT convolution pass, in the columns of the fbfft paper's table 5. A and B are the
// pass's inputs, C is its output.
struct PassStages {
  double fft_a = 0, transpose_a = 0, fft_b = 0, transpose_b = 0, product = 0, transpose_c = 0, ifft_c = 0;
  double padding = 0;  // copies into and out of padded planes
  double rest = 0;     // time between the stages
  double whole = 0;
};

// Computes the stages from a profiler's entries of one pass that ran `runs` times.
PassStages stages_of(ConvPass pass, const std::vector<Profiler::Entry>& entries, int runs);

// Runs the pass a few times, each time on new operands, so that no spectra are reused.
PassStages measure_stages(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass);

}  // namespace twiddle
