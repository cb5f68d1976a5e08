#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// What a paper printed for its layers: milliseconds in named columns, by layer and pass.
struct PaperTimes {
  std::string source;  // paper, table and machine
  std::vector<std::string> columns;
  std::map<std::pair<std::string, ConvPass>, std::vector<double>> rows;
  std::string note;  // what to know before comparing

  const std::vector<double>* find(const std::string& layer, ConvPass pass) const;  // null: it has none
};

PaperTimes fbfft_table4();
PaperTimes fbfft_table5();  // by stages, columns as PassStages has them
PaperTimes dieleman_table();
PaperTimes mathieu_table();
PaperTimes lavin_fp32();  // all convolutions of VGG-E, by batch size: "1" .. "64"; not ms alone
PaperTimes lavin_fp16();
PaperTimes lavin_errors();  // in place of times the largest errors of elements

// Sums over all convolution layers of a network: fprop, bprop, accGrad, total.
struct PaperNetwork {
  std::string network, implementation;
  double milliseconds[4];
};
std::vector<PaperNetwork> fbfft_table3();
std::vector<PaperNetwork> mathieu_network();

}  // namespace twiddle
