#pragma once
#include <gtest/gtest.h>

#include <string>

#include "fft/cpu/kernels.h"

namespace twiddle {

// A test that runs once per instruction set of the CPU's transforms and skips those that this processor does not
// support. Derive a suite from it and write INSTANTIATE_TEST_SUITE_P(Sets, Suite, every_instruction_set(),
// name_of_set).
class EveryInstructionSet : public testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (GetParam() > best_instruction_set()) GTEST_SKIP() << "this processor has fewer instructions";
  }
};

inline auto every_instruction_set() {
  return testing::Values(InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512);
}

inline std::string name_of_set(const testing::TestParamInfo<InstructionSet>& set) {
  return set.param == InstructionSet::baseline ? "Baseline" : set.param == InstructionSet::avx2 ? "Avx2" : "Avx512";
}

}  // namespace twiddle
