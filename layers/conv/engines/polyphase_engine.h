#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// A convolution of stride s as one of stride 1 over s x s times the channels: phase (a, b) of x holds its rows a, a +
// s, a + 2s ... and columns b, b + s ..., that of the kernel likewise, and their convolutions add up to y. `inner` is
// asked for stride 1 alone; its name becomes "polyphase(inner)".
// What is split stays for the next pass, within `budget` bytes.
std::unique_ptr<ConvEngine> make_polyphase_engine(std::shared_ptr<ConvEngine> inner,
                                                  std::size_t budget = std::size_t(512) << 20);

}  // namespace twiddle
