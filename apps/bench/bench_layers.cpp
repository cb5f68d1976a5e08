#include "apps/bench/bench_layers.h"

namespace twiddle {

ConvProblem square_problem(int batch, int channels, int filters, int size, int kernel, int stride, int pad) {
  return {.batch = batch,
          .channels = channels,
          .height = size,
          .width = size,
          .filters = filters,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

// The paper's table 4 prints 64 filters for L2, but its times and rates fit only 128, which is L2b here.
std::vector<BenchLayer> fbfft_layers() {
  return {{"L1", square_problem(128, 3, 96, 128, 11)},  {"L2", square_problem(128, 64, 64, 64, 9)},
          {"L2b", square_problem(128, 64, 128, 64, 9)}, {"L3", square_problem(128, 128, 128, 32, 9)},
          {"L4", square_problem(128, 128, 128, 16, 7)}, {"L5", square_problem(128, 384, 384, 13, 3)}};
}

std::vector<BenchLayer> dieleman_layers() {
  return {{"th.1", square_problem(64, 3, 128, 96, 16)},
          {"th.2", square_problem(64, 128, 64, 32, 8)},
          {"th.3", square_problem(128, 32, 64, 54, 6)},
          {"th.4", square_problem(128, 128, 128, 16, 8)},
          {"th.5", square_problem(128, 1024, 128, 32, 4)}};
}

std::vector<BenchLayer> mathieu_layers() {
  return {{"ma.1", square_problem(128, 3, 96, 32, 11), true},
          {"ma.2", square_problem(128, 96, 256, 32, 7)},
          {"ma.3", square_problem(128, 256, 384, 16, 5)},
          {"ma.4", square_problem(128, 384, 384, 16, 5)},
          {"ma.5", square_problem(128, 384, 384, 16, 3)}};
}

std::vector<BenchLayer> alexnet_layers() {
  return {{"alex1", square_problem(128, 3, 64, 224, 11, 4, 2), true},
          {"alex2", square_problem(128, 64, 192, 27, 5, 1, 2)},
          {"alex3", square_problem(128, 192, 384, 13, 3, 1, 1)},
          {"alex4", square_problem(128, 384, 256, 13, 3, 1, 1)},
          {"alex5", square_problem(128, 256, 256, 13, 3, 1, 1)}};
}

std::vector<BenchLayer> overfeat_layers() {
  return {{"over1", square_problem(128, 3, 96, 231, 11, 4), true},
          {"over2", square_problem(128, 96, 256, 28, 5)},
          {"over3", square_problem(128, 256, 512, 12, 3, 1, 1)},
          {"over4", square_problem(128, 512, 1024, 12, 3, 1, 1)},
          {"over5", square_problem(128, 1024, 1024, 12, 3, 1, 1)}};
}

std::vector<BenchLayer> vgg_layers() {
  return {{"vgg1.1", square_problem(64, 3, 64, 224, 3, 1, 1), true},
          {"vgg1.2", square_problem(64, 64, 64, 224, 3, 1, 1)},
          {"vgg2.1", square_problem(64, 64, 128, 112, 3, 1, 1)},
          {"vgg2.2", square_problem(64, 128, 128, 112, 3, 1, 1)},
          {"vgg3.1", square_problem(64, 128, 256, 56, 3, 1, 1)},
          {.name = "vgg3.2", .problem = square_problem(64, 256, 256, 56, 3, 1, 1), .depth = 3},
          {"vgg4.1", square_problem(64, 256, 512, 28, 3, 1, 1)},
          {.name = "vgg4.2", .problem = square_problem(64, 512, 512, 28, 3, 1, 1), .depth = 3},
          {.name = "vgg5", .problem = square_problem(64, 512, 512, 14, 3, 1, 1), .depth = 4}};
}

std::vector<BenchLayer> large_kernel_layers() {
  return {{"big.7", square_problem(128, 128, 128, 56, 7, 1, 3)},
          {"big.15", square_problem(32, 64, 64, 56, 15, 1, 7)},
          {"big.31", square_problem(32, 64, 64, 56, 31, 1, 15)}};
}

// replk1 .. 4: RepLKNet-31B's stages (Ding et al. 2022), and table31_*: two shapes of its table 1; slak51: SLaK's
// kernel (Liu et al. 2022) on the first of them; nv*: what nvSubquadratic publishes, kernels as large as the plane.
std::vector<BenchLayer> depthwise_layers() {
  const auto layer = [](const char* name, int batch, int channels, int size, int kernel) {
    ConvProblem problem = square_problem(batch, channels, channels, size, kernel, 1, kernel / 2);
    problem.groups = channels;
    return BenchLayer{name, problem};
  };
  return {
      layer("replk1", 64, 128, 56, 31),   layer("replk2", 64, 256, 28, 29),     layer("replk3", 64, 512, 14, 27),
      layer("replk4", 64, 1024, 7, 13),   layer("table31_32", 64, 384, 32, 31), layer("table31_64", 64, 384, 64, 31),
      layer("slak51", 64, 128, 56, 51),   layer("k13", 64, 192, 28, 13),        layer("convnext1", 64, 96, 56, 7),
      layer("convnext3", 64, 384, 14, 7), layer("nv16", 8, 768, 16, 15),        layer("nv32", 8, 768, 32, 31),
      layer("nv64", 8, 768, 64, 63)};
}

std::vector<BenchLayer> every_layer() {
  std::vector<BenchLayer> all;
  for (const auto& layers : {fbfft_layers(), dieleman_layers(), mathieu_layers(), alexnet_layers(), overfeat_layers(),
                             vgg_layers(), large_kernel_layers(), depthwise_layers()})
    all.insert(all.end(), layers.begin(), layers.end());
  return all;
}

}  // namespace twiddle
