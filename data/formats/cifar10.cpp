#include <algorithm>
#include <filesystem>
#include <fstream>

#include "data/files.h"
#include "data/formats/classes.h"
#include "data/formats/kinds.h"
#include "data/images/file_kind.h"
#include "framework/config/params.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr std::int64_t record_bytes = 3073, class_count = 10, cifar100_record_bytes = 3074;
constexpr const char* download = "download CIFAR-10's binary version, cifar-10-binary.tar.gz";

// What a folder without CIFAR-10's files has instead; empty if that is unknown.
std::string other_version_in(const std::filesystem::path& folder) {
  std::error_code none;
  if (std::filesystem::exists(folder / "fine_label_names.txt", none) ||
      std::filesystem::exists(folder / "train.bin", none))
    return "CIFAR-100's binary version, which has labels of two kinds";
  if (std::filesystem::exists(folder / "data_batch_1", none)) return "the Python version";
  if (std::filesystem::exists(folder / "data_batch_1.mat", none)) return "the Matlab version";
  return "";
}

// data_batch_*.bin in order, or test_batch.bin.
std::vector<std::string> files_of_split(const std::string& folder, const std::string& split) {
  std::vector<std::string> files;
  std::error_code code;
  for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool fits = split == "test" ? name == "test_batch.bin" : name.rfind("data_batch_", 0) == 0;
    if (fits && entry->path().extension() == ".bin") files.push_back(entry->path().string());
  }
  if (code) throw Error(ErrorKind::data, join("cannot read folder '", printable(folder), "': ", code.message()));
  if (files.empty()) {
    const std::string other = other_version_in(folder);
    throw Error(ErrorKind::data, join("folder '", printable(folder), "' holds no ",
                                      split == "test" ? "test_batch.bin" : "data_batch_*.bin",
                                      other.empty() ? "" : " but " + other, "; ", download));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Explains why a file of the given size is not a CIFAR-10 file.
std::string misfit(const std::string& path, std::int64_t bytes) {
  const std::string kind = kind_of_file(read_first_bytes(path, bytes_of_kind), FileUse::dataset);
  if (!kind.empty()) return "not CIFAR-10's binary version but " + kind;
  if (bytes > 0 && bytes % cifar100_record_bytes == 0)
    return join(format_count(bytes / cifar100_record_bytes, "record"), " of ", cifar100_record_bytes,
                " bytes: this is CIFAR-100; ", download);
  return join(bytes, " bytes are not a multiple of ", record_bytes, ", the size of a CIFAR-10 record",
              "; the file is truncated or of another kind");
}

std::vector<std::string> read_class_names(const std::filesystem::path& file) {
  constexpr std::uint64_t most_bytes = 1 << 16;
  std::vector<std::string> names;
  std::error_code code;
  const bool plausible =
      std::filesystem::is_regular_file(file, code) && std::filesystem::file_size(file, code) < most_bytes;
  std::ifstream lines(plausible ? file : std::filesystem::path());
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() == class_count) return printable_classes(names);
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

// CIFAR-10's binary version, kept in memory: records of a label byte and 3 x 32 x 32 bytes.
class Cifar10 : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params)
        : paths(params.paths("path")), split(params.choice("split", "", {"train", "test"})) {
      const ConfigNode* path = params.node("path");
      if (path == nullptr) params.error("path", "cifar10 needs `path`: the folder with the .bin files, or such files");
      if (path != nullptr && path->kind == ConfigNode::Kind::sequence && path->items.empty())
        params.error("path", "cifar10: `path` is an empty list");
    }
    std::vector<std::string> paths;
    std::string split;  // of a folder; empty: not given
  };

  Cifar10(const DatasetSite& site, const Options& options) {
    std::vector<std::string> paths = resolve_paths(site, options.paths);
    if (std::filesystem::is_directory(paths.front()) && paths.size() == 1)
      paths = files_of_split(paths.front(), options.split);
    else if (!options.split.empty())
      throw Error(ErrorKind::config, "cifar10: `split` chooses among a folder's files, but `path` names files itself");
    for (const std::string& path : paths) read(path);
    classes_ = read_class_names(std::filesystem::path(paths.front()).parent_path() / "batches.meta.txt");
  }

  std::int64_t size() const override { return files_.back().end; }
  const std::vector<std::string>& classes() const override { return classes_; }

  Target get(std::int64_t index, Image& image) const override {
    expect_index(index);
    const auto record = records_.begin() + index * record_bytes;
    image.channels = 3, image.height = image.width = 32;
    image.pixels.assign(record + 1, record + record_bytes);
    return *record;
  }

  std::vector<std::int64_t> labels(std::int64_t index) const override {
    expect_index(index);
    return {records_[static_cast<std::size_t>(index * record_bytes)]};
  }

  std::string where(std::int64_t index) const override {
    expect_index(index);
    const auto is_before = [](std::int64_t image, const File& file) { return image < file.end; };
    const auto file = std::upper_bound(files_.begin(), files_.end(), index, is_before);
    return join(printable(file->path), " image ", index - (file == files_.begin() ? 0 : (file - 1)->end));
  }

  std::string describe() const override {
    return join("cifar10, ", format_count(size(), "image"), " 3x32x32, 10 classes (", printable(files_.front().path),
                files_.size() > 1 ? join(" and ", files_.size() - 1, " more") : "", ")");
  }

 private:
  struct File {
    std::string path;
    std::int64_t end;  // the first image after it, counted over all files
  };

  void read(const std::string& path) {
    const std::uint64_t bytes = size_of_file(path);
    if (bytes == 0 || bytes % record_bytes != 0)
      throw Error(ErrorKind::data, join(printable(path), ": ", misfit(path, static_cast<std::int64_t>(bytes))));
    const std::vector<std::uint8_t> records = read_bytes(path);
    for (std::size_t i = 0; i < records.size(); i += record_bytes)
      if (records[i] >= class_count)
        throw Error(ErrorKind::data, join(printable(path), ": record ", i / record_bytes, " has label ",
                                          int(records[i]), "; CIFAR-10 has labels 0 to 9"));
    records_.insert(records_.end(), records.begin(), records.end());
    files_.push_back({path, std::ssize(records_) / record_bytes});
  }

  std::vector<File> files_;
  std::vector<std::uint8_t> records_;
  std::vector<std::string> classes_;
};

}  // namespace

void add_cifar10(DatasetRegistry& datasets) {
  datasets.add<SourceOf<Cifar10>>("cifar10");
}

}  // namespace twiddle
