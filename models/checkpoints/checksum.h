#pragma once
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace twiddle {

// XXH3 of bytes that come in parts.
class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void add(std::string_view part) { XXH3_64bits_update(state_.get(), part.data(), part.size()); }
  std::string text() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    const std::uint64_t value = XXH3_64bits_digest(state_.get());
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(value >> shift) & 15];
    return text;
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

}  // namespace twiddle
