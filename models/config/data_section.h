#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/formats/dataset.h"
#include "framework/place.h"

namespace twiddle {

class Augment;
class Params;

// A dataset, or a contiguous range of its images, as a config names it: read, but not opened.
class DatasetChoice {
 public:
  DatasetChoice() = default;                               // none
  DatasetChoice(Params& params, const DatasetSite& site);  // what is wrong goes to the diagnostics
  bool present() const { return source_ != nullptr; }      // the config names one
  std::unique_ptr<Dataset> open() const;                   // null: the config names none
  std::vector<std::string> class_names() const;            // of its option `classes`; empty: it has none
  bool is_range() const { return first_ > 0 || count_ > 0; }
  const Place& place() const { return place_; }  // of what is said of it in the config

 private:
  std::unique_ptr<DatasetSource> source_;
  std::int64_t first_ = 0, count_ = 0;  // count 0: all that follow
  Place place_ = {};
};

// The section `data` of a config without its plain values: datasets, and the steps from an image to a network's input.
struct DataSection {
  DatasetChoice train, val;
  std::shared_ptr<const Augment> train_augment, val_augment;

  // Names of the classes by the option `classes` of data.train, else of data.val; empty if neither has it.
  std::vector<std::string> class_names() const;
};

// Opens no file. If the site has no image shape, nothing is checked against the model's input.
DataSection read_data_section(Params& data, DatasetSite site);

}  // namespace twiddle
