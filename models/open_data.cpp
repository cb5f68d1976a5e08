#include "models/open_data.h"

#include <algorithm>
#include <filesystem>

#include "data/subset.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

std::unique_ptr<Dataset> open_dataset(Params& data, const char* key, const DatasetSite& site) {
  if (!data.has(key)) return nullptr;
  Params params = data.child(key);
  const DatasetRegistry registry = builtin_datasets();
  const std::string format = params.text("format", std::nullopt);
  if (format.empty()) return nullptr;  // already in the diagnostics
  if (!registry.has(format)) {
    params.error("format", registry.unknown(format));
    return nullptr;
  }
  const std::size_t errors_before = data.diagnostics().size();
  std::unique_ptr<Dataset> dataset;
  try {
    dataset = registry.make(format, site, params);
  } catch (const Error&) {
    // Options that could not be read are the better story than what followed from their fallbacks.
    if (data.diagnostics().size() == errors_before) throw;
  }
  // Any format: a stretch of it.
  const std::int64_t first = params.integer("first", 0, 0, std::int64_t(1) << 40);
  const std::int64_t count = params.integer("count", 0, 0, std::int64_t(1) << 40);
  params.finish();
  if (dataset == nullptr || (first == 0 && count == 0)) return dataset;
  try {
    return std::make_unique<Subset>(std::move(dataset), first, count);
  } catch (const Error& error) {
    params.error("first", error.what());
    return nullptr;
  }
}

void check_classes(const Config& config, const char* key, const Dataset& dataset, std::int64_t outputs) {
  const auto classes = static_cast<std::int64_t>(dataset.classes().size());
  if (outputs > 0 && classes > outputs) {
    throw Error(ErrorKind::config,
                join(config.file, ": data.", key, " has ", classes, " classes, the last layer gives ", outputs,
                     " outputs: set its outputs to ", classes));
  }
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
  Params data(config.data.node, "data", diagnostics);
  const DatasetSite site{std::filesystem::path(config.file).parent_path().string(), config.input, outputs};
  OpenData opened;
  opened.train = open_dataset(data, "train", site);
  opened.val = open_dataset(data, "val", site);
  opened.train_augment = std::make_unique<Augment>(data, "augment", config.input);
  opened.val_augment = std::make_unique<Augment>(data, "eval_augment", config.input);
  diagnostics.throw_if_any();
  if (opened.train) check_classes(config, "train", *opened.train, outputs);
  if (opened.val) check_classes(config, "val", *opened.val, outputs);
  if (opened.train && opened.val && opened.train->classes() != opened.val->classes()) {
    throw Error(ErrorKind::config, join(config.file, ": data.train and data.val do not have the same classes: ",
                                        shortened(opened.train->classes()), " and ", shortened(opened.val->classes())));
  }
  return opened;
}

std::unique_ptr<Augment> open_val_augment(const Config& config) {
  Diagnostics diagnostics;
  Params data(config.data.node, "data", diagnostics);
  auto augment = std::make_unique<Augment>(data, "eval_augment", config.input);
  diagnostics.throw_if_any();
  return augment;
}

}  // namespace twiddle
