#include "framework/gpu_check.h"

#include "framework/error.h"

namespace twiddle {

namespace {

// The first drivers, and the least architectures, of CUDA's major versions from 12 on.
struct Major {
  int number, driver, architecture;
};
constexpr Major majors[] = {{12, 525, 50}, {13, 580, 75}};

const Major* major_of(int runtime) {
  for (const Major& major : majors)
    if (major.number == runtime / 1000) return &major;
  return nullptr;
}

bool has_old_driver(const GpuFacts& facts) {
  return facts.driver > 0 && !is_new_enough(facts.driver, facts.runtime);
}

std::string versions(const GpuFacts& facts) {
  return join("the driver supports CUDA ", cuda_version_text(facts.driver), ", this build needs ",
              cuda_version_text(facts.runtime / 1000 * 1000));
}

std::string old_driver(const GpuFacts& facts) {
  const int major = facts.runtime / 1000;
  const Major* known = major_of(facts.runtime);
  return join("device 'cuda' requested, but no usable GPU: ", versions(facts), "\n  Update the driver",
              known ? join(" to ", known->driver, " or later") : "", ", build with CUDA ", major - 1,
              " (./demo --clean), or use --device cpu.");
}

std::string no_code(const GpuFacts& facts) {
  const Major* known = major_of(facts.runtime);
  std::string built_for;
  if (!facts.built_for.empty() && facts.architecture < facts.built_for.front())
    built_for = join("sm_", facts.built_for.front(), " and up");
  else
    for (const int architecture : facts.built_for) built_for += join(built_for.empty() ? "sm_" : ", sm_", architecture);
  const bool dropped = known && facts.architecture < known->architecture;
  return join(
      "GPU ", facts.index, " is a ", facts.name, " (sm_", facts.architecture, "); this build holds code for ",
      built_for, ".\n  ",
      dropped ? join("CUDA ", known->number, " dropped it: build with CUDA ", known->number - 1)
              : join("Build with -DCMAKE_CUDA_ARCHITECTURES=", facts.architecture, " and a CUDA toolkit that knows it"),
      ", or use --device cpu.");
}

}  // namespace

std::string why_unusable(const GpuFacts& facts) {
  if (facts.driver == 0) return "device 'cuda' requested, but this machine has no NVIDIA driver: use --device cpu";
  if (has_old_driver(facts)) return old_driver(facts);
  if (facts.count == 0)
    return join("device 'cuda' requested, but no usable GPU: ",
                facts.failure.empty() ? "this machine has none" : facts.failure, ". Use --device cpu");
  if (facts.index >= facts.count)
    return join("device 'cuda:", facts.index, "' requested, but this machine has ", facts.count,
                facts.count == 1 ? " GPU: cuda:0" : " GPUs");
  if (!facts.failure.empty())
    return join("GPU ", facts.index, facts.name.empty() ? "" : ", a " + facts.name + ",",
                " cannot be used: ", facts.failure,
                "\n  Another program may hold it; see nvidia-smi, or use --device cpu.");
  if (!facts.has_code) return no_code(facts);
  return {};
}

std::string why_no_16_bits(const GpuFacts& facts) {
  constexpr int least = 80;
  if (facts.architecture == 0 || facts.architecture >= least) return {};
  return join("GPU ", facts.index, ", a ", facts.name, ", has compute capability ", facts.architecture / 10, ".",
              facts.architecture % 10,
              "; precision bf16 and fp16 need 8.0 or higher: use --precision fp32 or tf32, or ", "--device cpu");
}

std::string why_passed_over(const GpuFacts& facts) {
  if (has_old_driver(facts)) return versions(facts);
  if (facts.count == 0) return {};
  const std::string why = why_unusable(facts);
  return why.substr(0, why.find('\n'));
}

bool is_new_enough(int driver, int runtime) {
  return driver / 1000 >= runtime / 1000;
}

std::string cuda_version_text(int version) {
  return join(version / 1000, ".", version % 1000 / 10);
}

}  // namespace twiddle
