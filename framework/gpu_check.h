#pragma once
#include <string>
#include <vector>

namespace twiddle {

// What decides whether a GPU can be used. Versions as CUDA counts them, 13000 for 13.0; an architecture is 75 for
// sm_75.
struct GpuFacts {
  int driver = 0;   // the newest CUDA that the driver knows; 0: there is no driver
  int runtime = 0;  // the CUDA that this build was made with
  int count = 0;    // of the GPUs that CUDA sees
  int index = 0;    // of the requested GPU; the next fields describe it if it exists
  std::string name;
  int architecture = 0;
  bool has_code = false;       // the build holds code that runs on it ...
  std::vector<int> built_for;  // ... as it was made for these, from the least on
  std::string failure;         // CUDA's error message if it could not count the GPUs or open this one
};

// What CUDA says of itself and of a GPU, which this makes the thread's. A build without CUDA knows of no driver.
GpuFacts look_at_gpu(int index);

// Says what is missing and what to do; empty: nothing.
std::string why_unusable(const GpuFacts& facts);

// Says why the GPU cannot compute with arrays of 16 bits, and what to do; empty: it can, or there is no such GPU.
std::string why_no_16_bits(const GpuFacts& facts);

// Returns the reason, in one line, if there is a GPU but `auto` selects the CPU; empty: the GPU is used, or there is
// none.
std::string why_passed_over(const GpuFacts& facts);

// A driver supports all runtimes of its major version, including newer minor versions, and all older runtimes.
bool is_new_enough(int driver, int runtime);

std::string cuda_version_text(int version);  // "13.0"

}  // namespace twiddle
