#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// Returns a plan for `problem` of 16 bits: it casts its operands to f32, runs `plan`, and rounds the result once. Its
// scratch memory includes the casts. It shares and keeps no spectra, because each run has new casts.
std::shared_ptr<const ConvPlan> cast_around(std::shared_ptr<const ConvPlan> plan, const ConvProblem& problem,
                                            ConvPass pass);

// Returns a native plan for `problem` of 16 bits that also takes f32 tensors, such as a network's output and its
// gradient: those are cast, and a result is rounded twice.
std::shared_ptr<const ConvPlan> cast_to_16_bits(std::shared_ptr<const ConvPlan> plan, const ConvProblem& problem,
                                                ConvPass pass);

// Returns `engine` with plans for problems of 16 bits: its own if it takes_16_bits and has some, else a cast around
// each plan of the tf32 problem. A tf32 plan loses nothing by reading 16 bits: tf32 has 11 significant bits, bf16 8 and
// fp16
// 11. Some tf32 plans that transform exceed fp16's error limit; an engine's list for tf32 has its fp32 plans, too.
std::unique_ptr<ConvEngine> cast_around(std::unique_ptr<ConvEngine> engine);

}  // namespace twiddle
