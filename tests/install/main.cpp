#include <iostream>

#include "models/builder.h"
#include "models/config.h"

int main() {
  const twiddle::Config config = twiddle::load_config_text(
      "version: 1\nmodel: {input: [1, 8, 8], layers: [{conv2d: {filters: 4, kernel: 3}}, relu, {linear: {outputs: "
      "10}}]}\n",
      "inline");
  const twiddle::Model model = twiddle::build_model(config, {});
  twiddle::Context ctx;
  model.net->initialize(ctx);
  const twiddle::Variable x(twiddle::Tensor::filled(*ctx.stream, {2, 1, 8, 8}, 1));
  const twiddle::Shape shape = model.net->forward(ctx, x).value().shape();
  std::cout << "installed library: output " << twiddle::to_string(shape) << "\n";
  return shape == twiddle::Shape{2, 10} ? 0 : 1;
}
