#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/bench/layer_bench.h"
#include "apps/bench/paper_times.h"
#include "apps/bench/sweep_shapes.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

struct Verb;

// The benchmarks, as the verbs of twiddle-bench.
std::vector<Verb> bench_verbs();

// One call of `twiddle-bench`.
struct BenchRequest {
  BenchOptions options;
  std::vector<std::string> layers;    // by name; empty: all
  std::vector<std::string> networks;  // of table3; empty: the paper's
  std::vector<std::string> parts;     // of mathieu, fft or winograd; empty: the default parts
  std::string models = "models";      // the folder of the networks
  int sample = 0;                     // shapes of the sweep; 0: all
  std::uint64_t seed = 1;             // of the sample
  Shard shard;                        // of the sweep's shapes
  std::vector<std::string> results;   // files with results of the sweep; new results go to the first
  bool recorded = false;              // show recorded results without measuring
  bool print = true;                  // print to standard output
  int verbosity = 0;                  // -q: -1
  std::shared_ptr<Communicator> ranks = make_one_rank();  // ranks of the allreduce benchmark
};

// The results, in addition to the printed text.
struct BenchResult {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();  // flat objects, or one level deep
  std::string svg;                                                // empty: no picture
  std::string measured_on;                                        // empty: the device and options of the request
};

BenchResult bench_table3(const BenchRequest& request);
BenchResult bench_table4(const BenchRequest& request);
BenchResult bench_table5(const BenchRequest& request);
BenchResult bench_dieleman(const BenchRequest& request);
BenchResult bench_mathieu(const BenchRequest& request);
BenchResult bench_sweep(const BenchRequest& request);
BenchResult bench_fft(const BenchRequest& request);
BenchResult bench_fbfft_conv(const BenchRequest& request);
BenchResult bench_winograd(const BenchRequest& request);
BenchResult bench_winograd_errors(const BenchRequest& request);  // its part `errors`
BenchResult bench_depthwise(const BenchRequest& request);
BenchResult bench_products(const BenchRequest& request);
BenchResult bench_ranges(const BenchRequest& request);
BenchResult bench_allreduce(const BenchRequest& request);

// Returns the requested layers, from every_layer(); `usual` if the request has none. Throws if a layer is unknown.
std::vector<BenchLayer> chosen_layers(const BenchRequest& request, const std::vector<BenchLayer>& usual);

// Measures and prints layer by layer: each engine's time for each pass, next to the paper's.
BenchResult bench_layers(const BenchRequest& request, const std::vector<BenchLayer>& layers, const PaperTimes& paper);

// way_of() returns the plan of one engine for one pass, or why it failed, as printed. to_json() returns the whole row.
std::string way_of(const BenchRow& row);
nlohmann::ordered_json to_json(const BenchRow& row, double times_as_fast, const PaperTimes& paper);

// Trains the networks of models/ with each engine. Sums each pass over all convolution layers.
BenchResult bench_networks(const BenchRequest& request, const std::vector<std::string>& networks,
                           const std::vector<PaperNetwork>& paper);

// The memory table of Mathieu et al.: by their formula, and as measured for our engine.
BenchResult bench_spectra_memory(const BenchRequest& request);
double mathieu_formula_bytes(const ConvProblem& problem);
// Returns the peak bytes of spectra and scratch that a new engine's first plan holds during a forward pass or all
// three. 0: no FFT convolution engine supports the problem.
std::size_t peak_of_spectra(LayerBench& bench, const ConvProblem& problem, bool all_passes);

// Returns rows as comma-separated values with a header; a field of an inner object is named "outer.inner".
std::string to_csv(const nlohmann::ordered_json& rows);

}  // namespace twiddle
