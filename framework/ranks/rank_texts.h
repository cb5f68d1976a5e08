#pragma once
#include <optional>
#include <string>
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/ranks/rank_lines.h"

namespace twiddle {

// Gathers texts over connections: each rank's goes to rank 0, and from there all go to each.
class RankTexts {
 public:
  RankTexts(int rank, RankLine line) : rank_(rank), line_(std::move(line)) {}

  // Nothing where not all have come within the limit, if there is one, or where one of them is gone.
  std::optional<std::vector<std::string>> gather(const std::string& text, std::optional<double> limit,
                                                 const Communicator::WhileWaiting& listener);

 private:
  int rank_;
  RankLine line_;
};

}  // namespace twiddle
