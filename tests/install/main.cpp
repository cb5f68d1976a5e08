#include <iostream>
#include <vector>

#include "fft/grid.h"
#include "framework/context.h"
#include "framework/tensor.h"
#include "layers/sequential.h"
#include "models/config/experiment.h"

namespace {

// Copies numbers to the GPU, or to the CPU if there is none, and back.
bool keeps_numbers() {
  const auto stream = twiddle::make_stream(twiddle::parse_device("auto"));
  const std::vector<float> numbers{1, 2, 3};
  return twiddle::Tensor::from(*stream, {3}, numbers).to_vector(*stream) == numbers;
}

bool knows_grids() {
  const twiddle::ConvProblem problem{
      .batch = 1, .channels = 1, .height = 8, .width = 8, .filters = 1, .kernel_h = 3, .kernel_w = 3};
  return to_string(twiddle::tiled(problem, 6, 6)) == "6x6 in 2x2 tiles";
}

}  // namespace

int main() {
  const twiddle::Experiment experiment = twiddle::load_experiment_text(
      "version: 1\ndevice: cpu\nmodel: {input: [1, 8, 8], layers: [{conv2d: {filters: 4, kernel: 3}}, relu, {linear: "
      "{outputs: "
      "10}}]}\n",
      "inline");
  const twiddle::Model& model = experiment.model;
  twiddle::Context ctx;
  model.net->initialize(ctx);
  const twiddle::Variable x(twiddle::Tensor::filled(*ctx.stream, {2, 1, 8, 8}, 1));
  const twiddle::Shape shape = model.net->forward(ctx, x).value().shape();
  std::cout << "installed library: output " << twiddle::to_string(shape) << "\n";
  return shape == twiddle::Shape{2, 10} && keeps_numbers() && knows_grids() ? 0 : 1;
}
