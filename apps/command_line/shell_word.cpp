#include "apps/command_line/shell_word.h"

#include <string_view>

namespace twiddle {
namespace {

bool is_plain(unsigned char letter) {
  constexpr std::string_view others = "_-./:=,+@%";
  return letter >= 0x80 || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z') || others.find(static_cast<char>(letter)) != std::string_view::npos;
}

}  // namespace

std::string shell_word(const std::string& text) {
  bool plain = !text.empty();
  std::string quoted = "'";
  for (const char letter : text) {
    plain = plain && is_plain(static_cast<unsigned char>(letter));
    quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  }
  return plain ? text : quoted + "'";
}

}  // namespace twiddle
