#pragma once
#include <array>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/sweep_shapes.h"

namespace twiddle {

// One engine for all three passes of one shape.
struct SweepRow {
  SweepShape shape;
  std::string engine;
  std::array<double, 3> milliseconds{};  // forward, backward_input, backward_weight
  double error = 0;                      // the largest of the three
  std::string failure;                   // empty: measured

  double total() const { return milliseconds[0] + milliseconds[1] + milliseconds[2]; }
};

// The results of a sweep, appended to a JSON lines file, so that a sweep can be stopped at any time and resumed. Rows
// of other machines, precisions or limits may be in the same file and are ignored.
class SweepResults {
 public:
  // Reads all files and appends new results to the first. `conditions`: device, precision and other settings that
  // affect the times. No files: results are not saved.
  SweepResults(const std::vector<std::string>& files, std::string conditions);
  // Reads results for display, under the conditions of the first row.
  static SweepResults recorded(const std::vector<std::string>& files);

  const std::string& conditions() const { return conditions_; }
  bool knows(const SweepShape& shape, const std::string& engine) const;
  void add(const SweepRow& row);  // flushed when it returns
  const std::vector<SweepRow>& rows() const { return rows_; }

 private:
  SweepResults() = default;
  bool read(const std::string& file);  // false if the last line is truncated
  std::string conditions_;
  std::vector<SweepRow> rows_;
  std::set<std::pair<SweepShape, std::string>> known_;
  std::ofstream out_;
};

}  // namespace twiddle
