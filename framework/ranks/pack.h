#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace twiddle {

// What ranks of one program send each other, as bytes: numbers as in memory, strings and vectors after their lengths.
// Vectors hold numbers or strings.
template <class Value>
void pack_value(std::string& bytes, const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  } else {
    pack_value<std::uint64_t>(bytes, value.size());
    if constexpr (std::is_arithmetic_v<typename Value::value_type>)
      bytes.append(reinterpret_cast<const char*>(value.data()), value.size() * sizeof(typename Value::value_type));
    else
      for (const auto& each : value) pack_value(bytes, each);
  }
}

template <class... Values>
std::string pack(const Values&... values) {
  std::string bytes;
  (pack_value(bytes, values), ...);
  return bytes;
}

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : whole_(bytes.size()), rest_(bytes) {}

  template <class Value>
  Value next() {
    Value value{};
    if constexpr (std::is_same_v<Value, bool>) {
      value = next<char>() != 0;
    } else if constexpr (std::is_arithmetic_v<Value>) {
      std::memcpy(&value, take(1, sizeof value), sizeof value);
    } else {
      using Element = typename Value::value_type;
      const auto count = next<std::uint64_t>();
      if constexpr (std::is_arithmetic_v<Element>) {
        const char* const from = take(count, sizeof(Element));
        value.resize(count);
        if (count > 0) std::memcpy(value.data(), from, count * sizeof(Element));
      } else {
        while (value.size() < count) value.push_back(next<Element>());
      }
    }
    return value;
  }
  void finish() const;  // throws an Error if anything is left

 private:
  const char* take(std::uint64_t count, std::size_t size);  // throws an Error if fewer bytes are left

  std::size_t whole_;
  std::string_view rest_;
};

// The values that pack() was given, by their types: a tuple, or the value if it is one. Throws an Error if the message
// has fewer or more bytes.
template <class... Values>
auto unpack(std::string_view bytes) {
  Unpacker reader(bytes);
  std::tuple<Values...> values{reader.next<Values>()...};
  reader.finish();
  if constexpr (sizeof...(Values) == 1)
    return std::get<0>(std::move(values));
  else
    return values;
}

}  // namespace twiddle
