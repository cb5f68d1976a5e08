#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/layer_bench.h"
#include "apps/paper_times.h"

namespace twiddle {

// One call of `twiddle bench`.
struct BenchRequest {
  BenchOptions options;
  std::vector<std::string> layers;  // by name; empty: all
  std::string models = "models";    // the folder of the networks
  int sample = 0;                   // shapes of the sweep; 0: all
  std::uint64_t seed = 1;           // of the sample
  std::string results;              // the file in which the sweep keeps what it measured
  bool print = true;                // text on standard output
  int verbosity = 0;                // -q: -1
};

// What it found, beside the text that it printed as it went.
struct BenchResult {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();  // flat objects, or one level deep
  std::string svg;                                                // empty: no picture
};

BenchResult bench_table3(const BenchRequest& request);
BenchResult bench_table4(const BenchRequest& request);
BenchResult bench_table5(const BenchRequest& request);
BenchResult bench_dieleman(const BenchRequest& request);

// Those of `all` that the request names; throws where it names another.
std::vector<BenchLayer> chosen_layers(const BenchRequest& request, const std::vector<BenchLayer>& all);

// Measures and prints layer by layer: each engine's time at each pass beside what the paper printed.
BenchResult bench_layers(const BenchRequest& request, const std::vector<BenchLayer>& layers, const PaperTimes& paper);

// Rows as comma-separated values under the names of their fields; a field of an inner object as "outer.inner".
std::string to_csv(const nlohmann::ordered_json& rows);

}  // namespace twiddle
