#include "fft/cpu/kernels.h"

namespace twiddle {

InstructionSet best_instruction_set() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

CpuKernels kernels_for(InstructionSet set) {
#ifdef __x86_64__
  if (set == InstructionSet::avx512) return avx512_kernels();
  if (set == InstructionSet::avx2) return avx2_kernels();
#endif
  return baseline_kernels();
}

}  // namespace twiddle
