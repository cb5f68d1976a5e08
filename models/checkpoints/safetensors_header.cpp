#include "models/checkpoints/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using nlohmann::json;

constexpr std::uint64_t most_elements = std::uint64_t(1) << 59;  // so that no count or byte size can overflow
constexpr std::size_t most_axes = 16, most_name_bytes = 1000;
constexpr std::array entry_fields = {"dtype", "shape", "data_offsets"};
constexpr const char* metadata_name = "__metadata__";

// Turns the parser's events into entries as they come, with no JSON tree between: a hostile header must not cost many
// times its own size.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  HeaderReader(const std::string& path, std::size_t header_bytes) : path_(path), header_bytes_(header_bytes) {}

  SafeTensorsHeader read(const std::string& text) {
    nlohmann::json_sax<json>& events = *this;
    json::sax_parse(text, &events);
    return std::move(header_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(ErrorKind::data, join(printable(path_), ": damaged: ", parts...));
  }

  // Depth 1 is the header, 2 an entry, 3 a field's list.
  bool start_object(std::size_t /*elements*/) override {
    if (depth_ > 1) fail("its header is nested too deeply");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) take_entry();
    --depth_;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 1)
      begin_entry(name);
    else
      begin_field(name);
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (depth_ == 2 && field_ == "dtype" && !in_metadata_) fail("the dtype of '", name_, "' is not a string");
    if (depth_ != 2 || in_metadata_) fail("its header holds a list where none belongs");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool string(std::string& value) override {
    if (depth_ != 2) return refuse("string");
    if (in_metadata_)
      header_.metadata[field_] = std::move(value);
    else if (field_ == "dtype")
      dtype_ = std::move(value);
    else
      return refuse("string");
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (depth_ != 3) return refuse("number");
    std::vector<std::uint64_t>& list = field_ == "shape" ? shape_ : offsets_;
    if (list.size() == most_axes) fail("'", name_, "': a list in its header has more than ", most_axes, " numbers");
    list.push_back(value);
    return true;
  }
  bool number_integer(std::int64_t value) override { return refuse(depth_ == 3 ? std::to_string(value) : "number"); }
  bool number_float(double /*value*/, const std::string& text) override {
    return refuse(depth_ == 3 ? shown(text) : "number");
  }
  bool null() override { return refuse("null"); }
  bool boolean(bool /*value*/) override { return refuse("boolean"); }
  bool binary(json::binary_t& /*value*/) override { return refuse("binary"); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& error) override {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) fail("its header holds a number beyond all bounds (at byte ", position, ")");
    fail("its header is not valid JSON (at byte ", position, " of ", header_bytes_, ")");
  }

  // A value where none of its kind belongs.
  [[noreturn]] bool refuse(const std::string& value) const {
    if (depth_ == 0) fail("its header is not a JSON object");
    if (depth_ == 1) fail("its header holds ", value, " where an entry belongs");
    if (in_metadata_) fail("its __metadata__ holds what is not a string");
    if (depth_ == 3) fail("the ", field_, " of '", name_, "' has ", value, " in it");
    fail("the ", field_, " of '", name_, "' is not a ", field_ == "dtype" ? "string" : "list");
  }

  bool is_skipped() const { return dtype_ == "I64" && name_.ends_with(".num_batches_tracked"); }

  DType parse_dtype() const {
    for (const DType type : {DType::f32, DType::i32, DType::f16, DType::bf16})
      if (dtype_ == safetensors_name(type)) return type;
    throw Error(ErrorKind::data,
                join(printable(path_), ": '", name_, "' has dtype ", shown(dtype_),
                     "; only F32, F16, BF16 and I32 can be read (in NumPy: array.astype(numpy.float32))"));
  }

  // A name is printed in messages, so it must be short and without control characters.
  void begin_entry(const std::string& name) {
    if (name.size() > most_name_bytes || name != printable(name))
      fail("a name in its header is longer than ", most_name_bytes, " bytes or has control characters");
    if (!names_.insert(name).second) fail("'", name, "' appears twice in its header");
    name_ = name;
    in_metadata_ = name == metadata_name;
    fields_.clear(), shape_.clear(), offsets_.clear();
  }

  void begin_field(const std::string& field) {
    const bool known = std::find(entry_fields.begin(), entry_fields.end(), field) != entry_fields.end();
    if (!in_metadata_ && !known) fail("'", name_, "' has unknown fields in its header");
    const bool is_new = in_metadata_ ? !header_.metadata.contains(field) : fields_.insert(field).second;
    if (!is_new) fail("'", name_, "' has a field twice in its header");
    field_ = field;
  }

  void take_entry() {
    SafeTensorsHeader::Entry entry;
    entry.name = name_;
    for (const char* field : entry_fields)
      if (!fields_.contains(field)) fail("'", name_, "' has no ", field, " in its header");

    entry.skipped = is_skipped();
    if (!entry.skipped) entry.type = parse_dtype();

    std::uint64_t elements = 1;
    for (const std::uint64_t size : shape_) {
      // An empty axis does not excuse the others: their product must not overflow either.
      const std::uint64_t factor = std::max<std::uint64_t>(size, 1);
      if (factor > most_elements / elements) fail("the shape of '", name_, "' has too many elements");
      elements *= factor;
      entry.shape.push_back(static_cast<std::int64_t>(size));
    }
    const auto element_bytes = static_cast<std::uint64_t>(entry.skipped ? 8 : size_of(entry.type));
    const std::uint64_t bytes = element_bytes * static_cast<std::uint64_t>(count_of(entry.shape));

    if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) fail("the data_offsets of '", name_, "' are not a range");
    std::tie(entry.begin, entry.end) = std::pair(offsets_[0], offsets_[1]);
    if (entry.end - entry.begin != bytes)
      fail("'", name_, "' ", to_string(entry.shape), " takes ", bytes, " bytes, its data_offsets span ",
           entry.end - entry.begin);
    header_.entries.push_back(std::move(entry));
  }

  const std::string path_;
  const std::size_t header_bytes_;
  int depth_ = 0;
  std::set<std::string> names_;
  SafeTensorsHeader header_;

  // The entry that is being read.
  std::string name_, field_, dtype_;
  bool in_metadata_ = false;
  std::set<std::string> fields_;
  std::vector<std::uint64_t> shape_, offsets_;
};

}  // namespace

