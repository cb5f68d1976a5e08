#include "apps/bench/paper_times.h"

namespace twiddle {

namespace {

constexpr ConvPass fprop = ConvPass::forward, bprop = ConvPass::backward_input, acc_grad = ConvPass::backward_weight;

}  // namespace

const std::vector<double>* PaperTimes::find(const std::string& layer, ConvPass pass) const {
  const auto found = rows.find({layer, pass});
  return found == rows.end() ? nullptr : &found->second;
}

PaperTimes fbfft_table4() {
  return {
      "Vasilache et al. 2014, table 4, Tesla K40m",
      {"K40m cuDNN 1", "K40m cuFFT"},
      {{{"L1", fprop}, {125.11, 80.98}},
       {{"L1", bprop}, {153.39, 66.49}},
       {{"L1", acc_grad}, {155.07, 69.63}},
       {{"L2b", fprop}, {354.83, 46.44}},
       {{"L2b", bprop}, {579.37, 46.25}},
       {{"L2b", acc_grad}, {416.34, 47.03}},
       {{"L3", fprop}, {130.89, 17.77}},
       {{"L3", bprop}, {245.57, 16.97}},
       {{"L3", acc_grad}, {154.96, 17.00}},
       {{"L4", fprop}, {15.13, 4.88}},
       {{"L4", bprop}, {20.80, 4.71}},
       {{"L4", acc_grad}, {18.17, 4.70}},
       {{"L5", fprop}, {39.82, 21.35}},
       {{"L5", bprop}, {28.33, 20.22}},
       {{"L5", acc_grad}, {47.84, 21.26}}},
      "The paper prints L2 with 64 filters, but its times fit 128 alone: they stand beside L2b. Its rates count the\n"
      "input's positions in place of the output's and are 1.2 to 2.6 times too high; ours are true multiply-adds."};
}

PaperTimes fbfft_table5() {
  return {
      "Vasilache et al. 2014, table 5, cuFFT convolution on a Tesla K40m",
      {"FFT A", "Trans A", "FFT B", "Trans B", "Cgemm", "Trans C", "IFFT C"},
      {{{"L1", fprop}, {0.86, 0.24, 1.13, 0.32, 15.13, 12.67, 36.46}},
       {{"L1", bprop}, {0.86, 0.24, 34.55, 10.26, 12.62, 0.39, 1.19}},
       {{"L1", acc_grad}, {1.14, 0.32, 34.60, 10.26, 12.37, 0.26, 0.91}},
       {{"L2", fprop}, {2.99, 0.98, 5.91, 2.03, 8.92, 1.67, 6.24}},
       {{"L2", bprop}, {2.99, 0.98, 5.92, 2.03, 8.85, 1.67, 6.23}},
       {{"L2", acc_grad}, {5.94, 2.04, 5.93, 2.02, 8.38, 0.83, 3.15}},
       {{"L3", fprop}, {3.07, 0.89, 3.08, 0.89, 4.40, 0.87, 3.49}},
       {{"L3", bprop}, {3.08, 0.89, 3.07, 0.90, 4.05, 0.86, 3.48}},
       {{"L3", acc_grad}, {3.07, 0.89, 3.06, 0.89, 4.03, 0.87, 3.48}},
       {{"L4", fprop}, {0.84, 0.24, 0.83, 0.24, 1.21, 0.24, 0.95}},
       {{"L4", bprop}, {0.83, 0.24, 0.83, 0.24, 1.13, 0.23, 0.94}},
       {{"L4", acc_grad}, {0.84, 0.24, 0.82, 0.24, 1.10, 0.24, 0.95}},
       {{"L5", fprop}, {7.07, 1.58, 2.39, 0.51, 6.23, 0.50, 2.54}},
       {{"L5", bprop}, {7.07, 1.59, 2.40, 0.51, 5.59, 0.51, 2.54}},
       {{"L5", acc_grad}, {2.40, 0.51, 2.38, 0.52, 6.18, 1.54, 7.51}}},
      "A and B are what a pass reads, C what it writes: fprop w x y, bprop w y x, accGrad x y w, as the planes in the\n"
      "paper's times tell. Its copies for padding are left out of its columns; ours have one of their own."};
}

PaperTimes dieleman_table() {
  return {"Dieleman 2014, GeForce GTX 680",
          {"Theano", "cuda-convnet", "his FFT"},
          {{{"th.1", fprop}, {388.9, 156.9, 117.3}},
           {{"th.2", fprop}, {233.9, 87.4, 27.1}},
           {{"th.3", fprop}, {457.5, 107.6, 52.2}},
           {{"th.4", fprop}, {133.4, 43.5, 18.6}},
           {{"th.5", fprop}, {6246.2, 1283.5, 357.8}}},
          "He times the valid convolution alone."};
}

PaperTimes mathieu_table() {
  return {"Mathieu, Henaff, LeCun 2013, GeForce GTX Titan",
          {"Torch7", "CudaConv", "their FFT"},
          {{{"ma.1", fprop}, {5, 16, 3}},
           {{"ma.1", acc_grad}, {39, 32, 2}},
           {{"ma.2", fprop}, {178, 221, 34}},
           {{"ma.2", bprop}, {197, 261, 92}},
           {{"ma.2", acc_grad}, {285, 403, 33}},
           {{"ma.3", fprop}, {74, 98, 34}},
           {{"ma.3", bprop}, {76, 108, 76}},
           {{"ma.3", acc_grad}, {116, 195, 32}},
           {{"ma.4", fprop}, {111, 146, 49}},
           {{"ma.4", bprop}, {116, 161, 116}},
           {{"ma.4", acc_grad}, {174, 280, 48}},
           {{"ma.5", fprop}, {57, 86, 49}},
           {{"ma.5", bprop}, {62, 77, 116}},
           {{"ma.5", acc_grad}, {96, 178, 47}}},
          "The first layer stands for a network's first: no gradient of its input."};
}

std::vector<PaperNetwork> fbfft_table3() {
  return {{"alexnet", "K40 cuFFT", {94.34, 96.69, 93.20, 284.23}},
          {"alexnet", "K40 cuDNN 1", {147.32, 167.79, 153.96, 469.07}},
          {"alexnet", "K40 ccn2", {99.03, 104.59, 103.29, 306.91}},
          {"overfeat_fast", "K40 cuFFT", {375.65, 460.48, 397.85, 1233.98}},
          {"overfeat_fast", "K40 cuDNN 1", {459.06, 634.26, 508.02, 1601.35}},
          {"overfeat_fast", "K40 ccn2", {433.11, 398.87, 450.82, 1282.80}}};
}

std::vector<PaperNetwork> mathieu_network() {
  return {{"mathieu", "Titan Torch7", {489, 577, 690, 1756}},
          {"mathieu", "Titan CudaConv", {717, 685, 1093, 2495}},
          {"mathieu", "Titan FFT", {235, 471, 161, 867}}};
}

}  // namespace twiddle
