#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace twiddle {

// Returns JSON text for files and terminals, safe for any names: ASCII, other characters as \u escapes, U+FFFD for
// bytes that are not UTF-8. All JSON text of the program is made here. indent -1: on one line.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace twiddle
