#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "data/files.h"
#include "data/formats/classes.h"
#include "data/formats/kinds.h"
#include "data/images/file_kind.h"
#include "framework/config/params.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// One IDX file of unsigned bytes: big-endian sizes, then the values.
struct IdxFile {
  std::vector<std::uint32_t> sizes;
  std::vector<std::uint8_t> values;
};

// Reads a file through zlib, which passes plain files through, and trusts no size before its bytes were read.
class IdxReader {
 public:
  explicit IdxReader(const std::string& path)
      : path_(path), file_size_(size_of_file(path)), file_(gzopen(path.c_str(), "rb"), &gzclose_r) {
    if (!file_) fail("cannot be opened: ", std::generic_category().message(errno));
  }

  IdxFile read(std::size_t fewest, std::size_t most, const char* what) {
    const std::vector<std::uint8_t> magic = take(4, "the header");
    if (magic[0] != 0 || magic[1] != 0) fail_by_kind(magic);
    if (magic[2] != 0x08) fail("holds values of type ", int(magic[2]), "; only unsigned bytes (type 8) can be read");
    if (magic[3] < fewest || magic[3] > most)
      fail("has ", int(magic[3]), " dimension(s), but ", what, " have ", fewest, fewest < most ? " or more" : "",
           "; are `images` and `labels` swapped?");
    IdxFile file;
    const std::vector<std::uint8_t> sizes = take(4u * magic[3], "the header");
    for (std::size_t i = 0; i < sizes.size(); i += 4)
      file.sizes.push_back(std::uint32_t(sizes[i]) << 24 | std::uint32_t(sizes[i + 1]) << 16 |
                           std::uint32_t(sizes[i + 2]) << 8 | std::uint32_t(sizes[i + 3]));
    file.values = take(count_values(file.sizes, 4 + sizes.size()), "the values");
    expect_end();
    return file;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(ErrorKind::data, join(printable(path_), ": ", parts...));
  }

  [[noreturn]] void fail_by_kind(std::vector<std::uint8_t> first_bytes) {
    const std::size_t begin = first_bytes.size();
    first_bytes.resize(bytes_of_kind);
    const int got = gzread(file_.get(), first_bytes.data() + begin, static_cast<unsigned>(bytes_of_kind - begin));
    first_bytes.resize(begin + static_cast<std::size_t>(std::max(got, 0)));
    const std::string kind = kind_of_file(first_bytes, FileUse::dataset);
    if (!kind.empty()) fail("not an IDX file but ", kind);
    fail("not an IDX file: it does not begin with two zero bytes");
  }

  std::uint64_t count_values(const std::vector<std::uint32_t>& sizes, std::uint64_t header) const {
    constexpr std::uint64_t most_an_item = std::uint64_t(1) << 28;  // so that no product below can overflow
    std::uint64_t item = 1;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 0) fail("dimension ", axis + 1, " of ", sizes.size(), " is 0: the file is empty or damaged");
      if (axis > 0 && (item *= sizes[axis]) > most_an_item) fail("damaged header: one item has over 2^28 bytes");
    }
    const std::uint64_t count = item * sizes[0];
    if (gzdirect(file_.get())) {
      if (header + count != file_size_)
        fail("damaged: the header promises ", header + count, " bytes, the file has ", file_size_);
    } else if (count > file_size_ * 1032) {  // the most that deflate can pack
      fail("damaged: the header promises ", count, " bytes, more than ", file_size_, " packed bytes can hold");
    }
    return count;
  }

  std::vector<std::uint8_t> take(std::uint64_t count, const char* what) {
    constexpr std::uint64_t chunk = 16 << 20;  // memory is taken as data comes, not by what the header claims
    std::vector<std::uint8_t> bytes;
    while (bytes.size() < count) {
      const std::size_t begin = bytes.size();
      bytes.resize(begin + std::min(chunk, count - begin));
      const int got = gzread(file_.get(), bytes.data() + begin, static_cast<unsigned>(bytes.size() - begin));
      if (got <= 0) {
        expect_sound();
        fail("truncated in ", what, ": ", count, " bytes expected, ", begin, " found");
      }
      bytes.resize(begin + static_cast<std::size_t>(got));
    }
    return bytes;
  }

  void expect_end() {
    char beyond = 0;
    const int got = gzread(file_.get(), &beyond, 1);  // also makes zlib compare its checksum
    expect_sound();
    if (got != 0) fail("damaged: longer than its header promises");
  }

  void expect_sound() const {
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) fail("truncated: the packed data end after ", file_size_, " bytes of the file");
    if (code == Z_ERRNO) fail("cannot be read: ", std::generic_category().message(errno));
    if (code != Z_OK && code != Z_STREAM_END) fail("damaged: ", message);
  }

  std::string path_;
  std::uint64_t file_size_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

