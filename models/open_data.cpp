#include "models/open_data.h"

#include <algorithm>
#include <filesystem>

#include "data/subset.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// A dataset, or a stretch of one, as the section names it.
struct Chosen {
  std::unique_ptr<DatasetSource> source;  // null: none
  std::int64_t first = 0, count = 0;      // count 0: all that follow
  Place place = {};

  std::unique_ptr<Dataset> open() const {
    if (source == nullptr) return nullptr;
    try {
      std::unique_ptr<Dataset> dataset = source->open();
      if (first == 0 && count == 0) return dataset;
      return std::make_unique<Subset>(std::move(dataset), first, count);
    } catch (const Error& error) {
      throw Error(error.kind(), join(to_string(place), ": ", error.what()));
    }
  }
};

Chosen read_dataset(Params& data, const char* key, const DatasetSite& site) {
  if (!data.has(key)) return {};
  Params params = data.child(key);
  const DatasetRegistry registry = builtin_datasets();
  const std::string format = params.text("format", std::nullopt);
  if (format.empty()) return {};  // already in the diagnostics
  if (!registry.has(format)) {
    params.error("format", registry.unknown(format));
    return {};
  }
  Chosen chosen{registry.make(format, site, params)};
  chosen.first = params.integer("first", 0, 0, std::int64_t(1) << 40);
  chosen.count = params.integer("count", 0, 1, std::int64_t(1) << 40);
  chosen.place = params.place();
  params.finish();
  return chosen;
}

// The whole section, read but not opened.
struct DataPlan {
  Chosen train, val;
  std::unique_ptr<Augment> train_augment, val_augment;
  ConfigNode used;  // every key of theirs
};

DataPlan read_plan(const Config& config, std::int64_t outputs, Diagnostics& diagnostics) {
  Params data(config.data.node, "data", diagnostics);
  const DatasetSite site{std::filesystem::path(config.file).parent_path().string(), config.input, outputs,
                         config.data.max_pixels, config.data.search_progress};
  const Shape input = config.input.empty() ? Shape{0, 0, 0} : config.input;
  DataPlan plan;
  plan.train = read_dataset(data, "train", site);
  plan.val = read_dataset(data, "val", site);
  plan.train_augment = std::make_unique<Augment>(data, "augment", input);
  plan.val_augment = std::make_unique<Augment>(data, "eval_augment", input);
  plan.used = data.used();
  return plan;
}

void check_classes(const Config& config, const char* key, const Dataset& dataset, std::int64_t outputs) {
  const auto classes = static_cast<std::int64_t>(dataset.classes().size());
  if (outputs > 0 && classes > outputs) {
    throw Error(ErrorKind::config,
                join(printable(config.file), ": data.", key, " has ", classes, " classes, the last layer gives ",
                     outputs, " outputs: set its outputs to ", classes));
  }
}

// What is missing or damaged in both is told in one go.
void open_both(const DataPlan& plan, OpenData& opened) {
  std::string failures;
  const auto open = [&](const Chosen& chosen, std::unique_ptr<Dataset>& dataset) {
    try {
      dataset = chosen.open();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      failures += (failures.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  open(plan.train, opened.train);
  open(plan.val, opened.val);
  if (!failures.empty()) throw Error(ErrorKind::data, failures);
}

// The first few names, so that two lists can be told apart in a message.
std::string shortened(const std::vector<std::string>& classes) {
  constexpr std::size_t shown = 6;
  const std::vector<std::string> first(classes.begin(),
                                       classes.begin() + static_cast<std::ptrdiff_t>(std::min(shown, classes.size())));
  return join(classes.size(), " (", join_names(first), classes.size() > shown ? ", ..." : "", ")");
}

}  // namespace

OpenData open_data(const Config& config, std::int64_t outputs) {
  Diagnostics diagnostics;
  DataPlan plan = read_plan(config, outputs, diagnostics);
  diagnostics.throw_if_any();
  OpenData opened;
  open_both(plan, opened);
  opened.train_augment = std::move(plan.train_augment), opened.val_augment = std::move(plan.val_augment);
  if (opened.train) check_classes(config, "train", *opened.train, outputs);
  if (opened.val) check_classes(config, "val", *opened.val, outputs);
  if (opened.train && opened.val && opened.train->classes() != opened.val->classes()) {
    throw Error(ErrorKind::config,
                join(printable(config.file), ": data.train and data.val do not have the same classes: ",
                     shortened(opened.train->classes()), " and ", shortened(opened.val->classes())));
  }
  return opened;
}

OpenData open_val_data(const Config& config, std::int64_t outputs) {
  Diagnostics diagnostics;
  DataPlan plan = read_plan(config, outputs, diagnostics);
  diagnostics.throw_if_any();
  OpenData opened{nullptr, plan.val.open(), nullptr, std::move(plan.val_augment)};
  if (opened.val) check_classes(config, "val", *opened.val, outputs);
  return opened;
}

std::unique_ptr<Augment> open_val_augment(const Config& config) {
  Diagnostics diagnostics;
  DataPlan plan = read_plan(config, 0, diagnostics);
  diagnostics.throw_if_any();
  return std::move(plan.val_augment);
}

ConfigNode check_data(const Config& config, Diagnostics& diagnostics) {
  return read_plan(config, 0, diagnostics).used;
}

}  // namespace twiddle
