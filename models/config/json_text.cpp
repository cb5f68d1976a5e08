#include "models/config/json_text.h"

#include <nlohmann/json.hpp>

namespace twiddle {

namespace {

template <class Json>
std::string in_ascii(const Json& value, int indent) {
  return value.dump(indent, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) {
  return in_ascii(value, indent);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return in_ascii(value, indent);
}

}  // namespace twiddle
