#include "layers/pool_window.h"

#include "tests/support/check_layer.h"

namespace twiddle {

TEST(PoolWindow, DescribesItself) {
  EXPECT_EQ(LayerUnderTest({}, "max_pool", {{"kernel", "3"}, {"stride", "2"}}, {1, 9, 9}).layer->describe(),
            "3x3, stride 2");
  EXPECT_EQ(LayerUnderTest({}, "avg_pool", {{"kernel", "[3, 5]"}, {"stride", "[1, 2]"}, {"pad", "[0, 2]"}}, {1, 9, 9})
                .layer->describe(),
            "3x5, stride 1x2, pad 0x2");
}

// With `ceil`, each output covers at least one real value, for all sizes.
TEST(PoolWindow, EveryWindowHoldsAValue) {
  for (int size = 1; size <= 12; ++size)
    for (int kernel = 1; kernel <= 4; ++kernel)
      for (int stride = 1; stride <= 5; ++stride)
        for (int pad = 0; 2 * pad <= kernel; ++pad)
          for (const char* rounding : {"floor", "ceil"}) {
            if (kernel > size + 2 * pad) continue;
            const LayerOptions options{{"kernel", std::to_string(kernel)},
                                       {"stride", std::to_string(stride)},
                                       {"pad", std::to_string(pad)},
                                       {"rounding", rounding}};
            const Shape out = LayerUnderTest({}, "max_pool", options, {1, size, size}).layer->output_shape();
            ASSERT_GE(out[1], 1);
            ASSERT_LT((out[1] - 1) * stride - pad, size) << size << " " << kernel << " " << stride << " " << pad;
          }
}

}  // namespace twiddle