// Images and labels in MNIST's IDX format, plain or gzipped, kept in memory. Images of three dimensions are grey; of
// four [count, channels, height, width].
class Idx : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params) : images(params.path("images")), labels(params.path("labels")), classes(params) {}
    std::string images, labels;
    ClassNames classes;  // none: numbered
  };

  Idx(const DatasetSite& site, const Options& options) : classes_(options.classes.read(site)) {
    const std::vector<std::string> files = resolve_paths(site, {options.images, options.labels});
    images_file_ = files[0];
    const std::string& labels_file = files[1];
    IdxFile pictures = IdxReader(images_file_).read(3, 4, "images");
    IdxFile numbers = IdxReader(labels_file).read(1, 1, "labels");
    if (pictures.sizes[0] != numbers.sizes[0])
      throw Error(ErrorKind::data, join(printable(labels_file), ": ", numbers.sizes[0], " labels for the ",
                                        pictures.sizes[0], " images of ", printable(images_file_)));
    if (pictures.sizes.size() == 4) channels_ = static_cast<int>(pictures.sizes[1]);
    height_ = static_cast<int>(pictures.sizes[pictures.sizes.size() - 2]);
    width_ = static_cast<int>(pictures.sizes.back());
    pixels_ = std::move(pictures.values);
    labels_ = std::move(numbers.values);

    const auto largest = std::max_element(labels_.begin(), labels_.end());
    const std::string label =
        join(printable(labels_file), ": image ", largest - labels_.begin(), " has label ", int(*largest));
    if (classes_.empty()) classes_ = numbered_classes(*largest + 1), largest_label_ = label;
    if (*largest >= classes_.size())
      throw Error(ErrorKind::data, join(label, ", but `classes` names only ", classes_.size()));
  }

  std::int64_t size() const override { return std::ssize(labels_); }
  const std::vector<std::string>& classes() const override { return classes_; }

  Target get(std::int64_t index, Image& image) const override {
    expect_index(index);
    image.channels = channels_, image.height = height_, image.width = width_;
    const std::int64_t bytes = std::int64_t(channels_) * height_ * width_;
    image.pixels.assign(pixels_.begin() + index * bytes, pixels_.begin() + (index + 1) * bytes);
    return labels_[static_cast<std::size_t>(index)];
  }

  std::vector<std::int64_t> labels(std::int64_t index) const override {
    expect_index(index);
    return {labels_[static_cast<std::size_t>(index)]};
  }

  std::string where(std::int64_t index) const override {
    expect_index(index);
    return join(printable(images_file_), " image ", index);
  }

  std::string describe() const override {
    return join("idx, ", format_count(size(), "image"), " ", channels_, "x", height_, "x", width_, ", ",
                format_count(std::ssize(classes_), "class"), " (", printable(images_file_), ")");
  }

  std::string largest_label() const override { return largest_label_; }

 private:
  std::string images_file_, largest_label_;
  int channels_ = 1, height_ = 0, width_ = 0;
  std::vector<std::uint8_t> pixels_, labels_;
  std::vector<std::string> classes_;
};

}  // namespace

void add_idx(DatasetRegistry& datasets) {
  datasets.add<SourceOf<Idx>>("idx");
}

}  // namespace twiddle
