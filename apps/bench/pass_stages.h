#pragma once
#include <string>
#include <vector>

#include "framework/context.h"
#include "framework/convolution.h"

namespace twiddle {

// Milliseconds of what a pass by spectra is made of, in the columns of the fbfft paper's table 5: A and B are what the
// pass reads, C what it writes.
struct PassStages {
  double fft_a = 0, transpose_a = 0, fft_b = 0, transpose_b = 0, product = 0, transpose_c = 0, ifft_c = 0;
  double padding = 0;  // copies into larger planes, and out of them
  double rest = 0;     // of the whole pass, between the stages
  double whole = 0;
};

// From a profiler's entries of one pass that ran `runs` times.
PassStages stages_of(ConvPass pass, const std::vector<Profiler::Entry>& entries, int runs);

// Runs the pass a few times, each on new operands, so that none of its spectra is there already.
PassStages measure_stages(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass);

}  // namespace twiddle
