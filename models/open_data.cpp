#include "models/open_data.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/params.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// What is wrong is told of the last layer's line, which is the one to change.
void check_classes(const Experiment& experiment, const char* key, const Dataset& dataset, Diagnostics& diagnostics) {
  const auto classes = static_cast<std::int64_t>(dataset.classes().size());
  const std::int64_t outputs = experiment.model.net->output_shape().at(0);
  if (classes <= outputs) return;
  const std::string label = dataset.largest_label();
  diagnostics.add(experiment.config.layers.back().place,
                  join("data.", key, " has ", classes, " classes", label.empty() ? "" : " (" + label + ")",
                       ", the last layer gives ", outputs, " outputs"),
                  join("set its outputs to ", classes));
}

// What is missing or damaged in both is told in one go.
void open_both(const DataSection& section, OpenData& opened) {
  std::string failures;
  const auto open = [&](const DatasetChoice& choice, std::unique_ptr<Dataset>& dataset) {
    try {
      dataset = choice.open();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      failures += (failures.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  open(section.train, opened.train);
  open(section.val, opened.val);
  if (!failures.empty()) throw Error(ErrorKind::data, failures);
}

// The first few names, so that two lists can be told apart in a message.
std::string shortened(const std::vector<std::string>& classes) {
  constexpr std::size_t most = 6;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(most, classes.size()); ++i) first.push_back(shown(classes[i]));
  return join(classes.size(), " (", join_names(first), classes.size() > most ? ", ..." : "", ")");
}

}  // namespace

OpenData open_data(const Experiment& experiment) {
  OpenData opened{nullptr, nullptr, experiment.data.train_augment, experiment.data.val_augment};
  open_both(experiment.data, opened);
  if (is_image(experiment.loss->target())) return opened;
  Diagnostics diagnostics;
  if (opened.train) check_classes(experiment, "train", *opened.train, diagnostics);
  if (opened.val) check_classes(experiment, "val", *opened.val, diagnostics);
  if (opened.train && opened.val && opened.train->classes() != opened.val->classes())
    diagnostics.add(experiment.data.val.place(),
                    join("data.train and data.val do not have the same classes: ", shortened(opened.train->classes()),
                         " and ", shortened(opened.val->classes())));
  diagnostics.throw_if_any();
  return opened;
}

OpenData open_val_data(const Experiment& experiment) {
  OpenData opened{nullptr, experiment.data.val.open(), nullptr, experiment.data.val_augment};
  Diagnostics diagnostics;
  if (opened.val && !is_image(experiment.loss->target())) check_classes(experiment, "val", *opened.val, diagnostics);
  diagnostics.throw_if_any();
  return opened;
}

}  // namespace twiddle
