#include "data/formats/subset.h"

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

Subset::Subset(std::unique_ptr<Dataset> whole, std::int64_t first, std::int64_t count)
    : whole_(std::move(whole)), first_(first), count_(count > 0 ? count : whole_->size() - first) {
  if (first_ < 0 || count_ < 1 || first_ > whole_->size() - count_) {
    throw Error(ErrorKind::config, join("first: ", first, count > 0 ? join(", count: ", count) : "",
                                        " reaches beyond the ", whole_->size(), " images of ", whole_->describe()));
  }
}

std::string Subset::describe() const {
  return join(format_count(count_, "image"), " from number ", format_count(first_), " of: ", whole_->describe());
}

}  // namespace twiddle
