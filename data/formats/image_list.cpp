#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "data/files.h"
#include "data/formats/classes.h"
#include "data/formats/kinds.h"
#include "data/images/file_kind.h"
#include "framework/config/params.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const char* expected_line(TargetKind target) {
  switch (target) {
    case TargetKind::label:
      return "'path label'";
    case TargetKind::labels:
      return "'path label,label,...'";
    case TargetKind::input:
      return "'path'";
    case TargetKind::image:
      return "'path target-path'";
  }
  return "";
}

// Lines "path label" of a text file; the label, after the last blank, is a number or a class name. Paths are relative
// to the list's folder and may hold blanks. By what is to be known of an image, a line may also have several labels
// with commas between them or none ("path", or "path -" where the path holds blanks), or the path of another image.
class ImageList : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params)
        : file(params.path("file")),
          channels(params.choice("channels", "3", {"1", "3"}) == "1" ? 1 : 3),
          classes(params) {}
    std::string file;
    int channels;
    ClassNames classes;  // none: taken from the file's labels
  };

  ImageList(const DatasetSite& site, const Options& options)
      : file_(resolve_path(site, options.file)),
        folder_(std::filesystem::path(file_).parent_path().string()),
        channels_(options.channels),
        max_pixels_(site.max_pixels),
        orient_(site.orient),
        target_(site.target),
        classes_(options.classes.read(site)) {
    number_labels(read_lines());
  }

  std::int64_t size() const override { return std::ssize(lines_); }
  const std::vector<std::string>& classes() const override { return classes_; }

  Target get(std::int64_t index, Image& image) const override {
    Target target(labels(index));
    const auto place = static_cast<std::size_t>(index);
    const Line& line = lines_[place];
    try {
      image = read(line.path);
      if (target_ == TargetKind::image) target.image = read(target_paths_[place]);
    } catch (const Error& error) {
      throw Error(error.kind(), join(place_of(line.number), ": ", error.what()));
    }
    return target;
  }

  std::vector<std::int64_t> labels(std::int64_t index) const override {
    expect_index(index);
    const Line& line = lines_[static_cast<std::size_t>(index)];
    const auto first = labels_.begin() + line.first_label;
    return {first, first + line.labels};
  }

  std::string where(std::int64_t index) const override {
    expect_index(index);
    const Line& line = lines_[static_cast<std::size_t>(index)];
    return join(place_of(line.number), " (", shown(line.path), ")");
  }

  std::string describe() const override {
    return join("image_list, ", format_count(size(), "image"), ", ", format_count(std::ssize(classes_), "class"), " (",
                printable(file_), ")");
  }

  std::string largest_label() const override { return largest_label_; }

 private:
  struct Line {
    std::int32_t number;                // in the file, from 1
    std::uint32_t first_label, labels;  // of labels_, and how many
    std::string path;                   // as written
  };
  struct WrittenLabel {
    std::int32_t line;  // its number
    std::string text;
  };

  // Fills lines_ except for the labels, which are returned as written.
  std::vector<WrittenLabel> read_lines() {
    const std::vector<std::uint8_t> bytes = read_bytes(file_);
    if (const std::string kind = kind_of_file(bytes, FileUse::dataset); !kind.empty())
      throw Error(ErrorKind::data, join(printable(file_), ": not an image list but ", kind));
    std::vector<WrittenLabel> labels;
    std::int32_t number = 0;
    for (const std::string_view line : lines_of(bytes)) {
      ++number;
      if (!line.empty()) read_line(line, number, labels);
    }
    if (lines_.empty())
      throw Error(ErrorKind::data, join(printable(file_), ": no line ", expected_line(target_), " in it"));
    return labels;
  }

  void read_line(std::string_view text, std::int32_t number, std::vector<WrittenLabel>& labels) {
    const std::size_t blank = text.find_last_of(blanks);
    const bool may_be_alone = target_ == TargetKind::labels || target_ == TargetKind::input;
    if ((blank == text.npos && !may_be_alone) || text.find('\0') != text.npos)
      throw Error(ErrorKind::data,
                  join(place_of(number), ": expected ", expected_line(target_), ", found '", shown(text), "'"));
    std::string_view last = blank == text.npos ? std::string_view{} : text.substr(blank + 1);
    lines_.push_back(
        {number, static_cast<std::uint32_t>(labels.size()), 0, std::string(trimmed(text.substr(0, blank)))});
    if (target_ == TargetKind::image) {
      target_paths_.emplace_back(last);
      return;
    }
    if (may_be_alone && last == "-") last = {};
    while (!last.empty()) {
      const std::size_t comma = may_be_alone ? std::min(last.find(','), last.size()) : last.size();
      labels.push_back({number, std::string(last.substr(0, comma))});
      last.remove_prefix(std::min(comma + 1, last.size()));
      ++lines_.back().labels;
    }
  }

  // Labels are names from `classes`, or numbers; without `classes`, the first one tells which of the two a file has.
  void number_labels(const std::vector<WrittenLabel>& labels) {
    const bool named = !classes_.empty(), numbers = !labels.empty() && whole_number(labels.front().text).has_value();
    if (!named && !numbers) {
      for (const WrittenLabel& label : labels) classes_.push_back(label.text);
      std::sort(classes_.begin(), classes_.end());
      classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
    }
    const bool by_number = !named && numbers;
    std::vector<std::pair<std::string_view, std::int32_t>> order;  // names to labels, sorted
    for (const std::string& name : classes_) order.emplace_back(name, static_cast<std::int32_t>(order.size()));
    std::sort(order.begin(), order.end());

    const std::int64_t limit = by_number ? most_classes : std::ssize(classes_);
    std::int64_t largest = -1;
    std::int32_t line_of_largest = 0;
    for (const auto& [line, text] : labels) {
      const auto name = std::lower_bound(order.begin(), order.end(), std::pair(std::string_view(text), 0));
      const bool found = name != order.end() && name->first == text;
      const std::optional<std::int64_t> label = found ? name->second : whole_number(text);
      if (!label || *label < 0 || *label >= limit)
        throw Error(ErrorKind::data,
                    join(place_of(line), ": label '", shown(text),
                         by_number ? "' is not a number from 0 to 1,048,575, but the first line's label is"
                                   : join("' is neither one of the ", limit, " classes nor a number below ", limit)));
      labels_.push_back(static_cast<std::int32_t>(*label));
      if (*label > largest) largest = *label, line_of_largest = line;
    }
    if (by_number) largest_label_ = join(place_of(line_of_largest), " has label ", largest);
    classes_ = by_number ? numbered_classes(largest + 1) : printable_classes(std::move(classes_));
  }

  // "cats.txt:17", of a line's number.
  std::string place_of(std::int32_t number) const { return join(printable(file_), ":", number); }

  Image read(const std::string& path) const {
    return read_image((std::filesystem::path(folder_) / path).string(), channels_, max_pixels_, orient_);
  }

  std::string file_, folder_, largest_label_;
  int channels_;
  std::int64_t max_pixels_;
  bool orient_;
  TargetKind target_;
  std::vector<Line> lines_;
  std::vector<std::int32_t> labels_;       // of all lines
  std::vector<std::string> target_paths_;  // by line, where targets are images
  std::vector<std::string> classes_;
};

}  // namespace

void add_image_list(DatasetRegistry& datasets) {
  datasets.add<SourceOf<ImageList>>("image_list");
}

}  // namespace twiddle
