#pragma once
#include <optional>
#include <string>
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/ranks/rank_lines.h"

namespace twiddle {

// Gathers strings over connections: rank 0 receives each rank's string and sends all of them to each rank.
class RankTexts {
 public:
  RankTexts(int rank, RankLine line) : rank_(rank), line_(std::move(line)) {}

  // Returns nothing if a rank disconnects, or if the limit expires before all strings arrive.
  std::optional<std::vector<std::string>> gather(const std::string& text, std::optional<double> limit,
                                                 const Communicator::WhileWaiting& listener);

 private:
  int rank_;
  RankLine line_;
};

}  // namespace twiddle
