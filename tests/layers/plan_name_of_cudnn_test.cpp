#include "layers/conv/engines/plan_name_of_cudnn.h"

#include <gtest/gtest.h>

namespace twiddle {

TEST(CudnnPlanName, RoundTrips) {
  const std::pair<CudnnPlanName, const char*> ways[] = {
      {{"winograd_nonfused"}, "winograd_nonfused"},
      {{"fft", true}, "fft (tensor cores)"},
      {{"nchw", false, 0}, "nchw (engine 0)"},
      {{"nhwc", false, 18, {{11, 0}, {24, -3}}}, "nhwc (engine 18 k11=0 k24=-3)"}};
  for (const auto& [way, text] : ways) {
    EXPECT_EQ(to_string(way), text);
    EXPECT_EQ(parse_cudnn_plan_name(text), way) << text;
  }
}

TEST(CudnnPlanName, InvalidNameIsRejected) {
  for (const char* text :
       {"", " (engine 1)", "nchw (", "nchw ()", "nchw (engine)", "nchw (engine x)", "nchw (engine -1)",
        "nchw (engine 1", "nchw (engine 1 k)", "nchw (engine 1 k2=)", "nchw (engine 1 k2=3", "nchw (engine 1 k2=3) ",
        "nchw (engine 1  k2=3)", "nchw (engine 1 q2=3)", "fft (tensor)", "nchw (engine 99999999999999999999)",
        "nchw (engine 1 k99999999999=0)"})
    EXPECT_FALSE(parse_cudnn_plan_name(text)) << text;
}

}  // namespace twiddle
