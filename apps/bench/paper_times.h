#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// A paper's published times of its layers: milliseconds in named columns, by layer and pass.
struct PaperTimes {
  std::string source;  // paper, table and machine
  std::vector<std::string> columns;
  std::map<std::pair<std::string, ConvPass>, std::vector<double>> rows;
  std::string note;  // caveats of the comparison

  const std::vector<double>* find(const std::string& layer, ConvPass pass) const;  // null: not in the paper
};

PaperTimes fbfft_table4();
PaperTimes fbfft_table5();  // by stage; the columns of PassStages
PaperTimes dieleman_table();
PaperTimes mathieu_table();
PaperTimes lavin_fp32();  // all convolutions of VGG-E, by batch size "1" .. "64"; milliseconds and rates
PaperTimes lavin_fp16();
PaperTimes lavin_errors();  // largest errors of elements, not times

// Sums over all convolution layers of a network: fprop, bprop, accGrad, total.
struct PaperNetwork {
  std::string network, implementation;
  double milliseconds[4];
};
std::vector<PaperNetwork> fbfft_table3();
std::vector<PaperNetwork> mathieu_network();

}  // namespace twiddle
