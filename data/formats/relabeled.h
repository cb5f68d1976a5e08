#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/formats/dataset.h"

namespace twiddle {

// Another dataset with a network's classes, all or some of them: its labels are mapped by name.
class Relabeled : public Dataset {
 public:
  // `classes` must have the names of all classes of the data.
  Relabeled(std::unique_ptr<Dataset> data, std::vector<std::string> classes);
  std::int64_t size() const override { return data_->size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override { return mapped(data_->labels(index)); }
  std::string where(std::int64_t index) const override { return data_->where(index); }
  std::string describe() const override { return data_->describe(); }

 private:
  std::vector<std::int64_t> mapped(std::vector<std::int64_t> labels) const;

  std::unique_ptr<Dataset> data_;
  std::vector<std::string> classes_;
  std::vector<std::int64_t> labels_;  // of `classes_`, by label of the data
};

// Where each name is among the known ones, which have it.
std::vector<std::int64_t> class_places(const std::vector<std::string>& names, const std::vector<std::string>& known);

// Those of the names that are not among the known ones.
std::vector<std::string> unknown_names(const std::vector<std::string>& names, const std::vector<std::string>& known);

}  // namespace twiddle
