#pragma once
#include <string>
#include <vector>

#include "framework/tensor.h"
#include "models/config/config.h"

namespace twiddle {

class ConvTuner;
class FrequencyBuffers;
class Sequential;
class Trainer;
struct MemoryPlan;
struct Model;
struct TakenWeights;

// One layer, as a row of a table.
struct LayerFacts {
  std::string name, kind, options;
  Shape input, output;
  std::int64_t parameters = 0;
  double flops = 0;                  // of the forward pass of one image
  std::size_t activation_bytes = 0;  // of one image's output
};
std::vector<LayerFacts> layer_facts(const Sequential& net);
std::int64_t parameter_count(const Sequential& net);
std::string parameters_text(const Sequential& net);  // "1,240 parameters, 1,000 of them frozen"
std::int64_t decayed_count(const Sequential& net);   // number of parameters that weight decay applies to
double flops_per_image(const Sequential& net);
std::string layers_text(const Sequential& net);  // "10 layers"
std::string format_flops(double flops);          // "4.6 MFLOP", "3.2 kFLOP"
std::string format_megaflops(double flops);      // "4.6"; "-" if none are counted

// Returns a table: name  kind  input  output  parameters  MFLOP/image  activation/image.
std::string layer_table(const Sequential& net);

// Returns "learning rate 0.1, cosine, warm-up 5 epochs", and whether the run ends before the warm-up.
std::string rates_text(const Config::Train& train);

// Returns "memory at batch 128: weights 233 MiB + gradients ... = 1.44 GiB".
std::string memory_line(const MemoryPlan& plan, std::int64_t batch);

// Returns a table of the weights that a network loaded from a file. Consecutive fully loaded layers share a line.
std::string weights_table(const TakenWeights& weights);

// Returns the memory that all FFT convolution engines share; null if there is no such engine.
FrequencyBuffers* spectra_of(ConvTuner& convolutions);

// One line of a run's header: device, data, model, solver.
struct Fact {
  std::string name;
  std::vector<std::string> parts;
};
std::vector<Fact> run_facts(const Config& config, Trainer& trainer);

std::size_t peak_memory_bytes();  // peak resident memory of this process, from the system

}  // namespace twiddle
