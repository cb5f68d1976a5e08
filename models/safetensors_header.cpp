#include "models/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using nlohmann::json;

constexpr std::uint64_t most_elements = std::uint64_t(1) << 60;  // so that no count or byte size can overflow
constexpr std::size_t most_axes = 16, most_name_bytes = 1000;
constexpr std::array entry_fields = {"dtype", "shape", "data_offsets"};
constexpr const char* metadata_name = "__metadata__";

// Turns the parser's events into entries. An entry is taken over and dropped from the JSON tree as soon as it closes,
// so that a hostile header of 100 MB costs little more than itself.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafeTensorsHeader read(const std::string& text) {
    try {
      const auto on_event = [this](int depth, json::parse_event_t event, json& value) {
        return take(depth, event, value);
      };
      const json rest = json::parse(text, on_event);
      if (!rest.is_object()) fail("its header is not a JSON object");
    } catch (const json::parse_error& error) {
      fail("its header is not valid JSON (at byte ", error.byte, " of ", text.size(), ")");
    }
    return std::move(header_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(ErrorKind::data, join(path_, ": damaged: ", parts...));
  }

  // Depth 0 is the header, 1 an entry, 2 a field's list.
  bool take(int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::array_start && (depth != 2 || name_ == metadata_name))
      fail("its header holds a list where none belongs");
    if (event == Event::object_start && depth > 1) fail("its header is nested too deeply");
    if (event == Event::value && depth < 2) fail("its header holds ", value.type_name(), " where an entry belongs");
    if (event == Event::value && depth == 3 && ++list_length_ > most_axes)
      fail("'", name_, "': a list in its header has more than ", most_axes, " numbers");
    if (event == Event::array_start) list_length_ = 0;
    if (event == Event::key && depth == 1) begin_entry(value.get<std::string>());
    if (event == Event::key && depth == 2) begin_field(value.get<std::string>());
    if (event != Event::object_end || depth != 1) return true;
    if (name_ == metadata_name)
      take_metadata(value);
    else
      take_entry(value);
    return false;
  }

  // A name is printed in messages, so it may be neither endless nor hold what a terminal would obey.
  void begin_entry(const std::string& name) {
    const auto is_control = [](unsigned char c) { return c < 32 || c == 127; };
    if (name.size() > most_name_bytes || std::any_of(name.begin(), name.end(), is_control))
      fail("a name in its header is longer than ", most_name_bytes, " bytes or has control characters");
    if (!names_.insert(name).second) fail("'", name, "' appears twice in its header");
    name_ = name;
    fields_.clear();
  }

  void begin_field(const std::string& field) {
    if (name_ != metadata_name && std::find(entry_fields.begin(), entry_fields.end(), field) == entry_fields.end())
      fail("'", name_, "' has unknown fields in its header");
    if (!fields_.insert(field).second) fail("'", name_, "' has a field twice in its header");
  }

  void take_metadata(const json& object) {
    for (const auto& [key, value] : object.items()) {
      if (!value.is_string()) fail("its __metadata__ holds what is not a string");
      header_.metadata[key] = value.get<std::string>();
    }
  }

  void take_entry(const json& object) {
    SafeTensorsHeader::Entry entry;
    entry.name = name_;
    for (const char* field : entry_fields)
      if (!object.contains(field)) fail("'", name_, "' has no ", field, " in its header");

    const json& type = object["dtype"];
    if (!type.is_string()) fail("the dtype of '", name_, "' is not a string");
    if (type == "F32")
      entry.type = DType::f32;
    else if (type == "I32")
      entry.type = DType::i32;
    else if (type == "I64" && name_.ends_with(".num_batches_tracked"))
      entry.passed_over = true;
    else
      throw Error(ErrorKind::data, join(path_, ": '", name_, "' has dtype ", shown(type.get<std::string>()),
                                        "; only F32 and I32 can be read (in NumPy: array.astype(numpy.float32))"));

    std::uint64_t elements = 1;
    for (const std::uint64_t size : numbers(object["shape"], "shape")) {
      // An empty axis does not excuse the others: their product must not overflow either.
      const std::uint64_t factor = std::max<std::uint64_t>(size, 1);
      if (factor > most_elements / elements) fail("the shape of '", name_, "' has too many elements");
      elements *= factor;
      entry.shape.push_back(static_cast<std::int64_t>(size));
    }
    const std::uint64_t element_bytes = entry.passed_over ? 8 : 4;
    const std::uint64_t bytes = element_bytes * static_cast<std::uint64_t>(count_of(entry.shape));

    const std::vector<std::uint64_t> offsets = numbers(object["data_offsets"], "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) fail("the data_offsets of '", name_, "' are not a range");
    std::tie(entry.begin, entry.end) = std::pair(offsets[0], offsets[1]);
    if (entry.end - entry.begin != bytes)
      fail("'", name_, "' ", to_string(entry.shape), " takes ", bytes, " bytes, its data_offsets span ",
           entry.end - entry.begin);
    header_.entries.push_back(std::move(entry));
  }

  std::vector<std::uint64_t> numbers(const json& list, const char* what) const {
    if (!list.is_array()) fail("the ", what, " of '", name_, "' is not a list");
    std::vector<std::uint64_t> values;
    for (const json& value : list) {
      if (!value.is_number_unsigned())
        fail("the ", what, " of '", name_, "' has ", value.is_number() ? value.dump() : value.type_name(), " in it");
      values.push_back(value.get<std::uint64_t>());
    }
    return values;
  }

  std::string path_, name_;
  std::set<std::string> names_, fields_;
  std::size_t list_length_ = 0;
  SafeTensorsHeader header_;
};

}  // namespace