const char* safetensors_name(DType type) {
  constexpr const char* names[] = {"F32", "I32", "BF16", "F16"};
  return names[static_cast<int>(type)];
}

SafeTensorsHeader parse_header(const std::string& text, const std::string& path) {
  return HeaderReader(path, text.size()).read(text);
}

void check_layout(SafeTensorsHeader& header, std::uint64_t available, const std::string& path) {
  using Entry = SafeTensorsHeader::Entry;
  const auto fail = [&path](const auto&... parts) {
    throw Error(ErrorKind::data, join(printable(path), ": damaged: ", parts...));
  };
  std::sort(header.entries.begin(), header.entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });

  std::uint64_t promised = 0;
  for (const Entry& entry : header.entries) promised = std::max(promised, entry.end);
  if (promised > available)
    fail("header promises ", format_count(static_cast<std::int64_t>(std::min<std::uint64_t>(promised, INT64_MAX))),
         " bytes of tensors, file has ", format_count(static_cast<std::int64_t>(available)), " (truncated)");

  std::uint64_t position = 0;
  for (const Entry& entry : header.entries) {
    if (entry.begin < position) fail("'", entry.name, "' overlaps another tensor");
    if (entry.begin > position)
      fail("bytes ", position, " to ", entry.begin, " before '", entry.name, "' belong to no tensor");
    position = entry.end;
  }
  if (position != available) fail(available - position, " bytes follow the last tensor");
}

std::vector<std::string> order_in_file(const ArrayTable& arrays) {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return size_of(arrays.at(name).type) == 4; });
  return names;
}

std::string format_header(const ArrayTable& arrays, const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[metadata_name] = metadata;
  std::uint64_t position = 0;
  for (const std::string& name : order_in_file(arrays)) {
    const ArrayFacts& array = arrays.at(name);
    require(name != metadata_name, "a tensor cannot be called '__metadata__' in a safetensors file");
    const std::uint64_t end = position + array.bytes();
    header[name] = {{"dtype", safetensors_name(array.type)}, {"shape", array.shape}, {"data_offsets", {position, end}}};
    position = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    require(text.size() <= most_header_bytes, "a safetensors header of ", text.size(), " bytes, names and metadata of ",
            arrays.size(), " tensors, is more than the ", most_header_bytes, " that can be read again");
    return text;
  } catch (const json::type_error&) {
    throw Error("a name or metadata text for a safetensors file is not valid UTF-8");
  }
}

}  // namespace twiddle
