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
      "The paper prints L2 with 64 filters, but its times fit 128 alone: they are shown at L2b. Its rates count the\n"
      "input's positions instead of the output's and are 1.2 to 2.6 times too high; ours are true multiply-adds."};
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
      "A and B are what a pass reads, C what it writes: fprop w x y, bprop w y x, accGrad x y w, by the planes in the\n"
      "paper's times. Its copies for padding are left out of its columns; ours have a separate column."};
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

PaperTimes lavin_fp32() {
  return {"Lavin and Gray 2015, table 5, superclocked Titan X, fp32",
          {"cuDNN 3 ms", "cuDNN 3 TFLOP/s", "F(2x2) ms", "F(2x2) TFLOP/s", "times"},
          {{{"1", fprop}, {12.52, 3.12, 5.55, 7.03, 2.26}},
           {{"2", fprop}, {20.36, 3.83, 9.89, 7.89, 2.06}},
           {{"4", fprop}, {104.70, 1.49, 17.72, 8.81, 5.91}},
           {{"8", fprop}, {241.21, 1.29, 33.11, 9.43, 7.28}},
           {{"16", fprop}, {203.09, 3.07, 65.79, 9.49, 3.09}},
           {{"32", fprop}, {237.05, 5.27, 132.36, 9.43, 1.79}},
           {{"64", fprop}, {394.05, 6.34, 266.48, 9.37, 1.48}}},
          "It prints times of the whole network alone; its layers' are in a figure."};
}

PaperTimes lavin_fp16() {
  return {"Lavin and Gray 2015, table 6, superclocked Titan X, data in fp16, arithmetic in fp32",
          {"cuDNN 3 ms", "cuDNN 3 TFLOP/s", "F(2x2) ms", "F(2x2) TFLOP/s", "times"},
          {{{"1", fprop}, {14.58, 2.68, 5.53, 7.06, 2.64}},
           {{"2", fprop}, {20.94, 3.73, 9.83, 7.94, 2.13}},
           {{"4", fprop}, {104.19, 1.50, 17.50, 8.92, 5.95}},
           {{"8", fprop}, {241.87, 1.29, 32.61, 9.57, 7.42}},
           {{"16", fprop}, {204.01, 3.06, 62.93, 9.92, 3.24}},
           {{"32", fprop}, {236.13, 5.29, 123.12, 10.14, 1.92}},
           {{"64", fprop}, {395.93, 6.31, 242.98, 10.28, 1.63}}},
          ""};
}

PaperTimes lavin_errors() {
  return {"Lavin and Gray 2015, table 4",
          {"direct", "F(2x2)", "F(4x4)", "fp16, all"},
          {{{"vgg1.2", fprop}, {4.01e-05, 1.53e-05, 2.84e-04, 1.14e-02}},
           {{"vgg2.2", fprop}, {8.01e-05, 2.86e-05, 5.41e-04, 1.45e-02}},
           {{"vgg3.2", fprop}, {1.53e-04, 5.34e-05, 9.06e-04, 1.99e-02}},
           {{"vgg4.2", fprop}, {3.20e-04, 5.34e-05, 1.04e-03, 3.17e-02}},
           {{"vgg5", fprop}, {3.43e-04, 4.20e-05, 1.08e-03, 2.61e-02}}},
          "Its F(4x4) is of the points 0, 1, -1, 2, -2, ours of 0, 5/8, -5/8, 3/2, -3/2. It does not say\n"
          "how many images it took."};
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
