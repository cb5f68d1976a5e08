#include "framework/gpu_check.h"

#include <gtest/gtest.h>

namespace twiddle {
namespace {

GpuFacts good_gpu() {
  GpuFacts facts;
  facts.driver = facts.runtime = 13000;
  facts.count = 2, facts.index = 1;
  facts.name = "H200", facts.architecture = 90;
  facts.has_code = true, facts.built_for = {75, 80, 90};
  return facts;
}

TEST(GpuCheck, AcceptsUsableGpu) {
  GpuFacts facts = good_gpu();
  EXPECT_EQ(why_unusable(facts), "");
  facts.driver = 13000, facts.runtime = 13020;  // within a major version an older driver serves
  EXPECT_EQ(why_unusable(facts), "");
  facts.driver = 14010;
  EXPECT_EQ(why_unusable(facts), "");
}

TEST(GpuCheck, RequiresRecentDriver) {
  GpuFacts facts = good_gpu();
  facts.driver = 0;
  EXPECT_EQ(why_unusable(facts), "device 'cuda' requested, but this machine has no NVIDIA driver: use --device cpu");
  facts.driver = 12080;
  EXPECT_EQ(why_unusable(facts),
            "device 'cuda' requested, but no usable GPU: the driver supports CUDA 12.8, this build needs 13.0\n"
            "  Update the driver to 580 or later, build with CUDA 12 (./demo --clean), or use --device cpu.");
  facts.runtime = 14020;  // a version that does not exist yet
  EXPECT_EQ(why_unusable(facts),
            "device 'cuda' requested, but no usable GPU: the driver supports CUDA 12.8, this build needs 14.0\n"
            "  Update the driver, build with CUDA 13 (./demo --clean), or use --device cpu.");
}

TEST(GpuCheck, RequiresExistingGpu) {
  GpuFacts facts = good_gpu();
  facts.index = 2;
  EXPECT_EQ(why_unusable(facts), "device 'cuda:2' requested, but this machine has 2 GPUs");
  facts.count = 1, facts.index = 1;
  EXPECT_EQ(why_unusable(facts), "device 'cuda:1' requested, but this machine has 1 GPU: cuda:0");
  facts.count = 0;
  EXPECT_EQ(why_unusable(facts), "device 'cuda' requested, but no usable GPU: this machine has none. Use --device cpu");
  facts.failure = "no CUDA-capable device is detected";
  EXPECT_EQ(why_unusable(facts),
            "device 'cuda' requested, but no usable GPU: no CUDA-capable device is detected. Use --device cpu");
}

TEST(GpuCheck, RequiresCodeForGpu) {
  GpuFacts facts = good_gpu();
  facts.index = 0, facts.name = "GTX 1080", facts.architecture = 61, facts.has_code = false;
  EXPECT_EQ(why_unusable(facts),
            "GPU 0 is a GTX 1080 (sm_61); this build holds code for sm_75 and up.\n"
            "  CUDA 13 dropped it: build with CUDA 12, or use --device cpu.");
  facts.name = "RTX 2080", facts.architecture = 75, facts.built_for = {90};
  EXPECT_EQ(why_unusable(facts),
            "GPU 0 is a RTX 2080 (sm_75); this build holds code for sm_90 and up.\n"
            "  Build with -DCMAKE_CUDA_ARCHITECTURES=75 and a CUDA toolkit that knows it, or use --device cpu.");
  facts.name = "GPU of tomorrow", facts.architecture = 150, facts.built_for = {80, 90};
  EXPECT_EQ(why_unusable(facts),
            "GPU 0 is a GPU of tomorrow (sm_150); this build holds code for sm_80, sm_90.\n"
            "  Build with -DCMAKE_CUDA_ARCHITECTURES=150 and a CUDA toolkit that knows it, or use --device cpu.");
}

TEST(GpuCheck, ReportsUnusableGpu) {
  GpuFacts facts = good_gpu();
  facts.has_code = false, facts.failure = "out of memory";
  EXPECT_EQ(why_unusable(facts),
            "GPU 1, a H200, cannot be used: out of memory\n"
            "  Another program may hold it; see nvidia-smi, or use --device cpu.");
}

TEST(GpuCheck, Requires8_0For16Bits) {
  GpuFacts facts = good_gpu();
  EXPECT_EQ(why_no_16_bits(facts), "");
  facts.architecture = 80;
  EXPECT_EQ(why_no_16_bits(facts), "");
  facts.name = "Tesla T4", facts.architecture = 75;
  EXPECT_EQ(
      why_no_16_bits(facts),
      "GPU 1, a Tesla T4, has compute capability 7.5; precision bf16 and fp16 need 8.0 or higher: use --precision "
      "fp32 or tf32, or --device cpu");
  EXPECT_EQ(why_no_16_bits({}), "");  // no GPU
}

TEST(GpuCheck, AutoReportsSkippedGpu) {
  GpuFacts facts = good_gpu();
  EXPECT_EQ(why_passed_over(facts), "");
  facts.index = 0, facts.name = "GTX 1080", facts.architecture = 61, facts.has_code = false;
  EXPECT_EQ(why_passed_over(facts), "GPU 0 is a GTX 1080 (sm_61); this build holds code for sm_75 and up.");
  facts.driver = 12080, facts.count = 0;  // a driver that is too old counts none
  EXPECT_EQ(why_passed_over(facts), "the driver supports CUDA 12.8, this build needs 13.0");
}

TEST(GpuCheck, AutoIsSilentWithoutGpu) {
  GpuFacts facts = good_gpu();
  facts.count = 0, facts.failure = "no CUDA-capable device is detected";
  EXPECT_EQ(why_passed_over(facts), "");
  EXPECT_EQ(why_passed_over({}), "");  // nor a driver
}

}  // namespace
}  // namespace twiddle
