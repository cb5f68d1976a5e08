#pragma once
#include <string>
#include <vector>

#include "data/formats/dataset.h"

namespace twiddle {

// CIFAR-10's binary version, kept in memory: records of a label byte and 3 x 32 x 32 bytes.
class Cifar10 : public Dataset {
 public:
  struct Options {
    explicit Options(Params& params);
    std::vector<std::string> paths;
    std::string split;  // of a folder; empty: not given
  };
  Cifar10(const DatasetSite& site, const Options& options);
  std::int64_t size() const override { return files_.back().end; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override;
  std::string where(std::int64_t index) const override;
  std::string describe() const override;

 private:
  struct File {
    std::string path;
    std::int64_t end;  // the first image after it, counted over all files
  };
  void read(const std::string& path);

  std::vector<File> files_;
  std::vector<std::uint8_t> records_;
  std::vector<std::string> classes_;
};

}  // namespace twiddle
