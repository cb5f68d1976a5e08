#pragma once
#include <string>
#include <string_view>

namespace twiddle {

// File names and file contents may have any bytes: invalid UTF-8, line ends, terminal control codes. These functions
// make them safe to print in a message, a log, a report or a comment.

// One line: U+FFFD stands for each byte that belongs to no UTF-8 character and for each character that is not to be
// seen but acts: control characters (C0, DEL, C1), separators of lines and paragraphs, marks that turn the direction
// of writing.
std::string printable(std::string_view text);

// The same for a string of several lines: '\n' and '\t' stay.
std::string printable_lines(std::string_view text);

// The same with at most 200 characters, "..." in the middle of a longer text: for a value inside a message.
std::string shown(std::string_view text);

bool is_utf8(std::string_view text);

// Returns the first character of a non-empty string: its bytes and its code, or one byte that is not valid UTF-8.
struct Character {
  std::string_view bytes;
  char32_t code = 0;
  bool is_utf8 = false;
};
Character first_character(std::string_view text);
bool is_printable(const Character& character);

}  // namespace twiddle
