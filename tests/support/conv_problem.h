#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fft/grid.h"
#include "framework/convolution.h"

namespace twiddle {

// Parses a problem from the format of to_string: "16x3x224x224 * 64x3x11x11 stride 4 pad 2".
ConvProblem conv_problem(const std::string& text);
std::vector<ConvProblem> conv_problems(const std::vector<std::string>& texts);

Shape shape_of(const ConvProblem& problem, ConvOperand operand);

// The tensor that a pass writes.
const Tensor& written(ConvPass pass, const ConvOperands& operands);

// relative_error (layers/conv/tuner/conv_check.h) of the result against conv_reference on `samples` elements spread
// over it; NaN if any element is NaN, sampled or not.
double conv_error(Context& ctx, const ConvProblem& problem, ConvPass pass, const ConvOperands& operands, int samples);

// Returns the heuristic's choice: the engine's first plan. Fails if there is none.
std::shared_ptr<const ConvPlan> first_plan(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass);
// Returns the first of its plans that the tuner accepts; null if there is none.
std::shared_ptr<const ConvPlan> holding_plan(Context& ctx, const ConvEngine& engine, const ConvProblem& problem,
                                             ConvPass pass);
std::size_t scratch_bytes(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass);  // of that
// Returns the error of a plan on random operands, over all elements of the result, which is NaN before the run.
double plan_error(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass);
void run(const ConvEngine& engine, Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands);

}  // namespace twiddle
