#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image.h"
#include "data/target.h"
#include "framework/config/registry.h"

namespace twiddle {

class Params;

// What a dataset says of an image: its class, any number of classes, or another image.
struct Target {
  Target() = default;
  Target(std::int64_t label) : labels{label} {}  // NOLINT(google-explicit-constructor): the usual case
  explicit Target(std::vector<std::int64_t> all) : labels(std::move(all)) {}
  std::int64_t label() const { return labels.at(0); }  // of an image that has one

  std::vector<std::int64_t> labels;
  Image image;  // without pixels: none
};

// A numbered set of images and their targets. get() may be called by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // printable names, by label
  // Fills the image and returns its target; an Error of kind data names the file. The image's memory may be used again.
  virtual Target get(std::int64_t index, Image& image) const = 0;
  // Those of the target, from what is known without reading the image, if the kind of dataset can.
  virtual std::vector<std::int64_t> labels(std::int64_t index) const;
  virtual std::string where(
      std::int64_t index) const = 0;         // "train.idx image 17", "cats/0042.jpg": for messages, printable
  virtual std::string describe() const = 0;  // "idx, 1,500 images 1x8x8, 10 classes (data/digits/...)"
  // Returns the source of the number of numbered classes: "labels.idx: image 17 has label 200". Empty if they have
  // names.
  virtual std::string largest_label() const { return ""; }

 protected:
  // Throws an Error of kind data if there is no such image. Numbers of images also come from files that may be of
  // another dataset: get(), labels() and where() of every kind begin with this check.
  void expect_index(std::int64_t index) const;
};

// Returns the labels of the classes that have no image. Reads images only if the kind of dataset has no other way.
std::vector<std::int64_t> empty_classes(const Dataset& data);

// Called periodically with the number of images found so far in a folder that is being searched; may throw Interrupted.
using SearchProgress = std::function<void(const std::string& folder, std::int64_t images)>;

// What a dataset is made for: relative paths in a config are relative to the folder of the config file, then to the
// current folder.
struct DatasetSite {
  std::string config_folder;
  std::vector<std::int64_t> image_shape;  // channels, height, width of the model's input; `synthetic` makes such images
  std::int64_t model_outputs = 0;         // classes the model tells apart; 0: unknown
  TargetKind target = TargetKind::label;  // what is to be known of each image, where a format has the choice
  std::int64_t max_pixels = usual_max_pixels;
  bool orient = true;  // images by their EXIF orientation
  SearchProgress progress = {};
};
std::string resolve_path(const DatasetSite& site, const std::string& path);  // throws where neither exists
std::vector<std::string> resolve_paths(const DatasetSite& site, std::vector<std::string> paths);  // reports all missing

// What a config says of a dataset. Reading it puts what is wrong down in the diagnostics and touches no file; open()
// comes after, where nothing was wrong, and throws an Error of kind data that names file and place where a file is
// missing or damaged.
class DatasetSource {
 public:
  virtual ~DatasetSource() = default;
  virtual std::unique_ptr<Dataset> open() const = 0;
  // As the option `classes` has them, without opening the dataset; empty: the config names none.
  virtual std::vector<std::string> class_names() const { return {}; }
};

// The source of a kind of dataset that has Options, which a Params makes, and is made of (const DatasetSite&, const
// Options&).
template <class Kind>
class SourceOf : public DatasetSource {
 public:
  SourceOf(const DatasetSite& site, Params& params) : site_(site), options_(params) {}
  std::unique_ptr<Dataset> open() const override { return std::make_unique<Kind>(site_, options_); }
  std::vector<std::string> class_names() const override {
    if constexpr (requires { options_.classes.read(site_); }) return options_.classes.read(site_);
    return {};
  }

 private:
  DatasetSite site_;
  typename Kind::Options options_;
};

using DatasetRegistry = Registry<DatasetSource, const DatasetSite&, Params&>;
DatasetRegistry builtin_datasets();  // idx, cifar10, image_folder, image_list, synthetic

// Decodes a JPEG or PNG to `channels` (1 or 3) planes, `orient`: upright by its EXIF orientation; throws an Error of
// kind data with file, size and reason.
Image read_image(const std::string& path, int channels, std::int64_t max_pixels = usual_max_pixels, bool orient = true);
// The same bytes as a PNG file's contents; for reports and predictions.
std::vector<std::uint8_t> encode_png(const Image& image);

}  // namespace twiddle