SafeTensorsHeader parse_header(const std::string& text, const std::string& path) {
  return HeaderReader(path).read(text);
}

void check_layout(SafeTensorsHeader& header, std::uint64_t available, const std::string& path) {
  using Entry = SafeTensorsHeader::Entry;
  const auto fail = [&path](const auto&... parts) {
    throw Error(ErrorKind::data, join(path, ": damaged: ", parts...));
  };
  std::sort(header.entries.begin(), header.entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });

  std::uint64_t promised = 0;
  for (const Entry& entry : header.entries) promised = std::max(promised, entry.end);
  if (promised > available)
    fail("header promises ", format_count(static_cast<std::int64_t>(std::min<std::uint64_t>(promised, INT64_MAX))),
         " bytes of tensors, file has ", format_count(static_cast<std::int64_t>(available)), " (cut short)");

  std::uint64_t position = 0;
  for (const Entry& entry : header.entries) {
    if (entry.begin < position) fail("'", entry.name, "' overlaps another tensor");
    if (entry.begin > position)
      fail("bytes ", position, " to ", entry.begin, " before '", entry.name, "' belong to no tensor");
    position = entry.end;
  }
  if (position != available) fail(available - position, " bytes follow the last tensor");
}

std::string format_header(const std::map<std::string, HostArray>& arrays,
                          const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[metadata_name] = metadata;
  std::uint64_t position = 0;
  for (const auto& [name, array] : arrays) {
    require(name != metadata_name, "a tensor cannot be called '__metadata__' in a safetensors file");
    require(array.bytes.size() == 4 * static_cast<std::size_t>(count_of(array.shape)), "'", name, "' has ",
            array.bytes.size(), " bytes, its shape ", to_string(array.shape), " takes another number");
    const std::uint64_t end = position + array.bytes.size();
    header[name] = {
        {"dtype", array.type == DType::f32 ? "F32" : "I32"}, {"shape", array.shape}, {"data_offsets", {position, end}}};
    position = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::type_error&) {
    throw Error("a name or metadata text for a safetensors file is not valid UTF-8");
  }
}

}  // namespace twiddle
