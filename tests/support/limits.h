#pragma once
#include <cstddef>
#include <limits>

namespace twiddle {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t plenty = std::size_t(1) << 30;          // bytes of workspace, more than most tests need
constexpr int all_samples = std::numeric_limits<int>::max();  // makes conv_error() check every element

}  // namespace twiddle
