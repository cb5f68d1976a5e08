#include "models/config/data_section.h"

#include "data/augmentation/augment.h"
#include "data/formats/subset.h"
#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

DatasetChoice::DatasetChoice(Params& params, const DatasetSite& site) {
  const DatasetRegistry registry = builtin_datasets();
  if (!params.has("format"))
    params.error("format", "missing key 'format' in '" + params.owner() + "'",
                 "known are: " + join_names(registry.names()));
  const std::string format = params.text("format", "");
  if (format.empty()) return;  // already in the diagnostics
  if (!registry.has(format)) {
    params.error("format", registry.unknown(format));
    return;
  }
  source_ = registry.make(format, site, params);
  first_ = params.integer("first", 0, 0, std::int64_t(1) << 40);
  count_ = params.integer("count", 0, 1, std::int64_t(1) << 40);
  place_ = params.place();
  params.finish();
}

std::unique_ptr<Dataset> DatasetChoice::open() const {
  if (source_ == nullptr) return nullptr;
  try {
    std::unique_ptr<Dataset> dataset = source_->open();
    if (first_ == 0 && count_ == 0) return dataset;
    return std::make_unique<Subset>(std::move(dataset), first_, count_);
  } catch (const Error& error) {
    throw Error(error.kind(), join(to_string(place_), ": ", error.what()));
  }
}

std::vector<std::string> DatasetChoice::class_names() const {
  if (source_ == nullptr) return {};
  try {
    return source_->class_names();
  } catch (const Error& error) {
    throw Error(error.kind(), join(to_string(place_), ": ", error.what()));
  }
}

std::vector<std::string> DataSection::class_names() const {
  const std::vector<std::string> of_train = train.class_names();
  return of_train.empty() ? val.class_names() : of_train;
}

DataSection read_data_section(Params& data, DatasetSite site) {
  const auto read = [&](const char* key) {
    if (!data.has(key)) return DatasetChoice();
    Params params = data.child(key);
    return DatasetChoice(params, site);
  };
  DataSection section;
  section.train = read("train");
  section.val = read("val");
  if (site.image_shape.empty()) site.image_shape = {0, 0, 0};
  section.train_augment = std::make_shared<Augment>(data, "augment", site.image_shape);
  section.val_augment = std::make_shared<Augment>(data, "eval_augment", site.image_shape);
  return section;
}

}  // namespace twiddle
