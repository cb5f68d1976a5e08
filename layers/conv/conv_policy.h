#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "framework/precision.h"

namespace twiddle {

class Measuring;

// How plans are chosen. `engine` is "rule" (the first plan of the first engine that can and pays), "measured" (the
// fastest of all, remembered), "measured:cudnn" (the fastest of that engine's), an engine's name (its first plan) or an
// engine's and a plan's, "cudnn:fft_tiling". Only "measured" runs benchmarks. A plan that exceeds the error limit
// of the precision is never used.
struct ConvPolicy {
  std::string engine = "rule";
  Precision precision = Precision::fp32;
  std::size_t workspace_limit = std::size_t(4) << 30;
  std::size_t frequency_budget = std::size_t(4) << 30;  // for the spectra that all layers share
  bool deterministic = false;   // only plans whose results are bitwise identical from run to run
  std::string cache_file = {};  // measured choices are kept here between runs; empty: in memory alone
  bool retune = false;          // measure again what the file already knows
  bool own_batch = false;       // reuse no plan of another batch
  std::function<void(const std::string&)> warn = {};  // receives warnings: damaged file, unusable engine library
  std::string build = {};  // which one of the program this is; what another one measured does not count
  std::shared_ptr<Measuring> measuring = {};  // reports progress and stops on request; null: neither
};

}  // namespace twiddle
