#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "data/target.h"

namespace twiddle {

// How well a network does on a dataset, in numbers. NaN: not measured, as top1 where images have several labels.
struct Scores {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double loss = unknown;
  double top1 = unknown, top5 = unknown;  // shares of the images whose label came first, or among the first five
  double map = unknown;                   // mean average precision, as average_precision() has it
  double psnr = unknown;                  // mean peak signal-to-noise ratio of the images, in decibels
};

// One of the scores, under the name that metrics.jsonl (val_NAME), --json and the terminal have for it.
struct Metric {
  enum class Unit : std::uint8_t { none, share, decibels };
  const char *name, *title;  // "top1", "top-1"
  double Scores::*score;
  Unit unit;
  bool larger_is_better;

  double of(const Scores& scores) const { return scores.*score; }
  bool better(double value, double than) const { return larger_is_better ? value > than : value < than; }
  std::string text(double value) const;  // "0.4120", "97.64%", "24.31 dB"
};

// All there are.
const std::vector<Metric>& every_metric();

// Those of a network with such targets: the loss first, then the one that its best epoch is chosen by.
std::vector<Metric> metrics_of(TargetKind kind);

}  // namespace twiddle
