#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace twiddle {

// JSON as text for files and terminals, whatever names stand in it: in ASCII, all other characters as \u escapes,
// U+FFFD for bytes that are no UTF-8. Every JSON text of the program is made here. indent -1: on one line.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace twiddle
