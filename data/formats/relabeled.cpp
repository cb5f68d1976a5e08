#include "data/formats/relabeled.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "framework/error.h"

namespace twiddle {

Relabeled::Relabeled(std::unique_ptr<Dataset> data, std::vector<std::string> classes)
    : data_(std::move(data)), classes_(std::move(classes)) {
  labels_ = class_places(data_->classes(), classes_);
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

std::vector<std::int64_t> class_places(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  std::map<std::string, std::int64_t> place_of;
  for (const std::string& name : known) place_of.emplace(name, std::ssize(place_of));
  require(place_of.size() == known.size(), "the network has two classes of the same name");
  std::vector<std::int64_t> places;
  for (const std::string& name : names) {
    const auto found = place_of.find(name);
    require(found != place_of.end(), "'", name, "' is not a class of the network");
    places.push_back(found->second);
  }
  return places;
}

std::vector<std::string> unknown_names(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  const std::set<std::string> all(known.begin(), known.end());
  std::vector<std::string> unknown;
  std::copy_if(names.begin(), names.end(), std::back_inserter(unknown),
               [&all](const std::string& name) { return !all.contains(name); });
  return unknown;
}

}  // namespace twiddle
