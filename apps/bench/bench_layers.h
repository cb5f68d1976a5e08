#pragma once
#include <string>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// A well-known convolution from a paper or a network.
struct BenchLayer {
  std::string name;
  ConvProblem problem;
  bool first = false;  // of its network, so that the gradient of its input is not needed
  int depth = 1;       // number of such layers in the network
};

ConvProblem square_problem(int batch, int channels, int filters, int size, int kernel, int stride = 1, int pad = 0);

std::vector<BenchLayer> fbfft_layers();     // L1 .. L5 and L2b of Vasilache et al., tables 4 and 5
std::vector<BenchLayer> dieleman_layers();  // the five shapes of his table
std::vector<BenchLayer> mathieu_layers();   // the five of Mathieu et al.
std::vector<BenchLayer> alexnet_layers();   // one tower, batch 128
std::vector<BenchLayer> overfeat_layers();  // the fast one, batch 128
std::vector<BenchLayer> vgg_layers();       // one of each shape of VGG-E, with their depths, batch 64
std::vector<BenchLayer> large_kernel_layers();
std::vector<BenchLayer> depthwise_layers();  // of networks with depthwise convolutions, and NVIDIA's published shapes
std::vector<BenchLayer> every_layer();       // all of the above

}  // namespace twiddle
