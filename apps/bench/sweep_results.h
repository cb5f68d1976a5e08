#pragma once
#include <array>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/sweep_shapes.h"

namespace twiddle {

// One engine at all three passes of one shape.
struct SweepRow {
  SweepShape shape;
  std::string engine;
  std::array<double, 3> milliseconds{};  // forward, backward_input, backward_weight
  double error = 0;                      // the largest of the three
  std::string failure;                   // empty: it was measured

  double total() const { return milliseconds[0] + milliseconds[1] + milliseconds[2]; }
};

// Everything that a sweep measured, kept line by line in a file (JSON lines) so that it can be broken off at any time
// and go on later. Rows of other machines, precisions or limits may stand in the same file and are left alone.
class SweepResults {
 public:
  // All files are read, and what is new goes to the first. `conditions`: device, precision and what else the times
  // depend on. No files: nothing is kept.
  SweepResults(const std::vector<std::string>& files, std::string conditions);
  // Under the conditions of the first row, to be looked at.
  static SweepResults recorded(const std::vector<std::string>& files);

  const std::string& conditions() const { return conditions_; }
  bool knows(const SweepShape& shape, const std::string& engine) const;
  void add(const SweepRow& row);  // on the disk when it returns
  const std::vector<SweepRow>& rows() const { return rows_; }

 private:
  SweepResults() = default;
  bool read(const std::string& file);  // false where its last line is cut short
  std::string conditions_;
  std::vector<SweepRow> rows_;
  std::set<std::pair<SweepShape, std::string>> known_;
  std::ofstream out_;
};

}  // namespace twiddle
