#pragma once
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/augmentation/augment.h"
#include "data/formats/dataset.h"
#include "framework/error.h"
#include "tests/data/fixtures.h"

namespace twiddle {

// Gray 2x3 images: image i has value i and label i % 10; some cannot be read.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t count, std::set<std::int64_t> bad = {}) : count_(count), bad_(std::move(bad)) {}
  std::int64_t size() const override { return count_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override {
    if (bad_.count(index)) throw Error(ErrorKind::data, where(index) + ": truncated");
    if (index == broken) throw std::runtime_error("out of luck");
    image = {1, 2, 3, Bytes(6, static_cast<std::uint8_t>(index))};
    return index == 10 ? label_of_ten : index % 10;
  }
  std::string where(std::int64_t index) const override { return join("number ", index); }
  std::string describe() const override { return "numbers"; }
  std::int64_t broken = -1, label_of_ten = 0;

 private:
  std::int64_t count_;
  std::set<std::int64_t> bad_;
  std::vector<std::string> classes_{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
};

// Uses such images unchanged.
inline Augment plain() {
  return read_augment(mapping({}), {1, 2, 3});
}

}  // namespace twiddle
