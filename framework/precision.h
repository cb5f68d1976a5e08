#pragma once
#include <cstdint>
#include <string_view>

namespace twiddle {

// Classes of error, not of storage: the relative L2 error of a pass against a double reference on random normal data.
enum class Precision : std::uint8_t { fp32, tf32, bf16 };
double promise(Precision precision);  // 2e-6, 1e-3, 1e-2
std::string_view to_string(Precision precision);

}  // namespace twiddle
