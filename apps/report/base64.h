#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

std::string base64(const std::vector<std::uint8_t>& bytes);  // RFC 4648, padded

}  // namespace twiddle
