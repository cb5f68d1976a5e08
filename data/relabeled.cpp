#include "data/relabeled.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "framework/error.h"

namespace twiddle {

Relabeled::Relabeled(std::unique_ptr<Dataset> data, std::vector<std::string> classes)
    : data_(std::move(data)), classes_(std::move(classes)) {
  std::map<std::string, std::int64_t> label_of;
  for (const std::string& name : classes_) label_of.emplace(name, std::ssize(label_of));
  require(label_of.size() == classes_.size(), "two of the network's classes have one name");
  for (const std::string& name : data_->classes()) {
    const auto found = label_of.find(name);
    require(found != label_of.end(), "'", name, "' is not a class of the network");
    labels_.push_back(found->second);
  }
}

Target Relabeled::get(std::int64_t index, Image& image) const {
  Target target = data_->get(index, image);
  target.labels = mapped(std::move(target.labels));
  return target;
}

// A label that is not a class becomes -1, which the loader refuses, naming the image.
std::vector<std::int64_t> Relabeled::mapped(std::vector<std::int64_t> labels) const {
  for (std::int64_t& label : labels)
    label = label >= 0 && label < std::ssize(labels_) ? labels_[static_cast<std::size_t>(label)] : -1;
  return labels;
}

std::vector<std::string> unknown_names(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  const std::set<std::string> all(known.begin(), known.end());
  std::vector<std::string> unknown;
  std::copy_if(names.begin(), names.end(), std::back_inserter(unknown),
               [&all](const std::string& name) { return !all.contains(name); });
  return unknown;
}

}  // namespace twiddle
