#include "data/image_list.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "data/classes.h"
#include "data/files.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr const char* blanks = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? std::string_view{} : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

ImageList::Options::Options(Params& params)
    : file(params.path("file")),
      channels(params.choice("channels", "3", {"1", "3"}) == "1" ? 1 : 3),
      classes(params.texts("classes")) {}

ImageList::ImageList(const DatasetSite& site, const Options& options)
    : file_(resolve_path(site, options.file)),
      folder_(std::filesystem::path(file_).parent_path().string()),
      channels_(options.channels),
      max_pixels_(site.max_pixels),
      classes_(options.classes) {
  number_labels(read_lines());
}

// Fills lines_ but for the labels, which are returned as written.
std::vector<std::string> ImageList::read_lines() {
  const std::vector<std::uint8_t> bytes = read_bytes(file_);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (rest.substr(0, 3) == "\xef\xbb\xbf") rest.remove_prefix(3);  // a byte-order mark
  std::vector<std::string> labels;
  for (std::int32_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    const std::size_t blank = line.find_last_of(blanks);
    if (blank == line.npos || line.find('\0') != line.npos)
      throw Error(ErrorKind::data, join(place_of(number), ": expected 'path label', found '", shown(line), "'"));
    labels.emplace_back(line.substr(blank + 1));
    lines_.push_back({number, 0, std::string(trimmed(line.substr(0, blank)))});
  }
  if (lines_.empty()) throw Error(ErrorKind::data, join(printable(file_), ": no line 'path label' in it"));
  return labels;
}

// Labels are names from `classes`, or numbers; without `classes`, the first line tells which of the two a file has.
void ImageList::number_labels(const std::vector<std::string>& labels) {
  constexpr std::int64_t most_classes = 1 << 20;
  const bool named = !classes_.empty(), numbers = whole_number(labels.front()).has_value();
  if (!named && !numbers) {
    classes_ = labels;
    std::sort(classes_.begin(), classes_.end());
    classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
  }
  const bool by_number = !named && numbers;
  std::vector<std::pair<std::string_view, std::int32_t>> order;  // names to labels, sorted
  for (const std::string& name : classes_) order.emplace_back(name, static_cast<std::int32_t>(order.size()));
  std::sort(order.begin(), order.end());

  const std::int64_t limit = by_number ? most_classes : static_cast<std::int64_t>(classes_.size());
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto name = std::lower_bound(order.begin(), order.end(), std::pair(std::string_view(labels[i]), 0));
    const bool found = name != order.end() && name->first == labels[i];
    const std::optional<std::int64_t> label = found ? name->second : whole_number(labels[i]);
    if (!label || *label < 0 || *label >= limit)
      throw Error(ErrorKind::data,
                  join(place_of(lines_[i].number), ": label '", shown(labels[i]),
                       by_number ? "' is no number from 0 to 1,048,575, as the first line's is"
                                 : join("' is none of the ", limit, " classes nor a number below ", limit)));
    lines_[i].label = static_cast<std::int32_t>(*label);
    largest = std::max(largest, *label);
  }
  classes_ = by_number ? numbered_classes(largest + 1) : printable_classes(std::move(classes_));
}

// "cats.txt:17", of a line's number.
std::string ImageList::place_of(std::int32_t number) const {
  return join(printable(file_), ":", number);
}

std::int64_t ImageList::get(std::int64_t index, Image& image) const {
  const Line& line = lines_[static_cast<std::size_t>(index)];
  try {
    image = read_image((std::filesystem::path(folder_) / line.path).string(), channels_, max_pixels_);
  } catch (const Error& error) {
    throw Error(error.kind(), join(place_of(line.number), ": ", error.what()));
  }
  return line.label;
}

std::string ImageList::where(std::int64_t index) const {
  const Line& line = lines_[static_cast<std::size_t>(index)];
  return join(place_of(line.number), " (", printable(line.path), ")");
}

std::string ImageList::describe() const {
  return join("image_list, ", format_count(size(), "image"), ", ",
              format_count(static_cast<std::int64_t>(classes_.size()), "class"), " (", printable(file_), ")");
}

}  // namespace twiddle
