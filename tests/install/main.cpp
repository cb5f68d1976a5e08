#include <iostream>

#include "fft/batched_fft.h"
#include "models/experiment.h"

namespace {

// As docs/spectral.md has it.
void transform_planes() {
  const auto stream = twiddle::make_stream(twiddle::parse_device("cuda"));
  const auto fft = twiddle::make_batched_fft(*stream, {.height = 32, .width = 32, .count = 4096});
  const auto planes = stream->allocate(plane_bytes(fft->batch()));
  const auto spectra = stream->allocate(spectrum_bytes(fft->batch()));
  fft->forward(static_cast<const float*>(planes.get()), spectra.get());
  fft->inverse(spectra.get(), static_cast<float*>(planes.get()));
  stream->synchronize();
}

}  // namespace

int main() {
  if (twiddle::parse_device("auto").kind != twiddle::Device::Kind::cpu) transform_planes();
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
  return shape == twiddle::Shape{2, 10} ? 0 : 1;
}
