#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/formats/dataset.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

// A contiguous range of another dataset, so that one file can serve for training and validation.
class Subset : public Dataset {
 public:
  // Images first .. first + count - 1; a count of 0 takes all that follow. Throws where the dataset has fewer.
  Subset(std::unique_ptr<Dataset> whole, std::int64_t first, std::int64_t count)
      : whole_(std::move(whole)), first_(first), count_(count > 0 ? count : whole_->size() - first) {
    if (first_ < 0 || count_ < 1 || first_ > whole_->size() - count_)
      throw Error(ErrorKind::config, join("first: ", first, count > 0 ? join(", count: ", count) : "",
                                          " reaches beyond the ", whole_->size(), " images of ", whole_->describe()));
  }
  std::int64_t size() const override { return count_; }
  const std::vector<std::string>& classes() const override { return whole_->classes(); }
  Target get(std::int64_t index, Image& image) const override { return whole_->get(index_in_whole(index), image); }
  std::vector<std::int64_t> labels(std::int64_t index) const override { return whole_->labels(index_in_whole(index)); }
  std::string where(std::int64_t index) const override { return whole_->where(index_in_whole(index)); }
  std::string describe() const override {
    return join(format_count(count_, "image"), " from number ", format_count(first_), " of: ", whole_->describe());
  }
  std::string largest_label() const override { return whole_->largest_label(); }

 private:
  std::int64_t index_in_whole(std::int64_t index) const {
    expect_index(index);
    return first_ + index;
  }

  std::unique_ptr<Dataset> whole_;
  std::int64_t first_, count_;
};

}  // namespace twiddle
